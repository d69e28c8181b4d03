import json
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import rawtrial

from rule_core.exceptions import SMDebugRuntimeError, SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection
from rule_core.saving.trial_writer import TrialWriter
from rule_core.trials.create_trial import create_trial
from rule_core.trials.trial import Trial
from smdebug import modes


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def keys(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def reopened(root: Path) -> Trial:
    return create_trial(root, timeout=0)


def test_the_files_of_a_trial_lie_where_the_format_says(tmp_path: Path) -> None:
    root = tmp_path / "new" / "trial"
    with TrialWriter(root, collections={"losses": "loss"}) as writer:
        writer.step(1234567, {"loss": 0.5}, mode=modes.EVAL, mode_step=7)
    assert keys(root) == [
        "collections/000000000/worker_0_collections.json",
        "events/000001234567/000001234567_worker_0.tfevents",
        "index/000001234/000001234567_worker_0.json",
        "training_job_end.ts",
    ]
    index = json.loads((root / rawtrial.index_key(1234567)).read_text())
    size = (root / rawtrial.event_key(1234567)).stat().st_size
    assert index == {
        "meta": {
            "mode": "EVAL",
            "mode_step": 7,
            "event_file_name": rawtrial.event_key(1234567),
        },
        "tensor_payload": [{"tensorname": "loss", "start_idx": 0, "length": size}],
        "shape_payload": [],
    }
    assert rawtrial.saved_value(root, "loss", 1234567).tolist() == [0.5]
    collections = json.loads((root / rawtrial.collections_key()).read_text())
    assert collections == {
        "collections": {
            "losses": {
                "name": "losses",
                "include_regex": ["loss"],
                "tensor_names": [],
                "reduction_config": None,
                "save_config": None,
                "save_histogram": True,
            }
        },
        "_meta": {"num_workers": 1},
    }


VALUES: dict[str, Any] = {
    "python float": 2.5,
    "python int": -3,
    "python bool": True,
    "text": "one",
    "list": [[1, 2], [3, 4]],
    "texts": ["a", "bß"],
    "numpy scalar": np.float32(0.1),
    "0-D": np.array(7, np.int16),
    "empty": np.zeros((0, 2), np.uint8),
    "big endian": np.arange(3, dtype=">i4"),
    "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16),
    "fortran": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
}


@pytest.mark.parametrize("name", VALUES)
def test_every_kind_of_value_comes_back(name: str, tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(0, {"before": 1.0, name: VALUES[name], "after": 2.0})
    value = VALUES[name]
    expected = value if isinstance(value, np.ndarray) else np.atleast_1d(np.asarray(value))
    found = reopened(tmp_path).tensor(name).value(0)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype.newbyteorder("=")
    assert found.tolist() == expected.tolist()


def test_reductions_shapes_and_modes_come_back(tmp_path: Path) -> None:
    with TrialWriter(tmp_path) as writer:
        writer.step(
            np.int64(4),
            {"w": np.ones((2, 3))},
            mode=modes.TRAIN,
            mode_step=np.int32(2),
            reductions={"w": {("mean", True): 1.0}, "g:0": {("l2", False): np.array(0.5)}},
            shapes={"s": (np.int64(2), 3), "w": (9, 9)},
        )
        writer.step(5, shapes={"s": (4,)})
        writer.step(6)
        writer.step(7, reductions={}, shapes={}, tensors={})
    trial = reopened(tmp_path)
    assert trial.steps() == [4, 5]
    assert trial.mode_modestep(4) == (modes.TRAIN, 2)
    assert trial.mode_modestep(5) == (modes.GLOBAL, 5)
    assert trial.tensor("s").shapes() == {4: (2, 3), 5: (4,)}
    assert trial.tensor("w").shape(2, modes.TRAIN) == (2, 3)
    assert trial.tensor("w").reduction_values(4)["mean", True].tolist() == [1.0]
    assert trial.tensor("g:0").reduction_value(4, "l2").tolist() == 0.5


def test_two_workers_write_one_trial(tmp_path: Path) -> None:
    names = ("worker_0", "/job:worker/replica:0/task:0/device:GPU:1")
    writers = [
        TrialWriter(tmp_path, worker=name, num_workers=2, end_job=False, collections={"c": "w"})
        for name in names
    ]
    for number, writer in enumerate(writers):
        writer.step(0, {"w": np.array([number])})
    writers[0].step(1, {"w": np.array([5])})
    assert not (tmp_path / rawtrial.TRAINING_JOB_END).exists()
    trial = reopened(tmp_path)
    assert trial.workers() == sorted(names)
    assert trial.steps() == [0]
    assert trial.steps(show_incomplete_steps=True) == [0, 1]
    assert trial.tensor("w").value(0, worker=names[1]).tolist() == [1]


def test_collections_grow_before_their_tensors_are_saved(tmp_path: Path) -> None:
    fixed = Collection("fixed", ["^f"], ["x"])
    writer = TrialWriter(tmp_path, collections=[fixed], end_job=False)
    before = (tmp_path / rawtrial.collections_key()).read_bytes()
    writer.add_to_collection("fixed", ["x"])
    assert (tmp_path / rawtrial.collections_key()).read_bytes() == before
    writer.add_to_collection("late", ["a", "b"])
    writer.add_to_collection("late", ["c"])
    writer.close()
    found = reopened(tmp_path).collections()
    assert found["late"].tensor_names == {"a", "b", "c"}
    assert found["fixed"] == Collection("fixed", ["^f"], ["x"])


def test_files_get_their_names_when_they_are_whole_and_the_index_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = TrialWriter(tmp_path)
    moved: list[tuple[str, str]] = []
    replace = os.replace

    def spy(source: str, target: str) -> None:
        moved.append((Path(source).name, Path(target).name))
        replace(source, target)

    monkeypatch.setattr(os, "replace", spy)
    (tmp_path / "index" / "000000000").mkdir(parents=True)
    leftover = tmp_path / f"{rawtrial.index_key(3)}.tmp"
    leftover.write_text("of a run that crashed")
    writer.step(3, {"w": 1.0})
    name = "000000000003_worker_0"
    assert moved == [
        (f"{name}.tfevents.tmp", f"{name}.tfevents"),
        (f"{name}.json.tmp", f"{name}.json"),
    ]
    assert not leftover.exists()
    assert reopened(tmp_path).tensor("w").value(3).tolist() == [1.0]


def test_a_step_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    before = keys(tmp_path)
    with pytest.raises(SMDebugTypeError, match="no data type for datetime64"):
        writer.step(0, {"good": 1.0, "bad": np.zeros(1, "M8[s]")})
    with pytest.raises(SMDebugValueError, match=r"^Reduction 'mode' must be one of min, max"):
        writer.step(0, {"good": 1.0}, reductions={"w": {("mode", False): 1.0}})
    assert keys(tmp_path) == before


@pytest.mark.parametrize("step", [-1, 10**12, 2**70])
def test_steps_that_names_cannot_hold_are_refused(step: int, tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    message = rf"^A step must be >= 0 and < 1000000000000, got {step}\.$"
    with pytest.raises(SMDebugValueError, match=message):
        writer.step(step, {"w": 1.0})
    with pytest.raises(SMDebugValueError, match=message):
        writer.step(0, {"w": 1.0}, mode_step=step)


def test_a_trial_that_has_ended_is_not_written_again(tmp_path: Path) -> None:
    TrialWriter(tmp_path).close()
    with pytest.raises(
        SMDebugRuntimeError, match=r"holds the trial of a training job that has end"
    ):
        TrialWriter(tmp_path)


@pytest.mark.parametrize("worker", ["", "a/b", "a:b", "_gpu"])
def test_a_worker_that_would_be_read_as_another_is_refused(worker: str, tmp_path: Path) -> None:
    with pytest.raises(
        SMDebugValueError,
        match=rf"^The worker's name must be valid in file names, got '{worker}'\.$",
    ):
        TrialWriter(tmp_path, worker=worker)
    assert keys(tmp_path) == []


def test_there_is_at_least_one_worker(tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=r"^The number of workers must be .* 1, got 0\.$"):
        TrialWriter(tmp_path, num_workers=0)


def test_the_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", os.fspath(tmp_path))
    TrialWriter("~/trial").close()
    assert keys(tmp_path)[-1] == "trial/training_job_end.ts"


@pytest.mark.parametrize("step", [0, 4, 5])
def test_a_step_that_goes_back_is_refused(step: int, tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    writer.step(5, {"w": 1.0})
    before = keys(tmp_path)
    message = (
        rf"^Steps of a worker must increase, got {step} after 5\. Readers process each step once"
    )
    with pytest.raises(SMDebugValueError, match=message):
        writer.step(step, {"w": 2.0})
    assert keys(tmp_path) == before
    assert rawtrial.saved_value(tmp_path, "w", 5).tolist() == [1.0]


def test_a_step_is_written_tensor_by_tensor(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    draft = writer.begin(3, mode=modes.EVAL, mode_step=1)
    draft.add("w", np.arange(3))
    draft.add("w", np.arange(2), wall_time=5.5)
    draft.add_shape("s", (2, 3))
    draft.add_shape("w", (9,))
    assert (reopened(tmp_path).steps(), writer.last_step) == ([], -1)
    assert draft.commit() is True
    assert writer.last_step == 3
    trial = reopened(tmp_path)
    assert trial.mode_modestep(3) == (modes.EVAL, 1)
    assert trial.tensor("w").value(3).tolist() == [0, 1]
    assert (trial.tensor("s").shape(3), trial.tensor("w").shape(3)) == ((2, 3), (2,))
    index = json.loads((tmp_path / rawtrial.index_key(3)).read_text())
    assert [one["tensorname"] for one in index["tensor_payload"]] == ["w"]


def test_a_step_of_nothing_is_missing(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    before = keys(tmp_path)
    assert writer.begin(0).commit() is False
    assert (keys(tmp_path), writer.last_step) == (before, -1)


def test_a_step_that_is_forgotten_leaves_nothing(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    before = keys(tmp_path)
    draft = writer.begin(0)
    draft.add("w", np.zeros(100_000))
    draft.discard()
    draft.discard()
    assert keys(tmp_path) == before
    writer.step(0, {"w": 1.0})
    assert reopened(tmp_path).steps() == [0]


@pytest.mark.parametrize("value", [[[1], [1, 2]], object(), {"a": 1}, None])
def test_what_is_no_array_is_refused(value: Any, tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path)
    before = keys(tmp_path)
    with pytest.raises(SMDebugTypeError, match=r"cannot be converted to an array|must hold str"):
        writer.step(0, {"good": 1.0, "bad": value})
    assert keys(tmp_path) == before
