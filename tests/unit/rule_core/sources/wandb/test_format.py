"""Runs of Weights & Biases: their history and system metrics, cut, damaged and hostile."""

import math
import random
import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import wandb_files
from hypothesis import given, settings
from hypothesis import strategies as st
from source_files import Content, Followed, read, recognized
from wandb_files import EXIT, HISTORY, RUN, STATS, field, history, item, log, row

from rule_core.sources.contract import Row, SourceContract
from rule_core.sources.format import Recognized
from rule_core.sources.recognize import recognize, source_folder
from rule_core.sources.wandb.format import FORMAT, MAX_VALUE
from rule_core.storage.local import LocalStore
from rule_core.trials.trial import Trial

ROWS = [(step, {"train/loss": 1 / (step + 1), "val/loss": 0.5}) for step in range(0, 3000, 10)]
WHOLE = wandb_files.run(ROWS)
READ: Content = read(FORMAT, WHOLE)


class TestWandb(SourceContract):
    source_format = FORMAT

    def write(self, folder: Path, rows: Sequence[Row]) -> None:
        (folder / "run-abc.wandb").write_bytes(wandb_files.run(rows))


def stats(values: Mapping[str, Any], seconds: int = 1_700_000_005) -> bytes:
    items = b"".join(item(name, value, 3) for name, value in values.items())
    return field(STATS, field(2, field(1, seconds)) + items)


def test_a_run_is_a_trial() -> None:
    followed = Followed(FORMAT, "run-abc.wandb", {"run-abc.wandb": WHOLE})
    content = followed.end()
    assert content == {
        "train/loss": [(str(step), 1 / (step + 1)) for step, _ in ROWS],
        "val/loss": [(str(step), 0.5) for step, _ in ROWS],
    }
    trial = Trial.over("run", "memory", followed.index)
    assert trial.collection("losses").tensor_names == {"train/loss", "val/loss"}
    assert followed.index.tensors.row_time(20, "worker_0@TRAIN") == 1.7e9 + 20
    assert not followed.problems


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([item("loss", 2)], {"loss": 2.0}),
        ([item(["train", "deep", "loss"], 2.5)], {"train/deep/loss": 2.5}),
        ([item(["train"], {"loss": 2, "b": {"c": 3}})], {"train/loss": 2.0, "train/b/c": 3.0}),
        ([item(["loss"], b"NaN"), item(["lr"], b"-Infinity")], {"loss": math.nan, "lr": -math.inf}),
        ([item(["loss"], "NaN"), item(["lr"], 1e-5)], {"loss": math.nan, "lr": 1e-5}),
        ([item(["loss"], 10**400)], {"loss": math.inf}),
        (
            [item(["loss"], 1.0), item(["t"], "x"), item(["ok"], True), item(["no"], None)],
            {"loss": 1.0},
        ),
        ([item(["loss"], 1.0), item(["_runtime"], 2.0), item(["_wandb", "x"], 1)], {"loss": 1.0}),
        (
            [item(["loss"], 1.0), item(["epoch"], 2.5), item(["train"], {"epoch": 2.5})],
            {"loss": 1.0},
        ),
        ([item(["loss"], 1.0), item(["h"], {"_type": "histogram", "n": 3})], {"loss": 1.0}),
        (
            [
                item(["h", "n"], 3),
                item(["loss"], 1.0),
                item(["h", "_type"], "table"),
                item(["h2"], 4),
            ],
            {"loss": 1.0, "h2": 4.0},
        ),
        ([item(["loss"], 1.0), item(["big"], {"n": 1, "x": "x" * MAX_VALUE})], {"loss": 1.0}),
        ([item(["loss"], 1.0), item(["x" * 2000], 1.0)], {"loss": 1.0}),
        ([item(["loss"], b"1.0" + b" " * 200)], {"loss": 1.0}),
        ([item(["loss"], 1.0), field(1, b""), item([""], 3.0), item(["y"], b"")], {"loss": 1.0}),
        ([item(["päth/ß"], 1.5), item(["bad"], b"{")], {"päth/ß": 1.5}),
    ],
)
def test_items(items: Sequence[bytes], expected: Mapping[str, float]) -> None:
    content = read(FORMAT, log(history(3, *items)))
    assert content.keys() == expected.keys()
    assert all(repr(content[name]) == repr([("3", value)]) for name, value in expected.items())


