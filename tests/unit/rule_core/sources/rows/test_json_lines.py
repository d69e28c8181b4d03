"""JSON lines: objects with steps, nested, with bare NaN, cut and damaged."""

import gzip
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory_store import MemoryStore
from source_files import Content, Followed, read, recognized

from rule_core.sources.format import Recognized, Unreadable
from rule_core.sources.recognize import source_folder
from rule_core.sources.rows.json_lines import FORMAT, MAX_DEPTH

# As the fine-tuning of MAE and DeiT leaves it.
MAE = (
    b'{"train_lr": 1e-05, "train_loss": 6.9, "test_loss": 6.5, "epoch": 0, "n_params": 86}\n'
    b'{"train_lr": 2e-05, "train_loss": NaN, "test_loss": Infinity, "epoch": 1, "n_params": 86}\n'
)


def test_epochs_of_mae() -> None:
    assert repr(read(FORMAT, MAE)) == repr(
        {
            "train_lr": [("0", 1e-05), ("1", 2e-05)],
            "train_loss": [("0", 6.9), ("1", math.nan)],
            "n_params": [("0", 86.0), ("1", 86.0)],
            "test_loss": [("0", 6.5), ("1", math.inf)],
        }
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            '{"step": 1, "train": {"loss": 2, "lr": {"a": 3}}}',
            {"train/loss": 2.0, "train/lr/a": 3.0},
        ),
        ('{"step": "1", "loss": "2.5"}', {"loss": 2.5}),
        ('{"global_step/max_steps": "1/9", "loss": 2}', {"loss": 2.0}),
        ('{"step": 1, "data": {"loss": 2}, "config": {"lr": 1}}', {"loss": 2.0}),
        (
            '{"tick": {"num": 1, "mean": 1, "std": 0}, "G": {"num": 9, "mean": 2, "std": 1}}',
            {"G": 2.0},
        ),
        ('{"_step": 1.0, "loss": -Infinity, "_timestamp": 1700000000}', {"loss": -math.inf}),
        (
            '{"step": 1, "ok": true, "name": "x", "none": null, "list": [1], "loss": 2}',
            {"loss": 2.0},
        ),
        ('{"mode": "val", "step": 1, "loss": 2}', {"val/loss": 2.0}),
        (
            '{"step": 1, "data": {"x": [{"name": "loss", "value": 2}, {"name": "a", "value": 3}]}}',
            {"loss": 2.0, "a": 3.0},
        ),
        ('{"step": 1, "loss": 2, "x": [{"name": "loss"}]}', {"loss": 2.0}),
        ('{"step": 1, "image": {"_type": "image-file", "size": 3}, "loss": 2}', {"loss": 2.0}),
        ('{"step": 1, "epoch": 7, "loss": 1e999}', {"loss": math.inf}),
        ('{"current_steps": 1, "epoch": 0.1, "loss": ' + "9" * 400 + "}", {"loss": math.inf}),
        ('{"step": 1, "lo\\u0073s": 2}', {"loss": 2.0}),
        ('  {"step": 1, "loss": 2}  ', {"loss": 2.0}),
        ('{"step": 1, "loss": 2, "' + "x" * 2000 + '": 3}', {"loss": 2.0}),
        ('{"step": 1, "loss": 2' + ', "a": {"b": ' * 2 * MAX_DEPTH + "1" + "}" * 4 * MAX_DEPTH, {}),
    ],
)
def test_objects(line: str, expected: dict[str, float]) -> None:
    content = read(FORMAT, f"{line}\n".encode())
    assert content == {name: [("1", value)] for name, value in expected.items()}


def test_an_evaluation_with_its_epoch_alone_belongs_to_the_step_before() -> None:
    lines = b'{"step": 50, "epoch": 1, "loss": 2}\n{"epoch": 1, "val_loss": 3}\n'
    assert read(FORMAT, lines) == {"loss": [("50", 2.0)], "val_loss": [("50", 3.0)]}


