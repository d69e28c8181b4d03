"""Trials at paths: saved tensors, files in other formats, and paths that hold neither yet."""

import json
import os
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import plugin_source
import pytest
import rawtrial
import s3_objects

from rule_core.reading.source_index import SourceIndex
from rule_core.sources.formats import formats
from rule_core.trials.open_index import open_index
from smdebug.exceptions import SMDebugValueError
from smdebug.trials import create_trial

ROWS = b"0 3.0\n10 2.0\n20 1.5\n"


@pytest.fixture(autouse=True)
def numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A format of another package, installed."""
    plugin_source.install(tmp_path / "site")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *sys.path])
    formats.cache_clear()
    yield
    formats.cache_clear()


@pytest.fixture
def checkpoints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two checkpoints, in which each refresh searches for new sources."""
    monkeypatch.setattr("rule_core.reading.source_index.SEARCH_EVERY_S", 0.0)
    monkeypatch.setattr("rule_core.reading.source_index.SEARCH_SHARE", 0.0)
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    weights = struct.pack("<Q", len(header)) + header + bytes(4)
    files = {f"checkpoint-{step}/model.safetensors": weights for step in (3, 6)}
    rawtrial.write(tmp_path / "run", files)
    return tmp_path / "run"


def steps(text: str) -> list[int]:
    index = open_index(text)
    index.refresh()
    return list(index.steps)


def test_file_and_its_folder_are_the_same_trial(tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "run", {"mine.numbers": ROWS, "notes.md": b"#"})
    assert steps(str(tmp_path / "run")) == [0, 10, 20]
    assert steps(str(tmp_path / "run" / "mine.numbers")) == [0, 10, 20]
    assert steps(f"numbers:{tmp_path}/run") == [0, 10, 20]


def test_named_format_reads_any_file(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, {"log.md": ROWS})
    assert steps(f"numbers:{tmp_path}/log.md") == [0, 10, 20]


def test_link_to_a_file_is_followed(tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "run", {"mine.numbers": ROWS})
    (tmp_path / "latest.numbers").symlink_to(tmp_path / "run" / "mine.numbers")
    assert steps(str(tmp_path / "latest.numbers")) == [0, 10, 20]


def test_saved_tensors_come_first(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, {"mine.numbers": ROWS, rawtrial.collections_key(): b"{}"})
    assert not isinstance(open_index(str(tmp_path)), SourceIndex)
    assert isinstance(open_index(f"numbers:{tmp_path}"), SourceIndex)


@pytest.mark.parametrize("files", [{}, {"notes.md": b"#"}, {"a1.numbers": b"", "a2.numbers": b""}])
def test_folder_without_one_run_is_not_recognised(tmp_path: Path, files: dict[str, bytes]) -> None:
    rawtrial.write(tmp_path / "run", files)
    assert open_index(str(tmp_path / "run")).unrecognized


def test_missing_path_is_not_recognised_yet(tmp_path: Path) -> None:
    assert open_index(str(tmp_path / "no")).unrecognized
    assert open_index(f"numbers:{tmp_path}/no").unrecognized


def test_file_without_a_format(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(b"#" * 5000)
    with pytest.raises(SMDebugValueError, match=r"notes\.md' is in no format that is read as a"):
        open_index(str(path))
    path.write_bytes(b"")
    assert not open_index(str(path)).steps  # its first row may be written soon
    os.utime(path, (0, time.time() - 3600))
    with pytest.raises(SMDebugValueError, match=r"notes\.md' is empty\. The formats are"):
        open_index(str(path))


def test_file_that_appears_in_a_run_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rule_core.reading.source_index.SEARCH_EVERY_S", 0.0)
    monkeypatch.setattr("rule_core.reading.source_index.SEARCH_SHARE", 0.0)
    rawtrial.write(tmp_path, {"train.numbers": b"0 1\n"})
    index = open_index(str(tmp_path))
    index.refresh()
    rawtrial.write(tmp_path, {"val.numbers": b"5 1\n", "other.numbers": b"7 1\n"})
    index.refresh()
    assert list(index.steps) == [0, 5]


def test_checkpoints_wait_for_the_log_of_their_trainer(checkpoints: Path) -> None:
    index = open_index(str(checkpoints))
    index.refresh()
    assert list(index.steps) == [3, 6]
    assert index.settled(index.steps) == []
    rows = [{"step": step, "loss": 1.0} for step in range(1, 7)]
    state = json.dumps({"log_history": rows, "global_step": 6, "max_steps": 9}).encode()
    rawtrial.write(checkpoints, {"checkpoint-6/trainer_state.json": state})
    index.refresh()
    assert index.settled(index.steps) == [1, 2, 3, 4, 5]


def test_checkpoints_without_a_log_are_read_live(checkpoints: Path) -> None:
    index = open_index(str(checkpoints))
    index.refresh()
    index.refresh()
    assert index.settled(index.steps) == [3]


def test_create_trial_waits_for_a_file(tmp_path: Path) -> None:
    class Clock:
        def monotonic(self) -> float:
            return 0.0

        def time(self) -> float:
            return 0.0

        def sleep(self, seconds: float) -> None:
            del seconds
            rawtrial.write(tmp_path / "run", {"mine.numbers": ROWS})

    trial = create_trial(tmp_path / "run", clock=Clock())
    assert trial.steps() == [0, 10]  # the row of the last step may not be complete
    assert trial.tensor("loss").value(10)[0] == 2.0


def test_file_in_s3(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/", {"run/mine.numbers": ROWS, "run/notes.md": b"#"})
    address = f"s3://{s3_objects.BUCKET}/runs"
    assert steps(f"{address}/run") == [0, 10, 20]
    assert steps(f"{address}/run/mine.numbers") == [0, 10, 20]
    assert steps(f"numbers:{address}/run/mine.numbers") == [0, 10, 20]
    assert open_index(f"{address}/run/no.numbers").unrecognized
    trial = create_trial(f"numbers:{address}/run/mine.numbers")
    assert (trial.name, trial.steps()) == ("mine.numbers", [0, 10])