@pytest.mark.parametrize(
    ("record", "step"),
    [
        (history(None, item(["loss"], 1.0), item(["_step"], 7)), "7"),
        (history(0, item(["loss"], 1.0), item(["_step"], 7)), "0"),
        (history(300, item(["loss"], 1.0)), "300"),
    ],
)
def test_step_is_that_of_the_row(record: bytes, step: str) -> None:
    assert read(FORMAT, log(record)) == {"loss": [(step, 1.0)]}


@pytest.mark.parametrize("step", [None, 2**64 - 1])
def test_row_without_a_step_is_reported_once(step: int | None) -> None:
    bad = history(step, item(["loss"], 1.0))
    followed = Followed(FORMAT, "r", {"r": log(row(1, {"loss": 2.0}), bad, bad)})
    assert followed.end() == {"loss": [("1", 2.0)]}
    assert len(followed.problems) == 1
    assert "The row has no step, or a negative one" in followed.problems[0]


@pytest.mark.parametrize("rest", [item(["lr"], 1.0)[:-1], b"\n\x7f", b"\x0b", b"\x1d\0\0"])
def test_row_that_is_no_message_is_reported_once(rest: bytes) -> None:
    bad = field(HISTORY, item(["_step"], 2) + item(["loss"], 1.0) + rest)
    followed = Followed(FORMAT, "r", {"r": log(row(1, {"loss": 2.0}), bad, bad)})
    assert followed.end() == {"loss": [("1", 2.0)]}
    (problem,) = followed.problems
    assert problem.endswith("The record is not one of Weights & Biases. Such records are skipped.")


def test_system_metrics_have_the_step_of_the_latest_row() -> None:
    first, second = {"cpu": 1.0}, {"cpu": 2.0, "gpu.0.temp": 50}
    records = [stats(first), row(4, {"loss": 1.0}), stats(first), stats(second)]
    records += [row(5, {"loss": 1.0}), stats(second), row(6, {"val/loss": 1.0})]
    assert read(FORMAT, log(*records)) == {
        "loss": [("4", 1.0), ("5", 1.0)],
        "system/cpu": [("4", 1.0), ("5", 2.0)],
        "system/gpu.0.temp": [("4", 50.0), ("5", 50.0)],
        "val/loss": [("6", 1.0)],
    }


def test_a_resumed_run_begins_a_segment_only_if_its_step_goes_back() -> None:
    rows = [row(step, {"loss": 1.0}) for step in (0, 1, 2, 50, 51, 1, 2)]
    steps = [step for step, _ in read(FORMAT, log(*rows))["loss"]]
    assert steps == ["0", "1", "2", "50", "51", "1 of segment 2", "2 of segment 2"]


def test_the_record_of_the_exit_ends_the_run() -> None:
    followed = Followed(FORMAT, "r")
    followed.look(log(row(1, {"loss": 1.0})))
    (source,) = followed.index.sources
    assert source.has_ended() is None
    followed.look(log(row(1, {"loss": 1.0}), field(EXIT, b"")))
    assert source.has_ended() is True


def test_settings_are_not_read() -> None:
    assert b"SECRET" in WHOLE
    assert b"batch_size" in WHOLE
    assert READ.keys() == {"train/loss", "val/loss"}


@given(st.integers(0, len(WHOLE)))
@settings(max_examples=30)
def test_a_cut_gives_a_prefix(cut: int) -> None:
    for name, series in read(FORMAT, WHOLE[:cut]).items():
        assert series == READ[name][: len(series)]


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=8))
@settings(max_examples=30)
def test_mutated_log_gives_a_part(changes: list[tuple[int, int]]) -> None:
    data = bytearray(WHOLE)
    for place, byte in changes:
        data[place] = byte
    for name, series in read(FORMAT, bytes(data)).items():
        assert set(series) <= set(READ[name])  # checksums leave nothing that was not written


def mutated(record: bytes, draw: random.Random) -> bytes:
    data = bytearray(record)
    for _ in range(draw.randint(1, 6)):
        data[draw.randrange(len(data))] = draw.choice(
            [0, 1, 2, 0x7F, 0x80, 0xFF, draw.randrange(256)]
        )
    return bytes(data[: draw.choice([len(data), draw.randrange(len(data))])])


@given(st.randoms(use_true_random=False))
@settings(max_examples=100)
def test_mutated_records_raise_nothing(draw: random.Random) -> None:
    good = history(1, item(["a", "b"], 1.5), item("c", {"d": [1]}), item(["e"], b"NaN"))
    records = [mutated(draw.choice([good, stats({"cpu": 1.0})]), draw) for _ in range(30)]
    followed = Followed(FORMAT, "r", {"r": log(row(1, {"loss": 2.0}), *records)})
    assert followed.end()["loss"] == [("1", 2.0)]


