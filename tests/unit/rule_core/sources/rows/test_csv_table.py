"""Tables: those of Lightning, Keras and YOLO, rewritten, cut and damaged."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from memory_store import MemoryStore
from source_files import Content, Followed, read, recognized

from rule_core.model.segments import step_text
from rule_core.sources.format import Recognized, Unreadable
from rule_core.sources.options import SourceOptions
from rule_core.sources.recognize import source_folder
from rule_core.sources.rows import csv_table
from rule_core.sources.rows.csv_table import FORMAT

SIMPLE = b"step,loss\n1,0.5\n2,0.25\n"
# As Lightning leaves it: rows of training and of evaluation, and a column that came later.
LIGHTNING = (
    b"epoch,step,train_loss,val_loss\r\n0,9,0.5,\r\n0,19,nan,\r\n0,19,,0.75\r\n1,29,inf,\r\n"
)


def columns(content: bytes) -> Content:
    return read(FORMAT, content, "metrics.csv")


def test_training_and_evaluation_in_different_rows() -> None:
    content = columns(LIGHTNING)
    assert repr(content) == repr(
        {
            "train_loss": [("9", 0.5), ("19", math.nan), ("29", math.inf)],
            "val_loss": [("19", 0.75)],
        }
    )


def test_padded_headers_of_yolo() -> None:
    content = columns(
        b"                  epoch,         train/box_loss,           val/box_loss\n"
        b"                      1,                 3.1241,                    nan\n"
        b"                      2,                 2.9000,                 -inf  \n"
    )
    assert repr(content) == repr(
        {
            "train/box_loss": [("1", 3.1241), ("2", 2.9)],
            "val/box_loss": [("1", math.nan), ("2", -math.inf)],
        }
    )


@pytest.mark.parametrize("content", [b"id,score\n1,2\n2,3\n", b"model,loss\n1,2\n2,3\n"])
def test_a_table_called_after_a_metric_may_hold_samples(content: bytes) -> None:
    items = recognized(FORMAT, {"scores.csv": content})
    assert not any(isinstance(item, Recognized) for item in items)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"epoch;loss\n0;1.5\n", {"loss": [("0", 1.5)]}),
        (b"loss\tstep\n1.5\t10.0\n", {"loss": [("10", 1.5)]}),
        (b"\xef\xbb\xbfstep,loss\r\n1,2\r\n", {"loss": [("1", 2.0)]}),
        (b'"step","loss, mean"\n"1","0.5"\n', {"loss, mean": [("1", 0.5)]}),
        (b"# step,loss\n1,2\n", {"loss": [("1", 2.0)]}),
        (b"# a comment\nstep,loss\n# another\n1,2\n", {"loss": [("1", 2.0)]}),
        (b"epoch,iter,loss\n1,100,2\n1,200,3\n", {"loss": [("100", 2.0), ("200", 3.0)]}),
        (b",step,loss\n0,10,2\n", {"loss": [("10", 2.0)]}),
        (b'step,loss,text\n1,2,"a\nb"\n2,3,c\n', {"loss": [("1", 2.0), ("2", 3.0)]}),
        (
            b"step,split,loss\n1,train,2\n1,val,3\n",
            {"loss": [("1", 2.0)], "val/loss": [("1", 3.0)]},
        ),
        (b"Wall time,Step,Value\n1700000000.5,3,4\n", {"metrics": [("3", 4.0)]}),
        (b"epoch|loss\n0|1.5\n", {"loss": [("0", 1.5)]}),
        (b"# epoch   loss\n      0  1.5 \n", {"loss": [("0", 1.5)]}),
        (b"sep=;\nEpoch;Loss\n1;0,25\n", {"Loss": [("1", 0.25)]}),
        (
            b'#{"t_start": 1.5, "env_id": "x"}\nr,l,t\n3.5,9,0.5\n',
            {"r": [("0", 3.5)], "l": [("0", 9.0)], "t": [("0", 0.5)]},
        ),
        (
            b"epoch,loss,acc,time\n3/30,2,85.5%,0:01:12\n",
            {"loss": [("3", 2.0)], "acc": [("3", 85.5)]},
        ),
        (
            b'step,loss,memory\n"1,000",2,"9,000 MiB"\n',
            {"loss": [("1000", 2.0)], "memory": [("1000", 9000.0)]},
        ),
        (b"Evaluation/Iteration,LossBefore\n1,0.5\n", {"LossBefore": [("1", 0.5)]}),
        (b"samples_seen,loss\n4096,0.5\n", {"loss": [("4096", 0.5)]}),
        (b",loss\n7,2\n8,1\n", {"loss": [("7", 2.0), ("8", 1.0)]}),
        (b"training_iteration,loss,config/lr\n1,2,0.1\n", {"loss": [("1", 2.0)]}),
        (
            b'"Step","a - loss","a - loss__MIN","a - loss__MAX"\n"0","2","1","3"\n',
            {"a - loss": [("0", 2.0)]},
        ),
        (b"epoch,loss\n0.5,2\n1.0,3\n1.5,4\n", {"loss": [("0", 2.0), ("1", 3.0), ("2", 4.0)]}),
        (
            b"epoch,loss,val_loss\n0,1,NA\n1,None,2\n",
            {"loss": [("0", 1.0)], "val_loss": [("1", 2.0)]},
        ),
        (b"step,loss\n1,tensor(0.5)\n", {"loss": [("1", 0.5)]}),
        (b"step,loss\n1,0.5\n2\n3,\n4,0.25", {"loss": [("1", 0.5), ("4", 0.25)]}),
    ],
)
def test_writings(content: bytes, expected: Content) -> None:
    table = Followed(FORMAT, "metrics.csv", {"metrics.csv": content})
    assert table.end() == expected
    assert table.problems == []


def test_a_time_is_that_of_its_step() -> None:
    table = Followed(FORMAT, "a.csv", {"a.csv": b"Wall time,Step,Value\n1700000000.5,3,4\n"})
    table.end()
    assert table.index.tensors.row_time(3, "worker_0@TRAIN") == 1700000000.5


@pytest.mark.parametrize(
    ("content", "expected", "problem"),
    [
        (
            b"step,loss\n2024-01-01,1\n2024-01-02,2\n3,3\n",
            {"loss": [("3", 3.0)]},
            (
                "a.csv: line 2: Its step '2024-01-01' is not a whole number >= 0. "
                "Such lines are skipped."
            ),
        ),
        (
            b"date,loss\n1,2\n",
            {},
            (
                "a.csv: Its first line names neither a column of steps, such as step or epoch, nor "
                "only metrics, such as loss and val_loss: 'date,loss'."
            ),
        ),
        (
            b"step,loss,loss\n1,2,3\n",
            {"loss": [("1", 2.0)], "loss.1": [("1", 3.0)]},
            "a.csv: column 'loss.1': Several columns are called 'loss'; column 3 is 'loss.1'.",
        ),
        (
            b"step,loss\n1,2\n2,x\n3,y\n4,5\n",
            {"loss": [("1", 2.0), ("4", 5.0)]},
            (
                "a.csv: column 'loss': 'x' in line 3 or before is not a number. "
                "Such cells are skipped."
            ),
        ),
        (
            b"step,loss\n1,oops\n2,3\n",
            {"loss": [("2", 3.0)]},
            (
                "a.csv: column 'loss': 'oops' in line 3 or before is not a number. "
                "Such cells are skipped."
            ),
        ),
        (
            b"step,loss\n1,2,3\n",
            {"loss": [("1", 2.0)]},
            (
                "a.csv: line 2: It has 3 cells, more than the 2 of the header. "
                "Those beyond are skipped."
            ),
        ),
        (
            b'step,loss\n1,"2\n' + b"".join(b"%d,1\n" % step for step in range(2, 20)),
            {"loss": [("1", 2.0)] + [(str(step), 1.0) for step in range(2, 20)]},
            "a.csv: line 2: Its quote is not closed.",
        ),
        (
            b"step,loss\n1,2\n2," + b"9" * 200_000 + b"\n3,4\n",
            {"loss": [("1", 2.0), ("3", 4.0)]},
            (
                "a.csv: line 3: It cannot be read: field larger than field limit (131072). "
                "Such lines are skipped."
            ),
        ),
    ],
)
def test_damage_is_named_once_and_skipped(
    content: bytes, expected: Content, problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = Followed(FORMAT, "a.csv", {"a.csv": content})
    assert table.end() == expected
    assert table.problems == [problem]
    assert len(caplog.records) == 1


def test_a_column_of_text_is_no_damage() -> None:
    table = Followed(FORMAT, "a.csv", {"a.csv": b"step,model,loss\n1,resnet,2\n2,resnet,3\n"})
    assert table.end() == {"loss": [("1", 2.0), ("2", 3.0)]}
    assert table.problems == []


def test_columns_of_text_are_reported_in_their_order() -> None:
    names = [f"metric_{number}" for number in range(20)]
    rows = ["1," + ",".join("x" * 20), "2," + ",".join("5" * 20)]
    text = "\n".join([f"step,{','.join(names)}", *rows, ""])
    table = Followed(FORMAT, "a.csv", {"a.csv": text.encode()})
    table.end()
    reported = [problem.split("'")[1] for problem in table.problems]
    assert reported == sorted(names)


def test_a_column_that_comes_later_gives_no_row_twice() -> None:
    table = Followed(FORMAT, "a.csv")
    table.look(b"step,loss\n1,0.5\n2,0.25\n")
    table.look(b"")  # while it is rewritten
    table.look(b"acc,step,loss\n,1,0.5\n,2,0.")
    assert table.look(b"acc,step,loss\n,1,0.5\n,2,0.25\n0.75,3,0.125\n") == {
        "loss": [("1", 0.5), ("2", 0.25), ("3", 0.125)],
        "acc": [("3", 0.75)],
    }
    assert table.index.segments == []


def test_another_run_in_the_same_file_is_a_segment() -> None:
    table = Followed(FORMAT, "a.csv")
    table.look(SIMPLE)
    assert table.look(b"step,loss\n1,0.5\n2,0.3\n3,0.2\n") == {
        "loss": [
            ("1", 0.5),
            ("2", 0.25),
            ("1 of segment 2", 0.5),
            ("2 of segment 2", 0.3),
            ("3 of segment 2", 0.2),
        ]
    }


def test_a_run_that_was_restarted_is_read_before_it_is_as_long() -> None:
    table = Followed(FORMAT, "a.csv")
    table.look(SIMPLE)
    assert table.look(b"step,loss\n1,0.6\n")["loss"][2:] == [("1 of segment 2", 0.6)]


def test_runs_that_were_appended_with_their_headers() -> None:
    content = columns(b"epoch,loss\n0,1\n1,2\nepoch,loss,acc\n0,3,4\n")
    assert content == {
        "loss": [("0", 1.0), ("1", 2.0), ("0 of segment 2", 3.0)],
        "acc": [("0 of segment 2", 4.0)],
    }


def test_the_last_line_waits_for_its_end_or_that_of_the_run() -> None:
    table = Followed(FORMAT, "a.csv")
    assert table.look(b"step,loss\n1,0.5\n2,0.2") == {"loss": [("1", 0.5)]}
    assert table.end() == {"loss": [("1", 0.5), ("2", 0.2)]}
    # Somebody went on after all: the number that was judged does not change.
    assert table.look(b"step,loss\n1,0.5\n2,0.25\n3,0.1\n")["loss"][1:] == [("2", 0.2), ("3", 0.1)]


@pytest.mark.parametrize("content", [LIGHTNING, b'a,step\n"1\n",2\n"x",3\n4,5'])
def test_every_cut_gives_a_part_of_the_whole(content: bytes) -> None:
    whole = columns(content)
    for cut in range(len(content)):
        table = Followed(FORMAT, "a.csv")
        for name, values in table.look(content[:cut]).items():
            assert repr(whole[name][: len(values)]) == repr(values)
        table.files["a.csv"] = content
        assert repr(table.end()) == repr(whole)


CELLS = st.sampled_from(["", "0", "1", "2.0", "nan", "-inf", "x", '"', '"1"', " 3 ", "2024-01-01"])
ROWS = st.lists(st.lists(CELLS, max_size=5).map(",".join), max_size=12)


@given(rows=ROWS, cuts=st.lists(st.integers(0, 400), max_size=6), header=st.booleans())
def test_reading_in_pieces_is_reading_at_once(
    rows: list[str], cuts: list[int], header: bool
) -> None:
    content = "\n".join(["step,loss,epoch,acc"] * header + rows).encode()
    table = Followed(FORMAT, "a.csv")
    before: Content = {}
    for cut in sorted(cuts):
        now = table.look(content[:cut])
        for name, values in before.items():
            assert repr(now[name][: len(values)]) == repr(values)
        before = now
    table.files["a.csv"] = content
    assert repr(table.end()) == repr(columns(content))


def test_what_is_recognized() -> None:
    files = {
        "a.csv": SIMPLE,
        "c.tsv": b"epoch\tloss\n",
        "d.csv": b"step\n1\n",
        "e.csv": b"",
        "g.txt": SIMPLE,
        "g2.txt": b"step,loss\n1\n",
        "g3.log": b"epoch;lr;Accuracy\n0;1;2",
        "g4.log": b"epoch,loss\n",
        "g5.log": b"step,price\n1,2\n",
        "g6.dat": b"# epoch  loss\n  0  1.5\n",
        "h.csv": b"\x00\xff" * 1000,
        "i.csv": b"\n# x\nstep,loss",
        "j.csv": b'"step,loss\n' * 3,
        "k.csv": b"step,alpha,beta\n1,0.5,2.5\n2,0.25,2.25\n",
        "l.csv": b"metric,step,value\nx,1,2\n",
        "m.csv": b"step,alpha,n\n",  # no rows yet
        "README.md": b"# x\nsome text | more\n\n| Loss | Step |\n|:--|--:|\n| No log | 5 |\n",
        "other.md": b"| Loss | Step |\n|:--|--:|\n| 1 | 5 |\n",
        "run-a-tag-loss.csv": b"Wall time,Step,Value\n1,2,3\n",
    }
    items = [item for item in recognized(FORMAT, files) if isinstance(item, Recognized)]
    assert [(item.key, item.reason) for item in items] == [
        ("README.md", "its columns include 'Step'"),
        ("a.csv", "its columns include 'step'"),
        ("c.tsv", "its columns include 'epoch'"),
        ("g.txt", "its columns include 'step'"),
        ("g3.log", "its columns include 'epoch'"),
        ("g6.dat", "its columns include 'epoch'"),
        ("i.csv", "its columns include 'step'"),
        ("k.csv", "its columns include 'step'"),
        ("l.csv", "its columns include 'step'"),
        ("run-a-tag-loss.csv", "its columns include 'Step'"),
    ]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"0,2.5,1\n1,2.25,2\n", "add a header such as step,loss,val_loss"),
        (b"step,y_true,y_prob\n0,1,0.5\n1,0,0.75\n", "its rows are samples of a data set"),
        (b"number,value,params_lr\n0,0.5,0.1\n", "each row is a training of its own"),
        (b"id,age,income\n0,71,17687\n", "include nothing that counts rows, such as step"),
        (b"step,price\n1,2\n2,3\n", "include no loss or metric that is known"),
        (b"step,loss\n2024-01-01,3\n", "its column 'step' holds '2024-01-01', which is no count"),
        (b"epoch,humidity,t\n1731000000,4.5,2.5\n1731000300,4.25,2.25\n", "which is no count"),
    ],
)
def test_tables_that_are_refused(content: bytes, reason: str) -> None:
    [item] = recognized(FORMAT, {"a.csv": content})
    assert isinstance(item, Unreadable)
    assert reason in item.reason
    assert recognized(FORMAT, {"a.log": content}) == []


@pytest.mark.parametrize(
    ("content", "is_log"),
    [
        (b"loss,accuracy,val_loss,val_accuracy\n1,2,3,4\n1,2,3,4\n", True),
        (b",train_loss,ValLoss,lr\n0,1,,nan\n1,NA,-inf,4\n", True),
        (b"Unnamed: 0;dice_coef;loss;val_dice_coef\r\n0;1;2;3\r\n1;1;2;3\r\n", True),
        (b"\xef\xbb\xbfloss\tepoch_time\n1\t2\n1\t2\n", True),
        (b"loss,val_loss\n1,2\n", False),  # a single row sums up a run
        (b"loss,val_loss\n1,2\nsmall,2\n", False),
        (b"loss,val_loss\n1,2\n1,2,3\n", False),
        (b"model,loss,accuracy\n1,2,3\n1,2,3\n", False),
        (b"split,loss,accuracy\ntrain,2,3\nval,2,3\n", False),
        (b"batch_size,lr,val_loss\n1,2,3\n1,2,3\n", False),
        (b"mae,mse\n1,2\n1,2\n", False),
        (b"age,weight loss\n1,2\n1,2\n", False),
        (b"loss\n1\n2\n", False),
        (b"loss,kl\n1,2\n1,2\n", False),
    ],
)
def test_columns_that_are_plainly_metrics(content: bytes, is_log: bool) -> None:
    items = recognized(FORMAT, {"a.csv": content})
    reasons = [item.reason for item in items if isinstance(item, Recognized)]
    assert reasons == ["its columns are metrics"] * is_log


@pytest.mark.parametrize(
    ("key", "content", "expected"),
    [
        ("loss.csv", b"loss\n0.75\n0.5\n", {"loss": [("0", 0.75), ("1", 0.5)]}),
        ("loss.csv", b",0\n0,0.75\n1,0.5\n", {"loss": [("0", 0.75), ("1", 0.5)]}),
        (
            "test_error.tsv",
            b"iter\tMultiClass\n0\t0.75\n1\t0.5\n",
            {"test_error/MultiClass": [("0", 0.75), ("1", 0.5)]},
        ),
        (
            "progress.csv",
            b"kl,loss\n0.75,1\n0.5,2\n",
            {"kl": [("0", 0.75), ("1", 0.5)], "loss": [("0", 1.0), ("1", 2.0)]},
        ),
        (
            "training_history.csv",
            b"loss,audio,text,kl\n1,2,3,4\n0.5,2,3,4\n",
            {"loss": [("0", 1.0), ("1", 0.5)]}
            | {name: [("0", x), ("1", x)] for name, x in [("audio", 2), ("text", 3), ("kl", 4)]},
        ),
        (
            "rewards.csv",
            b",rewards,discount\n0,1,0.5\n1,2,0.5\n",
            {"rewards": [("0", 1.0), ("1", 2.0)], "discount": [("0", 0.5), ("1", 0.5)]},
        ),
    ],
)
def test_files_whose_names_say_what_they_hold(key: str, content: bytes, expected: Content) -> None:
    folder, slash, _ = key.rpartition("/")
    store = MemoryStore({key: content})
    [item] = FORMAT.recognize(source_folder(store, folder + slash))
    assert isinstance(item, Recognized)
    assert read(FORMAT, content, key) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"epoch;loss\n[-];[K]\n1;0,75 K\n2;0,5 K\n", {"loss": [("1", 0.75), ("2", 0.5)]}),
        (b"epoch,loss\n== AMP ==\n1,0.75\n2,0.5\n", {"loss": [("1", 0.75), ("2", 0.5)]}),
        (b"%Iter\tloss\n1\t0.75\n2\t0.5\n", {"loss": [("1", 0.75), ("2", 0.5)]}),
        (
            b'x,epoch,loss,config\n"{1, 2}",1,0.75,\n"{1, 2}",2,0.5,"{1, 2, 3',
            {"loss": [("1", 0.75), ("2", 0.5)]},
        ),
    ],
)
def test_lines_that_are_no_rows_and_a_cut_cell(content: bytes, expected: Content) -> None:
    [item] = recognized(FORMAT, {"a.csv": content})
    assert isinstance(item, Recognized)
    assert columns(content) == expected


def test_rows_without_steps_are_counted() -> None:
    content = b"loss,val_loss\n1,2\n\n0.5,\n0.5,\n# x,\nloss,val_loss\n3,4\n"
    assert columns(content) == {
        "loss": [("0", 1.0), ("1", 0.5), ("2", 0.5), ("0 of segment 2", 3.0)],
        "val_loss": [("0", 2.0), ("0 of segment 2", 4.0)],
    }
    table = Followed(FORMAT, "a.csv")
    table.look(content[:22])
    table.look(b"")  # while it is rewritten
    assert table.look(content) == columns(content)


@pytest.mark.parametrize("column", ["row", "wrong"])
def test_rows_are_counted_if_the_named_column_is_not_there(column: str) -> None:
    content = b"step,alpha\n10,0.5\n20,0.25\n"
    followed = Followed(FORMAT, "a.csv", {"a.csv": content}, SourceOptions(step_column=column))
    assert followed.end()["alpha"] == [("0", 0.5), ("1", 0.25)]
    assert followed.problems == []


def test_a_named_column_of_steps_makes_a_log_of_a_table() -> None:
    files = {"a.csv": b" id,loss\n10,0.5\n20,0.25\n"}
    [refused] = recognized(FORMAT, files)
    assert isinstance(refused, Unreadable)
    [item] = recognized(FORMAT, files, SourceOptions(step_column="id"))
    assert item == Recognized("csv", "a.csv", "its columns include 'id'")


def test_a_counter_that_restarts_with_each_epoch() -> None:
    rows = [b"%d,%d,%d\n" % (epoch, batch, 9 - epoch) for epoch in range(3) for batch in range(4)]
    content = columns(b"epoch,batch,loss\n" + b"".join(rows))
    assert [step for step, _ in content["loss"]] == [str(step) for step in range(12)]


def test_steps_go_on_when_the_file_is_rewritten() -> None:
    rows = [b"%d,%d,%d\n" % (epoch, batch, 9 - epoch) for epoch in range(3) for batch in range(4)]
    table = Followed(FORMAT, "a.csv")
    for end in range(1, 13):
        table.look(b"")
        table.look(b"epoch,batch,loss\n" + b"".join(rows[:end]))
    assert [step for step, _ in table.content()["loss"]] == [str(step) for step in range(12)]


def test_metrics_below_each_other() -> None:
    rows = [
        b"%s,%d,%d\n" % (name, step, step) for name in (b"a", b"val_b", b"c") for step in range(3)
    ]
    content = columns(b"metric.name,step,value\n" + b"".join(rows))
    assert content == {name: losses(3) for name in ("a", "val_b", "c")}


def losses(count: int) -> list[tuple[str, float]]:
    return [(str(step), float(step)) for step in range(count)]


def test_runs_below_each_other_are_segments() -> None:
    content = columns(b"seed,step,loss\n0,5,3\n0,9,2\n1,9,4\n1,12,3\n")
    steps = ["5", "9", "9 of segment 2", "12 of segment 2"]
    assert [step for step, _ in content["loss"]] == steps
    assert "seed" not in content


def test_runs_that_alternate_are_cut() -> None:
    content = b"seed,step,loss\n0,0,3\n1,0,2\n0,1,4\n1,1,3\n"
    table = Followed(FORMAT, "a.csv", {"a.csv": content})
    assert table.end()["loss"] == [
        ("0", 3.0),
        ("0 of segment 2", 2.0),
        ("1 of segment 2", 3.0),
    ]
    assert table.problems == ["a.csv: Rows of several runs alternate; those of '0' are cut."]


def of_workers(*rows: tuple[int, int]) -> Followed:
    """Return the end of a table whose rows have a process and a step each."""
    lines = "".join(f"{pid},{step},{pid + 1 / step}\n" for pid, step in rows)
    table = Followed(FORMAT, "a.csv", {"a.csv": f"PID,step,loss\n{lines}".encode()})
    table.end()
    return table


def steps_by_stream(table: Followed) -> dict[str, list[str]]:
    steps: dict[str, list[str]] = {}
    for step in table.index.steps:
        for part in table.index.files[step]:
            steps.setdefault(part, []).append(step_text(step))
    return steps


BESIDE = [(pid, step) for step in range(1, 20) for pid in (7, 8)]


def test_workers_that_alternate_have_axes_of_their_own() -> None:
    table = of_workers(*BESIDE, (8, 20))
    steps = [str(step) for step in range(1, 20)]
    assert steps_by_stream(table) == {
        "worker_0@TRAIN": steps,
        "worker_0@s1.TRAIN": [*steps, "20"],
    }
    value = table.index.tensors.value("loss", 4, "worker_0@s1.TRAIN")
    assert (value, table.index.segments) == (8.25, [])


@pytest.mark.parametrize("others", [(7, 8), (9, 10)])
def test_workers_that_begin_anew_begin_a_segment(others: tuple[int, int]) -> None:
    again = [(pid, step) for step in range(1, 4) for pid in others]
    table = of_workers(*BESIDE, *again)
    steps = steps_by_stream(table)
    assert [each[19:] for each in steps.values()] == 2 * [
        ["1 of segment 2", "2 of segment 2", "3 of segment 2"]
    ]


def test_a_worker_that_takes_the_place_of_another_goes_on_or_begins_anew() -> None:
    first = [(7, step) for step in range(1, 11)]
    assert len(steps_by_stream(of_workers(*first, (8, 11)))["worker_0@TRAIN"]) == 11
    assert of_workers(*first, (8, 1)).content()["loss"][-1] == ("1 of segment 2", 9.0)


def test_a_model_card() -> None:
    content = (
        b"# A model\n\nIts loss | its step.\n\n| Training Loss | Epoch | Step | Validation Loss |\n"
        b"|:---:|:---:|:---:|:---:|\n| No log | 0.5 | 200 | 2.5 |\n| 1.5 | 1.0 | 400 | 1.25 |\n\n"
        b"Then, step 5 | 6.\n\n| Name | Value |\n|---|---|\n| 500 | 3 |\n"
    )
    card = Followed(FORMAT, "README.md", {"README.md": content})
    assert card.end() == {
        "Validation Loss": [("200", 2.5), ("400", 1.25)],
        "Training Loss": [("400", 1.5)],
    }
    assert card.problems == []


NUMBERS = st.sampled_from(
    [*["0", "1.5", "", "nan", "-inf", "1e400", "-0.0", " 7 "] * 9, "x", '"2"']
)
RANDOM_ROWS = st.tuples(st.integers(0, 3), st.integers(0, 40), NUMBERS, NUMBERS)
MANY: list[tuple[int, int, str, str]] = [
    (n // 40, n, "1.5", "" if n % 3 else "2") for n in range(70)
]


@example(
    rows=MANY, is_sorted=True, header="x,epoch,loss,val_loss", fraction="5,0.5,1,2", delimiter=","
)
@example(rows=MANY, is_sorted=True, header="epoch,step,loss,val_loss", fraction="", delimiter=";")
@example(rows=MANY, is_sorted=True, header="loss,val_loss,lr,x_time", fraction="", delimiter=",")
@given(
    rows=st.lists(RANDOM_ROWS, max_size=25) | st.lists(RANDOM_ROWS, min_size=40, max_size=70),
    is_sorted=st.booleans(),
    header=st.sampled_from(
        [
            "epoch,step,loss,val_loss",
            "rank,epoch,step,loss",
            "x,epoch,loss,val_loss",
            "loss,val_loss,lr,x_time",
            "timestamp,step,x,loss",
        ]
    ),
    fraction=st.sampled_from(["", "5,0.5,1,2"]),
    delimiter=st.sampled_from([",", "\t", ";"]),
)
def test_many_rows_at_once_are_read_as_one_by_one(
    rows: list[tuple[int, int, str, str]],
    is_sorted: bool,
    header: str,
    fraction: str,
    delimiter: str,
) -> None:
    if is_sorted:
        rows = [(row[0], number, *row[2:]) for number, row in enumerate(sorted(rows))]
    lines = [header, fraction, *(",".join(map(str, row)) for row in rows), ""]
    content = "\n".join(lines).replace(",", delimiter).encode()
    one_by_one = Followed(FORMAT, "a.csv")
    for line in content.splitlines(keepends=True):
        one_by_one.look(one_by_one.files.get("a.csv", b"") + line)
    at_once = Followed(FORMAT, "a.csv", {"a.csv": content})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "ROWS_AT_ONCE", 20)
        assert repr(at_once.end()) == repr(one_by_one.end())
        assert at_once.index.segments == one_by_one.index.segments
        at_once.look(b"")  # while it is rewritten
        at_once.look(content)
    assert repr(at_once.content()) == repr(one_by_one.content())