def test_an_object_without_a_step_belongs_to_the_one_before() -> None:
    lines = b'{"step": 50, "loss": 2}\n{"lr": 1}\n'
    assert read(FORMAT, lines) == {"loss": [("50", 2.0)], "lr": [("50", 1.0)]}


def test_a_counter_that_restarts_with_each_epoch() -> None:
    line = b'{"epoch": %d, "iter": %d, "loss": 2}\n'
    lines = b"".join(line % (epoch, count) for epoch in (1, 2) for count in (50, 100))
    assert [step for step, _ in read(FORMAT, lines)["loss"]] == ["50", "100", "150", "200"]


def test_metrics_in_lines_of_their_own() -> None:
    line = b'{"name": "%s", "step": %d, "value": %d}\n'
    lines = b"".join(line % (name, step, step) for name in (b"loss", b"acc") for step in (1, 2))
    series = [("1", 1.0), ("2", 2.0)]
    assert read(FORMAT, lines) == {"loss": series, "acc": series}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"[1]", "It is not a JSON object: '[1]'. Such lines are skipped."),
        (
            b'{"step": 2, "los',
            'It is not a JSON object: \'{"step": 2, "los\'. Such lines are skipped.',
        ),
        (b"\x01\x00", "It is not a JSON object: '\\x01\\x00'. Such lines are skipped."),
        (
            b'{"step": -1, "loss": 1}',
            "Its step -1 is not a whole number >= 0. Such lines are skipped.",
        ),
        (
            b'{"step": [[]], "loss": 1}',
            "Its step [[]] is not a whole number >= 0. Such lines are skipped.",
        ),
        (b"[" * 100_000, None),
        (b'{"a":' * 100_000, None),
        (b'{"step": 2, "loss": ' + b"9" * 5000 + b"}", None),
    ],
)
def test_damage_is_named_once_and_skipped(
    line: bytes, problem: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    content = b'{"step": 1, "loss": 1}\n' + 2 * (line + b"\n") + b'{"step": 3, "loss": 3}\n'
    log = Followed(FORMAT, "log", {"log": content})
    assert log.end() == {"loss": [("1", 1.0), ("3", 3.0)]}
    assert len(caplog.records) == 1 + (b"\xff" in line)  # and that it is not UTF-8
    assert problem is None or log.problems[0] == f"log: line 2: {problem}"


def test_an_object_without_numbers_is_no_damage() -> None:
    log = Followed(FORMAT, "log", {"log": b'{"config": "x"}\n\n{"step": 1, "loss": 1}\n'})
    assert log.end() == {"loss": [("1", 1.0)]}
    assert log.problems == []


def test_a_resumed_run_goes_on_in_a_segment() -> None:
    lines = b"".join(b'{"step": %d, "loss": %d}\n' % (step, step) for step in (1, 2, 3, 2, 3))
    steps = ["1", "2", "3", "2 of segment 2", "3 of segment 2"]
    assert [step for step, _ in read(FORMAT, lines)["loss"]] == steps


def test_a_file_that_is_rewritten_with_the_same_rows_gives_none_twice() -> None:
    lines = [b'{"step": %d, "loss": 1}\n' % step for step in range(5)]
    log = Followed(FORMAT, "log")
    log.look(b"".join(lines[:4]))
    log.look(b"".join(lines[:2]))
    assert len(log.look(b"".join(lines))["loss"]) == 5
    assert log.index.segments == []


LINES = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {},
            optional={
                "step": st.integers(-1, 5) | st.floats() | st.text(max_size=2),
                "epoch": st.integers(0, 3),
                "loss": st.floats() | st.none() | st.booleans() | st.text(max_size=3),
                "a": st.dictionaries(st.text(max_size=2), st.floats()),
            },
        ).map(json.dumps),
        st.text(max_size=5),
    ),
    max_size=6,
)