@pytest.mark.parametrize(
    "record",
    [
        history(1, *[item(["a"], b"[" + b"[]," * 20_000 + b"[]]")] * 6),
        history(1, *[item(["a"], b"[" * 60_000)] * 60),
        history(1, *[item(["x" * 900 + str(n)], "") for n in range(4000)]),
        field(HISTORY, b"\n" * (4 << 20)),
        field(HISTORY, field(1, b"\xff" * 10 + b"\x01")),
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ],
    ids=["lists", "depth", "names", "items", "varint", "length"],
)
def test_hostile_records_take_little_memory(record: bytes) -> None:
    data = log(row(1, {"loss": 2.0}), record, record, row(2, {"loss": 2.0}))
    tracemalloc.start()
    try:
        content = read(FORMAT, data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert content["loss"] == [("1", 2.0), ("2", 2.0)]
    assert peak < 64 << 20


def test_damage_is_reported_and_the_next_block_is_read() -> None:
    data = bytearray(WHOLE)
    data[20_000] ^= 1
    followed = Followed(FORMAT, "r", {"r": bytes(data)})
    steps = [int(step) for step, _ in followed.end()["train/loss"]]
    assert steps[0] == 0
    assert steps[-1] == 2990
    assert 30 < len(steps) < 280
    (problem,) = followed.problems
    assert problem.startswith("r: byte 19")
    assert problem.endswith(
        "The log is damaged. Damaged blocks of 32 KiB are skipped from there on."
    )


def test_file_that_was_begun_anew_is_another_segment() -> None:
    followed = Followed(FORMAT, "r")
    followed.look(log(row(0, {"loss": 1.0}), row(1, {"loss": 0.5})))
    content = followed.look(log(row(0, {"loss": 3.0})))
    assert content == {"loss": [("0", 1.0), ("1", 0.5), ("0 of segment 2", 3.0)]}


def test_only_logs_are_recognised() -> None:
    files = {
        "run-a.wandb": WHOLE,
        "run-b.wandb": b"other" + WHOLE,
        "run-a.wandb.synced": b"",
        "c": WHOLE,
    }
    reason = "it is a log of Weights & Biases"
    assert [*recognized(FORMAT, files)] == [Recognized("wandb", "run-a.wandb", reason)]


def test_a_log_is_recognised_when_it_has_rows() -> None:
    start = log(field(1, 1) + field(RUN, field(4, item("logging_step", 5))))
    long_start = log(field(RUN, field(9, b"x" * 100_000)), row(1, {"loss": 1.0}))
    files = {"a.wandb": start, "b.wandb": start[:7], "c.wandb": long_start}
    assert [item.key for item in recognized(FORMAT, files)] == ["c.wandb"]


def test_a_folder_of_wandb_is_one_run(tmp_path: Path) -> None:
    run = tmp_path / "wandb" / "offline-run-20260101_000000-abc"
    for name in ("files", "logs"):
        (run / name).mkdir(parents=True)
    (run / "run-abc.wandb").write_bytes(WHOLE)
    (run / "files" / "metrics.csv").write_text("step,loss\n1,2\n2,1\n")
    (run / "files" / "wandb-summary.json").write_text('{"loss": 1, "_step": 2}')
    (run / "logs" / "debug.log").write_text("2026-01-01 INFO step 1 loss 2\n")
    (tmp_path / "wandb" / "latest-run").symlink_to(run.name)
    store = LocalStore(tmp_path)
    found = recognize(source_folder(store, f"wandb/{run.name}/"))
    (only,) = found.runs
    assert [(item.kind, item.key.rpartition("/")[2]) for _, item in only.sources] == [
        ("wandb", "run-abc.wandb")
    ]
    assert [item.key.rpartition("/")[2] for item in only.set_aside] == ["metrics.csv"]
    assert found.owned == {"files/", "logs/"}
    assert not recognize(source_folder(store, "wandb/")).runs


def test_a_summary_alone_is_no_run(tmp_path: Path) -> None:
    (tmp_path / "wandb-summary.json").write_text('{"loss": 1.0, "_step": 1740}\n')
    (tmp_path / "wandb-metadata.json").write_text('{"os": "Linux"}\n')
    assert not recognize(source_folder(LocalStore(tmp_path), "")).runs
