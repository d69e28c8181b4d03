"""Wall times: when each worker saved a step, by the clock of the training job."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest
import rawtrial
from memory_store import MemoryStore

from rule_core.reading.native_index import NativeIndex
from rule_core.saving.trial_writer import TrialWriter
from rule_core.trials.create_trial import create_trial
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.trial import Trial

WORKERS = ("worker_0", "worker_1")
ZERO = struct.pack("<d", 1.6e9)  # the time in every record of `rawtrial`


def files(times: dict[int, dict[str, float]]) -> dict[str, bytes]:
    """Return an ended trial of steps with the times at which workers saved them."""
    result = {rawtrial.TRAINING_JOB_END: b""}
    for worker in WORKERS:
        result[rawtrial.collections_key(worker)] = rawtrial.collections({}, 2)
    for step, of_workers in times.items():
        for worker, time in of_workers.items():
            one = rawtrial.step_files(step, {"loss": np.ones(2)}, worker=worker)
            key = rawtrial.event_key(step, worker)
            result |= one | {key: one[key].replace(ZERO, struct.pack("<d", time))}
    return result


def trial_of(content: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Trial:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    return Trial("t", "t", NativeIndex(MemoryStore(content)))


def test_each_worker_has_its_own_and_the_last_is_the_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    content = files({3: {"worker_0": 1.7e9, "worker_1": 1.6e9 + 0.25}, 5: {"worker_1": 2e9}})
    trial = trial_of(content, monkeypatch)
    asked = [(3, None), (3, "worker_0"), (3, "worker_1"), (5, None), (5, "worker_0"), (4, None)]
    assert [trial.wall_time(*one) for one in asked] == [
        1.7e9,
        1.7e9,
        1600000000.25,
        2e9,
        None,
        None,
    ]


def test_nothing_later_than_the_step_in_hand_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(files({3: {"worker_0": 1e9}, 5: {"worker_0": 2e9}}), monkeypatch)
    assert trial.steps() == [3, 5]
    with snapshot([trial], 3):
        assert (trial.wall_time(3), trial.wall_time(5)) == (1e9, None)
    assert trial.wall_time(5) == 2e9


def test_a_look_at_the_time_counts_as_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(files({3: {"worker_0": 1e9}}), monkeypatch)
    trial.wall_time(3)
    assert trial.reads == 1


@pytest.mark.parametrize("time", [0.0, -1.0, np.nan, np.inf])
def test_what_is_no_time_is_none(time: float, monkeypatch: pytest.MonkeyPatch) -> None:
    trial = trial_of(files({3: {"worker_0": time, "worker_1": 1e9}}), monkeypatch)
    assert (trial.wall_time(3, "worker_0"), trial.wall_time(3)) == (None, 1e9)


def damaged(content: dict[str, bytes], how: str) -> dict[str, bytes]:
    """Return a trial whose event file of step 3 is cut off, garbled or gone."""
    key = rawtrial.event_key(3)
    if how == "gone":
        return {name: one for name, one in content.items() if name != key}
    return content | {key: {"cut-off": content[key][:11], "garbled": bytes(80)}[how]}


@pytest.mark.parametrize("how", ["cut-off", "garbled", "gone"])
def test_damage_is_reported_and_none(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = damaged(files({3: {"worker_0": 1e9}, 4: {"worker_0": 2e9}}), how)
    trial = trial_of(content, monkeypatch)
    assert [trial.wall_time(step) for step in (3, 4)] == [None, 2e9]
    assert list(trial.index.file_problems.problems) == [rawtrial.event_key(3)]


def test_shapes_alone_tell_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    content = files({3: {"worker_0": 1e9}})
    key = rawtrial.index_key(3)
    shape = {"tensorname": "loss", "originalname": "loss", "shape": [2]}
    index = json.loads(content[key])
    content[key] = json.dumps({"meta": index["meta"], "shape_payload": [shape]}).encode()
    trial = trial_of(content, monkeypatch)
    assert (trial.steps(), trial.wall_time(3)) == ([3], None)


def test_reductions_alone_tell_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time", lambda: 1.75e9)
    with TrialWriter(tmp_path) as writer:
        writer.step(7, {}, reductions={"w": {("mean", True): 1.0}})
    assert create_trial(tmp_path).wall_time(7, "worker_0") == 1.75e9