@given(lines=LINES, cuts=st.lists(st.integers(0, 400), max_size=6))
def test_reading_in_pieces_is_reading_at_once(lines: list[str], cuts: list[int]) -> None:
    content = "\n".join(lines).encode("utf-8", "replace")
    log = Followed(FORMAT, "log")
    before: Content = {}
    for cut in sorted(cuts):
        now = log.look(content[:cut])
        for name, values in before.items():
            assert repr(now[name][: len(values)]) == repr(values)
        before = now
    log.files["log"] = content
    assert repr(log.end()) == repr(read(FORMAT, content))


def test_losses_of_two_sets_need_no_step() -> None:
    line = '{"train_loss": 0.5, "test_loss": 0.75, "n_parameters": 86}\n'
    assert recognized(FORMAT, {"log.txt": 2 * line.encode()})
    assert not recognized(FORMAT, {"log.txt": line.encode()})
    assert not recognized(FORMAT, {"log.txt": 2 * line.replace("86", '"small"').encode()})
    assert not recognized(FORMAT, {"log.txt": 2 * line.replace("test_", "train_b_").encode()})


def test_what_is_recognized() -> None:
    row = b'{"step": 1, "loss": 2}\n'
    files = {
        "a.jsonl": b'{"config": 1}\n' + row,
        "b.jsonl": b'{"prompt": "x", "length": 3}\n',
        "c.json": row,
        "log.txt": MAE,
        "metrics.json": row + row,
        "progress.json": row + row,
        "sensor.ndjson": b'{"epoch": 1731000000, "humidity": 2}\n',
        "run.log.json": row + row,
        "summary_metrics.json": row,
        "train.log": b"starting\n" + row,
        "trainer_state.json": row + row,
        "x.ndjson": row[:-1],
        "y.jsonl": b'{"step": 1}\n',
        "z.jsonl": b"\x00\xff" * 100,
    }
    items = recognized(FORMAT, files)
    assert [item.key for item in items if isinstance(item, Unreadable)] == [
        "b.jsonl",
        "sensor.ndjson",
        "y.jsonl",
    ]
    assert "samples of a data set" in items[1].reason
    assert [(item.key, item.reason) for item in items if isinstance(item, Recognized)] == [
        ("a.jsonl", "its lines are JSON objects with 'step'"),
        ("log.txt", "its lines are JSON objects with 'epoch'"),
        ("metrics.json", "its lines are JSON objects with 'step'"),
        ("progress.json", "its lines are JSON objects with 'step'"),
        ("run.log.json", "its lines are JSON objects with 'step'"),
        ("x.ndjson", "its lines are JSON objects with 'step'"),
    ]


def test_results_of_rule_runner_are_not_recognized() -> None:
    files = {"findings.jsonl": b'{"step": 1, "measured": 2}\n', "rule_result.json": b"{}"}
    assert recognized(FORMAT, files) == []


def test_compressed_lines_are_recognized() -> None:
    lines = gzip.compress(b'{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.5}\n')
    folder = source_folder(MemoryStore({"metrics.jsonl.gz": lines}), "")
    assert [item.key for item in FORMAT.recognize(folder)] == ["metrics.jsonl.gz"]


def test_rows_that_two_processes_write_are_one_run() -> None:
    steps = [step for step in range(0, 200, 10) for _ in range(2)]
    steps[20:] = [100, 110, 100, 120, 110, 130, 120, 140, 130, 140, 150, 160, 150, 170, 160, 170]
    lines = [
        json.dumps({"step": step, "loss": 1 / (1 + step) + 1e-6 * at})
        for at, step in enumerate(steps)
    ]
    read_steps = [int(step) for step, _ in read(FORMAT, "\n".join(lines).encode())["loss"]]
    assert read_steps == [*range(0, 180, 10)]


def test_a_step_that_another_process_repeats_much_later_begins_a_segment() -> None:
    steps = [*(step for step in range(0, 100, 10) for _ in range(2)), 0, 10, 20]
    lines = [json.dumps({"step": step, "loss": 1 / (1 + step)}) for step in steps]
    loss = read(FORMAT, "\n".join(lines).encode())["loss"]
    assert [step for step, _ in loss][-3:] == [f"{step} of segment 2" for step in (0, 10, 20)]
