"""FolderRun: a run in a folder ``mlruns``, live and afterwards, locally and in S3."""

import math
import random
import subprocess
import sys
import time
from pathlib import Path

import mlflow_runs
import numpy as np
import pytest
import s3_objects
from memory_store import MemoryStore
from mlflow_runs import ROWS, RUN, WRITER, Logged, run_files
from source_content import content, opened, read

from rule_core.model.segments import SEGMENT_STEPS
from rule_core.modes import ModeKeys
from rule_core.sources.format import Recognized, SourceFolder
from rule_core.sources.mlflow.format import FORMAT
from rule_core.storage.base import FileStatus
from rule_core.storage.local import LocalStore
from rule_core.storage.uri import open_store
from rule_core.trials.trial import Trial


def test_a_run_is_a_trial() -> None:
    index = read(FORMAT, MemoryStore(run_files(ROWS)))
    index.finish()
    trial = Trial.over("run", "memory", index)
    assert trial.steps() == [*range(6)]
    assert trial.tensor_names() == ["grad_norm", "train/loss", "val_loss"]
    assert trial.collection("losses").tensor_names == {"train/loss", "val_loss"}
    assert trial.steps(ModeKeys.EVAL) == [*range(6)]
    assert trial.tensor("grad_norm").value(3)[0] == math.inf
    assert np.isnan(trial.tensor("val_loss").value(4, ModeKeys.EVAL)[0])
    assert not index.file_problems.problems


@pytest.mark.parametrize(
    ("status", "ended"), [(1, None), (2, None), (3, True), (4, True), (5, True)]
)
def test_only_a_final_status_says_that_the_run_has_ended(status: int, ended: bool | None) -> None:
    store = MemoryStore(run_files(ROWS, status=status))
    assert opened(FORMAT, store).sources[0].has_ended() is ended


def test_a_missing_or_partial_description_says_nothing() -> None:
    whole = mlflow_runs.meta(3)
    files = run_files(ROWS)
    for end in range(len(whole)):
        source = opened(FORMAT, MemoryStore({**files, "meta.yaml": whole[:end]})).sources[0]
        assert source.has_ended() is (True if b"status: 3" in whole[:end] else None)
    del files["meta.yaml"]
    assert opened(FORMAT, MemoryStore(files)).sources[0].has_ended() is None


def test_metrics_follow_each_other_in_the_order_of_their_times() -> None:
    batches = [Logged("loss", 10 * batch, 1.0, batch) for batch in range(40)]
    epochs = [Logged("accuracy", 100 * epoch + 95, 0.5, epoch) for epoch in range(4)]
    index = read(FORMAT, MemoryStore(run_files([*batches, *epochs])))
    assert [*index.names["accuracy"]] == [9, 19, 29, 39]  # the batch at which each was logged


def test_values_without_steps_are_numbered() -> None:
    rows = [Logged("loss", 10 * place, float(place), 0) for place in range(4)]
    assert [*read(FORMAT, MemoryStore(run_files(rows))).steps] == [0, 1, 2, 3]


def test_a_resumed_run_begins_a_segment() -> None:
    rows = [*ROWS, Logged("train/loss", 900, 0.5, 2), Logged("train/loss", 901, 0.5, 3)]
    index = read(FORMAT, MemoryStore(run_files(rows)))
    assert [*index.steps] == [*range(6), SEGMENT_STEPS + 2, SEGMENT_STEPS + 3]


class WritingStore(MemoryStore):
    """A store to which another process writes before any file is looked at.

    It may pause between milliseconds only.
    """

    def __init__(self, rows: list[Logged], draw: random.Random) -> None:
        super().__init__(run_files([]))
        self._rows = rows[::-1]
        self._draw = draw
        self._is_logging = False

    def status(self, key: str) -> FileStatus:
        count = self._draw.choice([0, 0, 0, 1, 2, 5])
        for _ in range(max(count, self._is_logging)):
            if self._rows:
                row = self._rows.pop()
                self._is_logging = bool(self._rows) and self._rows[-1].time == row.time
                name = f"metrics/{row.name}"
                self.files = {**self.files, name: self.files.get(name, b"") + row.line}
        return FileStatus(super().status(key).size, time.time() if self._rows else 0.0)


