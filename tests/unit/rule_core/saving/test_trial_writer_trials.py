"""Trials that a writer begins, takes up again, shares with other workers and ends."""

import json
from pathlib import Path
from typing import Any

import hooked
import pytest
import rawtrial
from memory_store import MemoryOutput

from rule_core.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection
from rule_core.saving.trial_writer import TrialWriter
from rule_core.storage.base import TrialOutput
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


def test_a_step_is_written_once_in_each_mode(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"loss": 2.0}, mode=modes.TRAIN)
        writer.step(0, {"loss": 3.0, "score": 1.0}, mode=modes.EVAL, mode_step=7)
        with pytest.raises(
            SMDebugValueError, match=r"This step was written in mode EVAL, TRAIN\.$"
        ):
            writer.step(0, {"loss": 4.0}, mode=modes.EVAL)
        with pytest.raises(
            SMDebugValueError, match=r"This step was written in mode EVAL, TRAIN\.$"
        ):
            writer.step(0, {"loss": 4.0}, mode=modes.TRAIN)
        writer.step(1, {"loss": 1.0}, mode=modes.EVAL)
        with pytest.raises(SMDebugValueError, match=r"got 0 after 1\. .* order\.$"):
            writer.step(0, {"loss": 1.0}, mode=modes.PREDICT)
    assert (tmp_path / "index/000000000/000000000000_worker_0@EVAL.json").exists()
    trial = hooked.opened(tmp_path)
    assert trial.workers() == ["worker_0"]
    assert trial.steps() == [0, 1]
    assert trial.modes_at(0) == {modes.TRAIN: 0, modes.EVAL: 7}
    assert (trial.mode(0), trial.mode(1)) == (modes.TRAIN, modes.EVAL)
    loss = trial.tensor("loss")
    assert [loss.value(0, modes.TRAIN)[0], loss.value(7, modes.EVAL)[0], loss.value(0)[0]] == [
        2,
        3,
        2,
    ]
    assert loss.workers(7, modes.EVAL) == ["worker_0"]
    assert trial.tensor("score").value(0)[0] == 1
    assert loss.steps(modes.EVAL) == [1, 7]


def test_training_is_the_mode_of_a_step_that_was_evaluated_first(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(5, {"loss": 3.0}, mode=modes.EVAL)
        writer.step(5, {"loss": 2.0}, mode=modes.TRAIN)
    trial = hooked.opened(tmp_path)
    assert [*trial.modes_at(5)] == [modes.TRAIN, modes.EVAL]
    assert trial.mode(5) is modes.TRAIN
    assert trial.tensor("loss").value(5)[0] == 2


def test_a_discarded_mode_can_be_written_again(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(5, {"loss": 3.0}, mode=modes.TRAIN)
        with pytest.raises(SMDebugTypeError):
            writer.step(5, {"loss": 3.0, "bad": object()}, mode=modes.EVAL)
        writer.step(5, {"loss": 4.0}, mode=modes.EVAL)
    assert hooked.opened(tmp_path).tensor("loss").value(5, modes.EVAL)[0] == 4


def test_modes_of_the_last_step_are_known_after_a_resume(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as first:
        first.step(4, {"w": 1.0}, mode=modes.PREDICT, mode_step=9)
        first.step(5, {"w": 1.0}, mode=modes.TRAIN, mode_step=3)
        first.step(5, {"w": 1.0}, mode=modes.EVAL, mode_step=2)
    with TrialWriter(tmp_path, resume=True) as again:
        assert again.last_mode_steps == {modes.TRAIN: 3, modes.EVAL: 2, modes.PREDICT: 9}
        with pytest.raises(SMDebugValueError, match="must increase"):
            again.step(5, {"w": 1.0}, mode=modes.EVAL)
        again.step(5, {"w": 1.0}, mode=modes.PREDICT)
    assert [*hooked.opened(tmp_path).modes_at(5)] == [modes.TRAIN, modes.EVAL, modes.PREDICT]


def test_a_worker_is_not_called_like_a_part(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match="must be valid in file names, got 'a@EVAL'"):
        TrialWriter(tmp_path, worker="a@EVAL")
    TrialWriter(tmp_path, worker="a@b").close()
