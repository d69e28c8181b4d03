"""create_trial: opens a trial, waits for its collections, and says so."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rawtrial
from evaluating import END, ScriptedClock

from rule_core.exceptions import MissingCollectionFiles, TensorDamaged
from rule_core.saving.trial_writer import TrialWriter
from rule_core.trials.create_trial import LocalTrial, create_trial
from rule_core.trials.refresh import no_refresh
from rule_core.trials.trial import Trial


def files(*steps: int, workers: int = 1) -> dict[str, bytes]:
    result = {}
    for worker in range(workers):
        name = f"worker_{worker}"
        result[rawtrial.collections_key(name)] = rawtrial.collections({"losses": ["l"]}, workers)
        for step in steps:
            result |= rawtrial.step_files(step, {"loss": np.float32([step])}, worker=name)
    return result


def test_it_is_there_at_once(tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "trial", files(0, 5))
    clock = ScriptedClock()
    found = create_trial(f" {tmp_path}/trial ", clock=clock)
    assert (found.name, found.path) == ("trial", f"{tmp_path}/trial")
    assert (found.steps(), found.workers(), clock.slept) == ([0, 5], ["worker_0"], 0.0)
    assert (found.num_workers, found.worker_set, found.range_steps) == (1, {"worker_0"}, None)
    assert create_trial(tmp_path / "trial", "mine").name == "mine"
    assert isinstance(found, Trial)


def test_a_local_trial_is_made_as_of_old(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, files(0, 5, 10))
    trial = LocalTrial("mine", tmp_path, (5, None), True, False, True, False)
    assert (trial.name, trial.path, trial.steps()) == ("mine", str(tmp_path), [5, 10])
    assert isinstance(create_trial(tmp_path), LocalTrial)
    view = trial.share()
    assert type(view) is LocalTrial
    assert (view, view.index, view.clock) == (trial, trial.index, trial.clock)
    with no_refresh(trial) as same:
        assert same is trial
    with pytest.raises(MissingCollectionFiles):
        LocalTrial("mine", tmp_path / "none", timeout=0)


def test_old_arguments_have_no_effect(tmp_path: Path) -> None:
    rawtrial.write(tmp_path, files(0))
    found = create_trial(
        str(tmp_path), None, False, "/out", check=True, index_mode=False, cache=True, parallel=True
    )
    assert found.steps() == [0]
    with pytest.raises(TypeError):
        create_trial(str(tmp_path), other=1)  # type: ignore[call-arg]


def test_it_waits_for_the_folder_and_the_collections_of_all_workers(tmp_path: Path) -> None:
    root = tmp_path / "trial"
    both = files(0, workers=2)
    second = rawtrial.collections_key("worker_1")
    one = {key: data for key, data in both.items() if key != second}
    clock = ScriptedClock(
        int, lambda: rawtrial.write(root, one), int, lambda: rawtrial.write(root, both)
    )
    assert create_trial(str(root), clock=clock).steps() == [0]
    assert clock.steps == []


def test_it_says_after_ten_seconds_that_it_waits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ScriptedClock(*[int] * 100, lambda: rawtrial.write(tmp_path, files(0)))
    create_trial(str(tmp_path), clock=clock)
    (said,) = (record.getMessage() for record in caplog.records)
    assert said.startswith(f"Trial '{tmp_path}': after 10 s, and 0 of 1 collections files exist.")
    assert said.endswith(" Still waiting.")


def test_it_waits_no_longer_than_asked(tmp_path: Path) -> None:
    clock = ScriptedClock()
    with pytest.raises(MissingCollectionFiles, match="after 5 s, and 0 of 1 collections files"):
        create_trial(str(tmp_path), timeout=5, clock=clock)
    assert clock.slept == 5.0


@pytest.mark.parametrize(
    ("found", "there"),
    [({END: b""}, "0 of 1"), (files(0, workers=2) | {END: b""}, "1 of 2")],
    ids=["none", "one"],
)
def test_ended_job_without_all_collections(
    tmp_path: Path, found: dict[str, bytes], there: str
) -> None:
    found = dict(found)
    found.pop(rawtrial.collections_key("worker_1"), None)
    rawtrial.write(tmp_path, found)
    with pytest.raises(MissingCollectionFiles, match=f"the training job has ended, and {there}"):
        create_trial(str(tmp_path), clock=ScriptedClock())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [0, 3, 5, 9]),
        ((3, 9), [3, 5]),
        ((None, 5), [0, 3]),
        ((5, None), [5, 9]),
        ((None, None), [0, 3, 5, 9]),
    ],
    ids=repr,
)
def test_range_hides(tmp_path: Path, given: Any, expected: list[int]) -> None:
    rawtrial.write(tmp_path, files(0, 3, 5, 9))
    found = create_trial(str(tmp_path), range_steps=given)
    assert (found.steps(), found.range_steps) == (expected, given)


@pytest.mark.parametrize(
    "given", [(3, 3), (5, 3), (-1, 3), (None, -1), (0.5, 3), ("0", 3)], ids=repr
)
def test_range_that_cannot_be(tmp_path: Path, given: Any) -> None:
    with pytest.raises(ValueError, match=r"^range_steps must be \(begin, end\) with 0 <= begin"):
        create_trial(str(tmp_path), range_steps=given)


def test_window_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", "7")
    rawtrial.write(tmp_path, files(0))
    assert create_trial(str(tmp_path)).index.window == 7


@pytest.fixture
def two_workers(tmp_path: Path) -> Path:
    """Return an ended trial of two workers; the collections file of one is damaged."""
    files = {"training_job_end.ts": b""}
    for worker in ("worker_0", "worker_1"):
        files[rawtrial.collections_key(worker)] = rawtrial.collections({"losses": ["loss"]}, 2)
        for step in range(3):
            loss = np.float32([step if worker == "worker_1" else 0])
            files |= rawtrial.step_files(step, {"loss": loss}, worker=worker)
    files[rawtrial.collections_key("worker_1")] = b'{"collections": {'
    return rawtrial.write(tmp_path / "trial", files)


def test_damaged_collections_of_one_worker_cost_nothing_that_evaluate_reads(
    two_workers: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trial = create_trial(two_workers)
    assert "1 of 2 collections files exist" in caplog.text
    assert rawtrial.collections_key("worker_1") in caplog.text
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor("loss").value(2, worker="worker_1").tolist() == [2.0]
    assert (trial.workers(), trial.num_workers) == (["worker_0", "worker_1"], 2)
    assert trial.tensor("loss").workers(2) == trial.workers()


def test_cut_event_file_is_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {name: np.ones(3) for name in "abc"})
    (event_file,) = (tmp_path / "events").rglob("*.tfevents")
    event_file.write_bytes(b"")
    trial = create_trial(tmp_path)
    for name in "abc":
        with pytest.raises(TensorDamaged):
            trial.tensor(name).value(0)
    assert len(caplog.records) == 1
