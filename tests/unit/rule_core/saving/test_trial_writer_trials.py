"""Trials that a writer begins, takes up again, shares with other workers and ends."""

import json
from pathlib import Path
from typing import Any

import hooked
import pytest
import rawtrial
from memory_store import MemoryOutput

from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError
from rule_core.model.collection import Collection
from rule_core.saving.trial_writer import TrialWriter
from rule_core.storage import TrialOutput
from rule_core.storage.local_output import LocalOutput
from smdebug import modes


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def test_a_trial_is_written_to_a_store_of_ones_own(tmp_path: Path) -> None:
    files: dict[str, bytes] = {}
    with TrialWriter(MemoryOutput(files, "mine"), collections={"c": "w"}) as writer:
        writer.step(0, {"w": 1.5})
    assert sorted(files) == [
        rawtrial.collections_key(),
        rawtrial.event_key(0),
        rawtrial.index_key(0),
        rawtrial.TRAINING_JOB_END,
    ]
    assert hooked.opened(rawtrial.write(tmp_path, files)).tensor("w").value(0).tolist() == [1.5]
    message = (
        r"^Folder 'mine' holds the trial of a training job that has ended\. "
        r"Choose another folder, remove this one, or pass resume=True to continue it\.$"
    )
    with pytest.raises(SMDebugRuntimeError, match=message):
        TrialWriter(MemoryOutput(files, "mine"))


def test_a_trial_that_this_worker_has_written_to_is_refused(tmp_path: Path) -> None:
    TrialWriter(tmp_path, end_job=False, num_workers=2).close()
    with pytest.raises(SMDebugRuntimeError, match=r" holds a trial that worker_0 has written to\."):
        TrialWriter(tmp_path)
    TrialWriter(tmp_path, worker="worker_1", num_workers=2)


def test_steps_without_collections_are_a_trial_too(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, {rawtrial.index_key(2000): b"{}"})
    with pytest.raises(SMDebugRuntimeError, match=r" holds a trial that worker_0 has written to\."):
        TrialWriter(tmp_path)
    TrialWriter(tmp_path, worker="worker_1", num_workers=2)


def test_a_trial_is_taken_up_again(tmp_path: Path) -> None:
    with TrialWriter(tmp_path, collections=[Collection("a", ["^a"], ["x"])]) as first:
        first.step(1000, {"w": 1.0}, mode=modes.TRAIN, mode_step=7)
        first.step(2000, {"w": 1.0}, mode=modes.EVAL, mode_step=3)
        first.step(2001, {"w": 1.0}, mode=modes.TRAIN, mode_step=8)
    other = TrialWriter(tmp_path, worker="worker_1", resume=True, end_job=False)
    assert (other.last_step, other.last_mode_steps) == (-1, {})
    with TrialWriter(tmp_path, collections={"a": "^b", "c": "c"}, resume=True) as again:
        assert not (tmp_path / rawtrial.TRAINING_JOB_END).exists()
        assert again.last_step == 2001
        assert again.last_mode_steps == {modes.TRAIN: 8, modes.EVAL: 3}
        with pytest.raises(SMDebugValueError, match="must increase, got 2001 after 2001"):
            again.step(2001, {"w": 2.0})
        again.step(2002, {"w": 2.0})
    assert (tmp_path / rawtrial.TRAINING_JOB_END).exists()
    found = json.loads((tmp_path / rawtrial.collections_key()).read_text())["collections"]
    assert {name: (one["include_regex"], one["tensor_names"]) for name, one in found.items()} == {
        "a": (["^b", "^a"], ["x"]),
        "c": (["c"], []),
    }


class Hurried(LocalOutput):
    """An output at which another worker ends the training job right before this one does."""

    def open(self, key: str) -> Any:
        draft = super().open(key)
        if key == rawtrial.TRAINING_JOB_END:
            (self.root / f"{key}.tmp").replace(self.root / key)
        return draft


@pytest.mark.parametrize("output", [LocalOutput, Hurried])
def test_workers_leave_one_by_one(output: type[TrialOutput], tmp_path: Path) -> None:
    make: Any = output
    writers = [
        TrialWriter(make(tmp_path), worker=f"worker_{rank}", num_workers=3) for rank in range(3)
    ]
    ended = []
    for writer in writers:
        # The draft of a mark is no mark.
        rawtrial.write(tmp_path, {"closed/worker_2.tmp": b""})
        writer.close_worker()
        ended.append((tmp_path / rawtrial.TRAINING_JOB_END).exists())
    assert ended == [False, False, True]
    assert [one for one in hooked.files(tmp_path) if one.startswith("closed/")] == []


def test_an_end_that_cannot_be_marked_is_an_error(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path, num_workers=1)
    (tmp_path / f"{rawtrial.TRAINING_JOB_END}.tmp").mkdir()
    with pytest.raises(IsADirectoryError):
        writer.close_worker()
