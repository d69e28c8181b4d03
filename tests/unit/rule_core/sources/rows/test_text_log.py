"""Text logs: patterns of users, progress bars, colours, and patterns that take too long."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_files import Content, Followed, read, recognized

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.format import Recognized
from rule_core.sources.options import LogPattern, SourceOptions
from rule_core.sources.rows import json_lines, line_reader, row_reader, text_log
from rule_core.sources.rows.text_log import FORMAT, what_counts

NANOGPT = (
    b"iter 0: loss 4.25, time 9.00ms, mfu -100.00%\niter 1: loss 4.00, time 9.00ms, mfu 1.00%\n"
)


def followed(content: bytes, *patterns: str) -> Followed:
    own = tuple(LogPattern(f"mine-{place}", text) for place, text in enumerate(patterns))
    return Followed(FORMAT, "log", {"log": content}, SourceOptions(log_patterns=own))


def test_patterns_of_a_user_come_first() -> None:
    log = followed(NANOGPT, r"iter (?P<step>\d+): loss (?P<my_loss>\S+),")
    assert log.end() == {"my_loss": [("0", 4.25), ("1", 4.0)]}


def test_a_value_of_a_user_that_is_no_number() -> None:
    log = followed(
        b"s=1 a=x b=2\ns=2 a=3 b=4\ns=z a=3 b=4", r"s=(?P<step>\w+) a=(?P<a>\S+) b=(?P<b>\S+)"
    )
    assert log.end() == {"a": [("2", 3.0)], "b": [("1", 2.0), ("2", 4.0)]}
    assert log.problems == [
        "log: line 1: 'a' is not a number: 'x'. Such values are skipped.",
        "log: line 3: Its step 'z' is not a whole number >= 0. Such lines are skipped.",
    ]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(?P<step>", "Log pattern 'mine-0' is not a regular expression: missing )"),
        (r"loss (?P<loss>\d+)", "needs a group of the step"),
        (r"step (?P<step>\d+)", "needs a group of a number"),
        ("(?P<step>a{1000}{1000}{1000})(?P<b>c)", "Pattern"),
    ],
)
def test_patterns_that_cannot_be_used(pattern: str, message: str) -> None:
    with pytest.raises(SMDebugValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        followed(b"", pattern)


def test_a_pattern_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_log, "TIME_LIMIT_S", 0.01)
    log = followed(b"a" * 5000 + b"\n" + NANOGPT, r"(?P<step>(a|a)*)*(?P<b>(a|aa)+)$x")
    assert log.end()["loss"] == [("0", 4.25), ("1", 4.0)]
    assert log.problems == [
        (
            "log: line 1: Pattern 'mine-0' takes more than 0.01 s, and is not used for the rest of "
            "the file. Write it without nested repetitions."
        )
    ]


def test_progress_bars_and_colours() -> None:
    log = b"  1%|#   | 1/100\r\x1b[32miter 5: \x1b[0mloss 4.0, time 9.00ms, mfu 1.00%\r 2%|#\n"
    assert read(FORMAT, log)["loss"] == [("5", 4.0)]


def test_a_line_that_several_processes_print_counts_once() -> None:
    first, second = NANOGPT.splitlines(keepends=True)
    assert read(FORMAT, 4 * first + 4 * second)["loss"] == [("0", 4.25), ("1", 4.0)]


def test_a_resumed_run_goes_on_in_a_segment() -> None:
    steps = [step for step, _ in read(FORMAT, NANOGPT + b"\nrestarted\n" + NANOGPT)["loss"]]
    assert steps == ["0", "1", "0 of segment 2", "1 of segment 2"]


def test_a_log_that_was_restarted() -> None:
    log = followed(NANOGPT)
    log.look()
    assert len(log.look(NANOGPT[:45])["loss"]) == 2
    steps = [step for step, _ in log.look(NANOGPT.replace(b"4.25", b"4.50"))["loss"]]
    assert steps == ["0", "1", "0 of segment 2", "1 of segment 2"]


PIECES = st.lists(
    st.sampled_from(
        [
            "iter 1: loss 4.0, time 1.0ms\n",
            "iter 2: loss nan\n",
            "step 2: train loss 3.1, val loss inf\n",
            "steps: 3 loss: 1e5\r",
            "iteration 3/ 9 | lm loss: 1.0E+01 | grad norm: x |\n",
            "iteration 99999999999999999999/ 9 | lm loss: 1 |\n",
            "\x1b[31m",
            "step:",
            "\n",
            "é",
        ]
    ),
    max_size=12,
)


@given(pieces=PIECES, cuts=st.lists(st.integers(0, 300), max_size=6))
def test_reading_in_pieces_is_reading_at_once(pieces: list[str], cuts: list[int]) -> None:
    content = "".join(pieces).encode()
    log = Followed(FORMAT, "log")
    before: Content = {}
    for cut in sorted(cuts):
        now = log.look(content[:cut])
        for name, values in before.items():
            assert repr(now[name][: len(values)]) == repr(values)
        before = now
    log.files["log"] = content
    assert repr(log.end()) == repr(read(FORMAT, content))


def test_what_is_recognized_by_one_format_alone() -> None:
    files = {
        "a.log": b"starting\n" + NANOGPT,
        "b.log": b"starting\n",
        "c.log": b'{"step": 1, "loss": 2}\n' + NANOGPT,
        "d.csv": NANOGPT,
        "log": NANOGPT,
        "log.txt": NANOGPT,
        "slurm-17.out": b'{"x": 1} is not alone\n' + NANOGPT,
        "train_gpt2.txt": NANOGPT,
        "readme.txt": NANOGPT,
        "z.log": b"\x00\xff" * 1000,
    }
    assert recognized(FORMAT, files) == [
        Recognized("text-log", key, "its lines count iter, with numbers beside the count")
        for key in ("a.log", "log", "log.txt", "readme.txt", "slurm-17.out", "train_gpt2.txt")
    ]
    assert [item.key for item in recognized(json_lines.FORMAT, files)] == ["c.log"]


def test_what_collectors_wrote_is_recognized_by_its_content() -> None:
    lines = [f"step {step} loss: 0.{step}" for step in range(1, 9)]
    wrapped = "".join(f'{{"time": "10:00", "message": "{line}"}}\n' for line in lines).encode()
    exported = "".join(f'17,"{line}"\n' for line in ["timestamp,message", *lines]).encode()
    plain = "\n".join(lines).encode()
    files = {
        "a.json": wrapped,
        "b.jsonl": wrapped,
        "c.csv": exported.replace(b'17,"timestamp,message"', b"timestamp,message"),
        "d.csv": plain,
        "e.jsonl": plain,
        "f.jsonl": wrapped.replace(b'"time"', b'"step": 1, "time"'),
        "g.bin": wrapped,
    }
    assert [item.key for item in recognized(FORMAT, files)] == ["a.json", "b.jsonl", "c.csv"]
    assert read(FORMAT, wrapped) == read(FORMAT, files["c.csv"]) == read(FORMAT, plain)


def test_headings_without_numbers_are_kept_over_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_reader, "PIECE_BYTES", 7)
    log = b"Epoch 1\nTest Error:\n Accuracy: 50.0%, Avg loss: 1.5\nTraining\nnothing of note\n"
    assert read(FORMAT, b"\n" * 9 + log + b"Epoch 2\n loss: 0.25\n" + log[:8]) == {
        "test/Accuracy": [("1", 50.0)],
        "test/Avg loss": [("1", 1.5)],
        "loss": [("2", 0.25)],
    }


@pytest.mark.parametrize("heading", ["Validation", "\x1b[KTest"])
@pytest.mark.parametrize("time", ["", "2026-05-01 12:00:01,123 - "])
def test_headings_are_read_with_a_time_or_without(heading: str, time: str) -> None:
    lines = ["Epoch 1 loss 0.5", f"{time}{heading}", *[f"{time}prose"] * 4, "loss 0.25"]
    names = [*read(FORMAT, "\n".join(lines).encode())]
    assert names[0] == "loss"
    assert names[1].endswith("/loss")


def test_only_lines_that_may_be_rows_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def add_line(lines: text_log.TextLines, line: str, record: object) -> None:
        del lines, record
        seen.append(line)

    monkeypatch.setattr(text_log, "_OPENING_LINES", 0)
    monkeypatch.setattr(text_log.TextLines, "add_line", add_line)
    read(FORMAT, b"some prose\n2026-05-01 12:00:01 more prose\n" * 9 + b"loss 1\n----\nloss 2\n")
    assert seen == [*[""] * 5, "loss 1", "----", "loss 2"]


def test_a_log_with_a_name_in_each_line_takes_bounded_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(row_reader, "MAX_NAMES", 20)
    log = followed(
        "".join(
            f"step {n} loss 0.5 x{'ab'[n % 2]}{chr(97 + n % 26)}_y: {n}.5\n" for n in range(60)
        ).encode()
    )
    assert len(log.end()["loss"]) == 60
    assert len(log.content()) == 20
    assert log.problems == ["log: It names more than 20 series. Others are skipped."]


def test_a_loss_that_is_not_finite_needs_no_digit_in_its_line() -> None:
    log = b"Epoch 1\n  loss: 0.5\nEpoch 2\n  loss: inf\nEpoch 3\n  loss: -Infinity\n"
    assert read(FORMAT, log)["loss"] == [("1", 0.5), ("2", math.inf), ("3", -math.inf)]


def test_settings_and_source_code_before_the_first_row() -> None:
    log = b"cfg.steps=50000 (50K)\nnum_frames=9131\nval_loss = 0.0\nlr=0.5\nstep:10 val_loss:2.5\n"
    assert read(FORMAT, log) == {"val_loss": [("10", 2.5)]}


def test_an_epoch_that_is_announced_again_begins_another_run() -> None:
    run = b"Epoch 0/1\ntrain loss: 2.5\nEpoch 1/1\ntrain loss: %d\n"
    log = followed(run % 1 + run % 3)
    steps = [step for step, _ in log.end()["train loss"]]
    assert steps == ["0", "1", "0 of segment 2", "1 of segment 2"]


def test_an_epoch_that_was_broken_off_and_announced_again_is_one_epoch() -> None:
    log = b"Epoch 0/2\ntrain loss: 3\nEpoch 0/2\ntrain loss: 2.5\nEpoch 1/2\ntrain loss: 1.5\n"
    assert read(FORMAT, log)["train loss"] == [("0", 3.0), ("1", 1.5)]


@pytest.mark.parametrize(
    ("opening", "row"),
    [
        pytest.param("Using CPU\n", "epoch 0, loss: {}\n", id="a line without digits"),
        pytest.param("2026-05-01 12:00:01 Loading\n", "epoch 0, loss: {}\n", id="with a time"),
        pytest.param("lr = 0.{}\n", "epoch 0, loss: {}\n", id="a setting"),
        pytest.param("Loading\nEpoch 0:\n", "  loss: {}\n", id="an epoch that is announced"),
        pytest.param("step    loss    acc\n", "0    {}    0.5\n", id="the header of a table"),
        pytest.param("Fold\n", "Epoch 0: 100%|###| 9/9 [00:01<00:00, loss={}]\n", id="a bar"),
        pytest.param("Fold\n", 2 * "Epoch 0: 100%|###| 9/9 [00:01<00:00, loss={0}]\r\n", id="bars"),
    ],
)
def test_a_run_that_is_opened_as_the_first_one_begins_a_segment(opening: str, row: str) -> None:
    runs = (opening.format(run) + row.format(value) for run, value in enumerate((2.5, 1.5, 1.5)))
    values = read(FORMAT, "".join(runs).encode())["loss"]
    step = "9" if "9/9" in row else "0"
    segments = [step, f"{step} of segment 2", f"{step} of segment 3"]
    assert values == [*zip(segments, (2.5, 1.5, 1.5), strict=True)]


def test_a_line_that_recurs_within_a_run_opens_none() -> None:
    rows = "saving\nepoch 0, loss: 3\nsaving\nepoch 1, loss: 2\nsaving\nepoch 1, loss: 5\n"
    assert read(FORMAT, rows.encode()) == {"loss": [("0", 3.0), ("1", 2.0)]}


def test_an_evaluation_below_such_a_line_is_of_the_same_run() -> None:
    log = b"ready\nepoch 0, loss: 3\nready\nepoch 0, val_loss: 2\nepoch 1, loss: 0\n"
    assert read(FORMAT, log) == {"loss": [("0", 3.0), ("1", 0.0)], "val_loss": [("0", 2.0)]}


def test_rows_without_a_counter_are_one_run() -> None:
    assert read(FORMAT, b"ready\nloss: 3\nready\nloss: 0\n")["loss"] == [("0", 3.0), ("1", 0.0)]


def test_a_row_that_is_not_counted_anew_begins_no_run() -> None:
    log = b"ready\n[1/9] cost: 3\nready\n 9%|#| 1/9 [00:00<?]\ncost: 2\n[2/9] cost: 1\n"
    assert read(FORMAT, log) == {"cost": [("1", 3.0), ("2", 1.0)]}


def test_settings_of_another_run_are_no_rows() -> None:
    run = b"Training\nhidden: %d\nEpoch 1\nloss: 2\nEpoch 2\nloss: 1\n"
    assert read(FORMAT, run % 5 + run % 7).keys() == {"loss"}


def test_a_list_behind_rows_is_a_summary() -> None:
    log = b"epoch 1, loss: 3\nacc: [0.25, 0.5, 0.75, 1.0]\nepoch 2, loss: 2\n"
    assert read(FORMAT, log) == {"loss": [("1", 3.0), ("2", 2.0)]}


def test_an_evaluation_at_the_end_is_no_row_of_its_epoch() -> None:
    bar = b"9/9 [====] - 0s - loss: %s"
    log = b"Epoch 1/1\n" + bar % b"2.5" + b" - val_loss: 3\n" + bar % b"7.5" + b"\n"
    assert read(FORMAT, log)["loss"] == [("1", 2.5)]


def test_bars_that_are_complete_are_epochs() -> None:
    bars = b"".join(b"9/9 - 2s - loss: %d - acc: 0.%d\n" % (x, x) for x in (3, 2, 1))
    assert read(FORMAT, bars)["loss"] == [("9", 3.0), ("18", 2.0), ("27", 1.0)]


def test_what_is_printed_behind_a_bar() -> None:
    log = b"Epoch:   0%|   | 0/10 [00:00<?, ?it/s]avg_loss: 3.5\navg_loss: 2.5\navg_loss: 1.5\n"
    assert read(FORMAT, log)["avg_loss"] == [("0", 3.5), ("1", 2.5), ("2", 1.5)]


@pytest.mark.parametrize(
    "table",
    [
        "step    loss     acc\n10     [2.5e-1]    [5.0e-1]\n",
        "  step  loss  acc  time\n    10  0.25 0.500 12.5\n",
        "| step | Batch | Validation |\n|      | loss  | acc        |\n| 10 | 0.25 | 0.5 |\n",
        "step    when        loss    acc\n10    01:02:03    0.25    0.5\n",
        "  step    loss    best     acc\n    10    0.25             0.5\n",
        "step   loss    acc: 100% ━━━ 9/9 8.5it/s\n  10   0.25    0.5: 100% ━━━ 9/9 8.5it/s\n",
        "[2026/02/21 14:22:58] - step \t loss\t \tacc\n[2026/02/21 14:22:59] - 10 \t 0.25 \t 0.5\n",
        "2026-02-21 14:22:58 INFO - step  loss  acc\n2026-02-21 14:22:59 INFO - 10  0.25  0.5\n",
    ],
    ids=[
        *("brackets", "cells that touch", "two lines of names", "a time", "no cell", "bars"),
        *("times before rows", "loggers before rows"),
    ],
)
def test_tables(table: str) -> None:
    content = read(FORMAT, table.encode())
    assert [("10", 0.25)] in content.values()
    assert [("10", 0.5)] in content.values()


def test_abbreviations_of_known_writers() -> None:
    assert read(FORMAT, b"s:0 tel:11.5\ns:0 trl:11.25 lr:0.5 norm:15.5\ns:1 trl:10.5\n") == {
        "val_loss": [("0", 11.5)],
        "train_loss": [("0", 11.25), ("1", 10.5)],
        "lr": [("0", 0.5)],
        "grad_norm": [("0", 15.5)],
    }
    assert read(FORMAT, b"0m 23s (- 16m 52s) (1500 2%) 3.5\n") == {"loss": [("1500", 3.5)]}


def test_any_ending_but_those_of_code() -> None:
    files = dict.fromkeys(("a.expected", "train.py", "b.log", "x.yaml"), NANOGPT)
    assert [item.key for item in recognized(FORMAT, files)] == ["a.expected", "b.log"]


@pytest.mark.parametrize(
    "line",
    [
        "Step= {n}, Dmax= 0.5 nm, Epot= -{n}.5 atom= 9",
        "step {n} jitter_ms {n}.5",
        "iter {n} energy {n}.5",
    ],
)
def test_counted_numbers_that_nothing_calls_a_training(line: str) -> None:
    text = "\n".join(line.format(n=n) for n in range(9))
    assert not recognized(FORMAT, {"a.log": text.encode()})


def test_the_first_rows_of_the_summary_of_coco() -> None:
    row = " Average %s @[ IoU=%s | area=%6s | maxDets=100 ] = 0.%d\n"
    log = "Epoch 3 loss 0.5\n" + "".join(
        row % (what, iou, area, place)
        for place, (what, iou, area) in enumerate(
            [
                ("Precision  (AP)", "0.50:0.95", "all"),
                ("Precision  (AP)", "0.50     ", "all"),
                ("Precision  (AP)", "0.50:0.95", "small"),
                ("Recall     (AR)", "0.50:0.95", "all"),
            ],
            1,
        )
    )
    assert read(FORMAT, log.encode()) == {
        "loss": [("3", 0.5)],
        "AP": [("3", 0.1)],
        "AR": [("3", 0.4)],
    }


def test_the_bar_of_a_validation_does_not_end_that_of_the_epoch() -> None:
    bar = b"Epoch %d: 100%%|##| 9/9 [00:01<00:00, v_num=0, train_loss=1.5, val_loss=%s]\n"
    validation = b"Validation DataLoader 0: 100%|##| 4/4 [00:01<00:00, 60.20it/s]\n"
    states = [(0, b"3.5"), (0, b"2.5"), (1, b"2.5"), (1, b"1.5")]
    bars = [bar % state for state in states]
    log = bars[0] + validation + bars[1] + bars[2] + validation + bars[3]
    assert read(FORMAT, log)["val_loss"] == [("9", 2.5), ("18", 1.5)]


def test_an_evaluation_counts_its_own_batches() -> None:
    log = b"Epoch 1/8\nstep 900/938 - loss: 0.5\nEval begin\nstep 157/157 - loss: 0.25\n"
    assert read(FORMAT, log)["eval/loss"] == [("900", 0.25)]


def test_a_heading_says_the_mode_of_the_lines_below_it() -> None:
    log = b"Testing\naccuracy: 0.5\n" + b"layer: 0.25\n" * 40 + b"loss: 2.5\nloss: 1.5\n"
    content = read(FORMAT, log)
    assert "testing/accuracy" in content or "test/accuracy" in content or "eval/accuracy" in content
    assert [value for _, value in content["loss"]] == [2.5, 1.5]


def test_a_line_between_the_rows_of_a_table_moves_no_column() -> None:
    log = b"  step    loss    best     acc\nsaved to  disk\n    10    0.25             0.5\n"
    assert read(FORMAT, log) == {"loss": [("10", 0.25)], "acc": [("10", 0.5)]}


def test_the_bar_of_an_evaluation_after_the_training() -> None:
    bar = "{0}/{0} [======] - 2s - loss: {1} - acc: 0.5\n"
    fitted = "".join(f"Epoch {x}/2\n" + bar.format(9, 1 / x) for x in (1, 2))
    content = read(FORMAT, f"{fitted}{bar.format(3, 0.75)}".encode())
    assert content["loss"] == [("1", 1.0), ("2", 0.5)]
    assert content["eval/loss"] == [("2", 0.75)]
    again = read(FORMAT, f"Epoch 1/2\n{bar.format(9, 1.0)}Epoch 2/2\n{bar.format(3, 0.5)}".encode())
    assert again["loss"] == [("1", 1.0), ("2", 0.5)]


def test_a_bar_that_a_message_interrupts_is_one_row() -> None:
    log = "".join(
        f"Epoch {x}/2\n\r9/9 ━━━ 2s - acc: 0.5 - loss: 0.75\n"
        f"Epoch {x}: val_loss improved from 2.5 to 1.5, saving model to best.keras\n"
        f"\r9/9 ━━━ 2s - acc: 0.5 - loss: 0.{x} - val_loss: 0.5\n"
        for x in (1, 2)
    )
    content = read(FORMAT, log.encode())
    assert content["loss"] == [("1", 0.1), ("2", 0.2)]
    assert content["val_loss"] == [("1", 0.5), ("2", 0.5)]


def test_bars_of_other_work_do_not_count_the_table_below() -> None:
    log = (
        "train: Scanning 'data/train.cache' images and labels... 12 found: 100%|##| 48/48 [0:01]\n"
    )
    for x in (1, 2, 3):
        log += f"  Epoch  GPU_mem  box  total\n  {x}/3  2.1G  0.7  0.{x}: 100%|##| 9/9 [0:01]\n"
        log += "  Class  Images  P  mAP50: 100%|##| 4/4 [0:01]\n  all  195  0.5  0.25\n"
    content = read(FORMAT, log.encode())
    assert content["total"] == [("1", 0.1), ("2", 0.2), ("3", 0.3)]
    assert [step for step, _ in content["mAP50"]] == ["1", "2", "3"]


def test_an_epoch_that_is_announced_counts_before_bars_without_numbers() -> None:
    log = "".join(
        f"=====Epoch {x}\n100%|##| 125/125 [0:01]\nEvaluating...\n100%|##| 15/15 [0:01]\n"
        f"Train: loss=0.{x}\nValidation: loss=0.5\n"
        for x in (1, 2)
    )
    assert read(FORMAT, log.encode())["loss"] == [("1", 0.1), ("2", 0.2)]


def test_a_count_between_rulers_counts_within_the_epoch() -> None:
    log = "".join(
        f"**** EPOCH 00{x} ****\n"
        + "".join(f" -- 0{y}0 / 20 --\nmean loss: 0.{x}{y}\n" for y in (1, 2))
        for x in (0, 1)
    )
    assert [step for step, _ in read(FORMAT, log.encode())["mean loss"]] == ["10", "20", "30", "40"]


def test_an_epoch_beside_a_number_without_meaning_counts_the_lines_below() -> None:
    log = "".join(
        f"Training: 100%|##| 4/4 [0:01]\nEpoch: {x} | Epoch Time: 2.5 s\nTrain: loss = 0.{x}\n"
        for x in (1, 2)
    )
    assert read(FORMAT, log.encode())["loss"] == [("1", 0.1), ("2", 0.2)]


def test_a_bar_that_was_printed_into_a_line_does_not_count() -> None:
    lines = [f"Ep {x}/9 | loss: 0.{x} | best: 0.5" for x in range(1, 7)]
    lines[4] += "Batches:  80%|###  | 16/20 [00:03<00:00,  5.29it/s]"
    content = read(FORMAT, "\n".join(lines).encode())
    assert [step for step, _ in content["loss"]] == ["1", "2", "3", "4", "5", "6"]


def test_numbers_of_unknown_names_beside_an_epoch() -> None:
    line = "epoch {0} | D^2=+0.5 | cross=0.{0} rr=0.25 | 99.5s\n"
    first, second = ("".join(line.format(x) for x in epochs) for epochs in ((1, 2, 3), (1, 2)))
    content = read(FORMAT, f"n_runs: 2\n{first}=== another run ===\n{second}".encode())
    steps = ["1", "2", "3", "1 of segment 2", "2 of segment 2"]
    assert [step for step, _ in content["cross"]] == steps
    assert content["cross"][-1] == (steps[-1], 0.2)


def test_lines_that_are_nothing_but_a_count() -> None:
    log = "".join(
        f"**** EPOCH 00{x} ****\n"
        + "".join(f" ---- batch: 0{y}0 ----\nmean loss: 0.{x}{y}\n" for y in (1, 2))
        for x in (0, 1)
    )
    assert read(FORMAT, log.encode())["mean loss"] == [
        ("10", 0.01),
        ("20", 0.02),
        ("30", 0.11),
        ("40", 0.12),
    ]


def test_an_evaluation_that_is_told_again_leaves_the_steps() -> None:
    first, second = (
        "".join(
            f"Epoch {x}{total}: loss=0.{x}, val_loss=0.{y}\n" for x, y in ((1, 7), (2, 5), (3, 6))
        )
        for total in ("", "/9")
    )
    content = read(
        FORMAT, f"{first}Loaded the model from epoch 2 (val_loss=0.5)\n{second}".encode()
    )
    steps = ["1", "2", "3", "1 of segment 2", "2 of segment 2", "3 of segment 2"]
    assert [step for step, _ in content["loss"]] == steps


def test_lists_in_the_cells_of_a_table() -> None:
    log = (
        "Step      Train loss              Test loss               Test metric\n"
        "0         [1.50e-02, 1.25e-01]    [2.50e-02, 2.25e-01]    []\n"
        "100       [0.50e-02, 0.25e-01]    [0.75e-02, 0.75e-01]    []\n"
    )
    assert read(FORMAT, log.encode()) == {
        "Train loss": [("0", 0.015), ("100", 0.005)],
        "Train loss.1": [("0", 0.125), ("100", 0.025)],
        "Test loss": [("0", 0.025), ("100", 0.0075)],
        "Test loss.1": [("0", 0.225), ("100", 0.075)],
    }


@pytest.mark.parametrize(
    "line",
    ["Episode {0}    Reward  -{1}", "episode:{0},reward_sum:{1}.0", "TIMESTEP {0} / REWARD {1}"],
)
def test_rewards_without_fractions_are_those_of_a_training(line: str) -> None:
    assert what_counts("\n".join(line.format(row, 90 - row) for row in range(1, 9)))


def test_options_of_commands_count_nothing() -> None:
    command = "python train.py --epoch={0} --loss_mode=wgan --n_d=5"
    assert not what_counts("\n".join(command.format(row) for row in (25, 200, 300, 500)))


def test_the_first_set_of_xgboost_is_the_training_set() -> None:
    line = "[0]\tvalidation_0-rmse:3.14\tvalidation_0-mae:2.5\tvalidation_1-rmse:3.37\n"
    assert [*read(FORMAT, line.encode())] == [
        *("train/validation_0-rmse", "train/validation_0-mae", "validation_1-rmse")
    ]
    assert [*read(FORMAT, b"[0]\tvalidation_0-rmse:3.14\n")] == ["validation_0-rmse"]


BACKSPACES = 50 * "\b"


def painted(done: int, loss: float) -> str:
    """Return a bar of two batches, with the count in its middle, as a file has it."""
    return f" [=>..]  Step: 60ms | Loss: {loss}{30 * ' '}{BACKSPACES} {done}/2 "


def test_bars_whose_count_is_painted_over_them() -> None:
    epochs = "".join(
        f"Epoch: {epoch}\n"
        f"{painted(1, 9)}\r{painted(2, loss)}\n"
        f"{painted(1, 8)}\r{painted(2, loss + 1)}\nSaving..\n"
        for epoch, loss in enumerate((4.5, 3.5, 2.5))
    )
    content = read(FORMAT, epochs.encode())
    assert content["Loss"] == [("0", 4.5), ("1", 3.5), ("2", 2.5)]
    assert content["eval/Loss"] == [("0", 5.5), ("1", 4.5), ("2", 3.5)]
    cut = read(FORMAT, epochs[: epochs.index(painted(2, 2.5)) - 1].encode())
    assert cut["Loss"] == content["Loss"][:2]


def test_bars_with_the_count_in_their_middle() -> None:
    bar = " [======= {0}/{0} ======>.]  Step: 39ms | Loss: {1} | Acc: 50.0% (9/18)\n"
    epochs = "".join(
        f"Epoch: {epoch}\n{bar.format(9, loss)}{bar.format(3, loss + 1)}"
        for epoch, loss in enumerate((4.5, 3.5))
    )
    content = read(FORMAT, epochs.encode())
    assert content["Loss"] == [("0", 4.5), ("1", 3.5)]
    assert content["eval/Loss"] == [("0", 5.5), ("1", 4.5)]