@pytest.mark.parametrize("seed", range(12))
def test_live_and_afterwards_are_alike(seed: int) -> None:
    draw = random.Random(seed)
    rows = []
    logged_at = 0
    for step in range(30):
        logged_at += draw.choice([0, 0, 1, 7])
        rows += [
            Logged(name, logged_at, draw.random(), step) for name in ("lr", "loss", "eval_loss")
        ]
        if step % 5 == 0:
            rows.append(Logged("accuracy", logged_at, draw.random(), step // 5))
    store = WritingStore(rows, draw)
    store.files = {**store.files, "metrics/lr": b""}  # without a file nobody looks
    index = opened(FORMAT, store)
    while len(content(index)) < len(rows):
        index.refresh()
    assert content(index) == content(read(FORMAT, MemoryStore(run_files(rows))))


def test_a_line_counts_when_it_is_complete() -> None:
    files = run_files([])
    whole = b"".join(row.line for row in ROWS if row.name == "grad_norm")
    store = MemoryStore(files)
    index = opened(FORMAT, store)
    for end in range(len(whole) + 1):
        store.files = {**files, "metrics/grad_norm": whole[:end]}
        index.refresh()
        assert len(content(index)) == whole[:end].count(b"\n")
    assert not index.file_problems.problems


@pytest.mark.parametrize(
    "line",
    [
        b"x y z\n",
        b"\xff\xfe\0\n",
        b"1700000000000\n",
        b"1700000000000 0.5 -3\n",
        b"1700000000000 0.5 999999999999999999999\n",
        b"1" * 5000 + b" 1 1\n",
        b"1" * 9_000_000 + b"\n",
        b"1e5 0.5 1\n",
        b"9" * 400 + b" 0.5 1\n",
    ],
    ids=lambda line: f"{line[:20]!r} {len(line)}",
)
def test_damaged_lines_are_skipped_and_reported(line: bytes) -> None:
    before, after = Logged("loss", 10, 0.5, 6).line, Logged("loss", 20, 0.25, 7).line
    index = read(FORMAT, MemoryStore({"metrics/loss": before + line + after}))
    assert [*index.steps] == [6, 7]
    assert len(index.file_problems.problems) == 1


def test_many_large_files_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        Logged(name, 3 * step, float(step), step) for step in range(900) for name in ("a", "b", "c")
    ]
    expected = content(read(FORMAT, MemoryStore(run_files(rows))))
    monkeypatch.setattr("rule_core.sources.mlflow.folder_run.PENDING_BYTES", 1)
    monkeypatch.setattr("rule_core.sources.mlflow.folder_run.LINE_BYTES", 200)
    assert content(read(FORMAT, MemoryStore(run_files(rows)))) == expected
    assert len(expected) == len(rows)


def test_a_metric_that_is_removed_is_reported() -> None:
    store = MemoryStore(run_files(ROWS))
    index = read(FORMAT, store)
    store.files = {key: data for key, data in store.files.items() if "val_loss" not in key}
    index.refresh()
    assert "removed" in "".join(map(str, index.file_problems.problems.values()))


def test_a_run_folder_is_recognized() -> None:
    files = {f"1/{RUN}/{key}": data for key, data in run_files(ROWS).items()}
    names = {"1/": [f"{RUN}/", "meta.yaml", "metrics/"], f"1/{RUN}/": ["meta.yaml", "metrics/"]}

    def recognized(key: str) -> list[Recognized]:
        return [
            *FORMAT.recognize(
                SourceFolder(
                    key,
                    names[key],
                    lambda _: [],
                    lambda name: files.get(key + name, b"experiment_id: '1'\nname: exp\n"),
                )
            )
        ]

    assert recognized("1/") == []
    assert [item.key for item in recognized(f"1/{RUN}/")] == [f"1/{RUN}/"]


def test_a_run_in_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    folder = f"1/{RUN}/"
    s3_objects.put(aws_endpoint, "mlruns/", run_files(ROWS[:9], folder))
    index = read(FORMAT, open_store("s3://bucket/mlruns"), folder)
    s3_objects.put(aws_endpoint, "mlruns/", run_files(ROWS, folder, status=3))
    index.refresh()
    assert content(index) == content(read(FORMAT, MemoryStore(run_files(ROWS))))
    assert index.has_ended()


def test_a_run_that_mlflow_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow", reason="mlflow is not installed.")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    command = [sys.executable, "-c", WRITER, f"file:{tmp_path}/mlruns"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path)
    experiment, run = shown.stdout.split()[-2:]
    index = read(FORMAT, LocalStore(tmp_path / "mlruns"), f"{experiment}/{run}/")
    assert index.has_ended()
    mlflow_runs.check_written(content(index))
