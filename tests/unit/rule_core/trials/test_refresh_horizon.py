"""While a step is judged, no question shows anything later: not even to whoever knows it all."""

import json
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
import rawtrial
from evaluating import END, WoundClock
from memory_store import MemoryStore

from rule_core.exceptions import SMDebugError, TensorUnavailableForStep
from rule_core.model.reductions import Reduction
from rule_core.modes import ModeKeys
from rule_core.reading.native_index import NativeIndex
from rule_core.trials.refresh import refresh
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.trial import Trial

TRAIN, EVAL, GLOBAL = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.GLOBAL
# Global step -> mode, mode step, tensors.
STEPS: dict[int, tuple[str, int, list[str]]] = {
    0: ("TRAIN", 0, ["loss"]),
    1: ("EVAL", 0, ["loss", "seldom_2"]),
    3: ("TRAIN", 1, ["loss", "labels_1"]),
    4: ("GLOBAL", 4, ["loss", "inputs"]),
    1000: ("PREDICT", 0, ["loss", "seldom_2", "predictions_0"]),
    1001: ("TRAIN", 1, ["loss", "late"]),  # a mode step for the second time
}
NAMES = ["loss", "seldom_2", "labels_1", "inputs", "predictions_0", "late", "shaped", "never"]
WORKERS = ["worker_0", "worker_1"]
MEAN = Reduction("mean")
HORIZONS = [0, 1, 2, 3, 4, 999, 1000, 1001]


def files(last: int) -> dict[str, bytes]:
    """Return the files of a trial up to a global step."""
    result = {
        rawtrial.collections_key(worker): rawtrial.collections(
            {"losses": ["loss"], "inputs": ["^inputs$"], "late": ["late"]}, 2
        )
        for worker in WORKERS
    }
    for step, (mode, mode_step, names) in STEPS.items():
        if step <= last:
            values = {name: np.full((2,), step, np.float32) for name in names}
            for worker in WORKERS:
                result |= rawtrial.step_files(step, values, mode, mode_step, worker)
    # The tensor `loss` is there without a shape at first.
    for step, name, original in (
        (3, "shaped", "early"),
        (4, "shaped", "later"),
        (1001, "loss", "x"),
    ):
        if step <= last:
            key = rawtrial.index_key(step, "worker_1")
            shape = {"tensorname": name, "originalname": original, "shape": [7]}
            result[key] = json.dumps(json.loads(result[key]) | {"shape_payload": [shape]}).encode()
    return result


def trial_of(last: int, *, ended: bool) -> Trial:
    index = NativeIndex(MemoryStore(files(last) | ({END: b""} if ended else {})))
    index.refresh()
    index.refresh()
    if ended:
        index.finish()
    return Trial("t", "/t", index, WoundClock())


def shown(answer: Any) -> Any:
    """Return an answer, or the class of what was raised, as something that can be compared."""
    if isinstance(answer, np.ndarray):
        return (str(answer.dtype), answer.tolist())
    if isinstance(answer, dict):
        return {key: shown(value) for key, value in answer.items()}
    if isinstance(answer, list):
        return [shown(one) for one in answer]
    return (
        answer if isinstance(answer, (int, str, tuple, set, type(None), ModeKeys)) else str(answer)
    )


def asked(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    try:
        return shown(call(*args, **kwargs))
    except SMDebugError as err:
        return f"{type(err).__name__}: {err}"


def tensor_answers(trial: Trial, name: str) -> dict[str, Any]:
    tensor = trial.tensor(name)
    found: dict[str, Any] = {
        "name": tensor.name,
        "original_name": tensor.original_name,
        "first": tensor.first_step,
    }
    for mode in ModeKeys:
        for method in (tensor.steps, tensor.values, tensor.shapes):
            found[f"{method.__name__} {mode}"] = asked(method, mode)
        found[f"incomplete {mode}"] = tensor.steps(mode, show_incomplete_steps=True)
        for step, before in product([-1, 0, 1, 2, 1000], [None, 0, 1, 2, 1000]):
            found[f"measure {step} {before}"] = asked(tensor.measure, step, MEAN, before)
        for step in [-1, 0, 1, 2, 3, 4, 1000, 1001, 2000]:
            for method in (
                tensor.value,
                tensor.view,
                tensor.shape,
                tensor.workers,
                tensor.reduction_values,
            ):
                found[f"{method.__name__} {mode} {step}"] = asked(method, step, mode)
            mean = asked(tensor.reduction_value, step, "mean", mode)
            found[f"mean {mode} {step}"] = mean
            found[f"prev {mode} {step}"] = asked(tensor.prev_steps, step, None, mode)
            found[f"back {mode} {step}"] = [*tensor.steps_back(step, mode)]
            found[f"of worker {mode} {step}"] = asked(tensor.value, step, mode, "worker_1")
    return found


TENSOR_ASKED = {
    *("name", "original_name", "steps", "values", "shapes", "value", "view", "shape", "workers"),
    *("reduction_value", "reduction_values", "prev_steps", "measure", "steps_back", "first_step"),
}
TENSOR_NOT_ASKED = {"step", "trial"}


def trial_answers(trial: Trial) -> dict[str, Any]:
    found: dict[str, Any] = {
        "modes": trial.modes(),
        "workers": trial.workers(),
        "worker_set": trial.worker_set,
        "num_workers": trial.num_workers,
        "last_complete_step": trial.last_complete_step,
        "loaded_all_steps": trial.loaded_all_steps,
        "range_steps": trial.range_steps,
        "collections": sorted(trial.collections()),
        "collection": trial.collection("late").include_regex,
        "in collection": trial.tensors_in_collection("late"),
        "matching": trial.tensors_matching_regex(["l.*"]),
        "repr": repr(trial),
        "hash": hash(trial),
        "missed": dict(trial.missed),
    }
    for name in NAMES:
        found[f"has {name}"] = trial.has_tensor(name)
        found[name] = tensor_answers(trial, name) if trial.has_tensor(name) else None
    for mode in [*ModeKeys, None]:
        found[f"steps {mode}"] = trial.steps(mode)
        found[f"incomplete {mode}"] = trial.steps(mode, show_incomplete_steps=True)
        found[f"names {mode}"] = trial.tensor_names(mode=mode)
        found[f"tensors {mode}"] = trial.tensors(mode=mode, collection="late")
        for step in [-1, 0, 1, 2, 3, 4, 999, 1000, 1001, 2000]:
            found[f"names {mode} {step}"] = trial.tensor_names(step=step, mode=mode)
            for method in (
                trial.has_passed_step,
                trial.inputs,
                trial.labels,
                trial.predictions,
            ):
                found[f"{method.__name__} {mode} {step}"] = asked(method, step, mode)
            found[f"global {mode} {step}"] = asked(trial.global_step, mode, step)
            found[f"waited {mode} {step}"] = asked(trial.wait_for_steps, [step], mode)
            found[f"mode {step}"] = [
                asked(method, step)
                for method in (trial.mode, trial.mode_step, trial.mode_modestep, trial.modes_at)
            ]
            found[f"times {step}"] = asked(trial.wall_times, step)
            found[f"back {step}"] = back = [*trial.any_steps_back(step)]
            assert back == [earlier for earlier in reversed(trial.steps()) if earlier <= step]
            found[f"time {step}"] = [
                asked(trial.wall_time, step, worker) for worker in (*WORKERS, None)
            ]
    return found


TRIAL_ASKED = {
    *("modes", "workers", "worker_set", "num_workers", "last_complete_step", "loaded_all_steps"),
    *("range_steps", "collections", "collection", "tensors_in_collection", "missed"),
    *("tensors_matching_regex", "has_tensor", "tensor", "steps", "tensor_names", "tensors"),
    *("has_passed_step", "inputs", "labels", "predictions", "global_step", "wait_for_steps"),
    *("mode", "mode_step", "mode_modestep", "modes_at", "wall_time", "wall_times"),
    "any_steps_back",
}
# What the trial is, and what its tensors (asked above) call.
TRIAL_NOT_ASKED = {
    *("name", "path", "index", "clock", "dynamic_refresh", "horizon", "share"),
    *("judged", "is_whole"),
    *("reads", "damaged"),
    *("maybe_refresh", "refresh_data", "refresh_tensor", "expire", "pause_s", "over"),
    *("original_name", "tensor_steps", "tensor_workers", "find", "read", "measure", "prefetched"),
    *("saved_by", "steps_back", "first_step", "prefetched_all", "shape", "segment"),
    *("prefetched_shapes", "scalar", "scalars"),
}


@pytest.mark.parametrize("horizon", HORIZONS)
def test_nothing_later_shows_through_any_question(horizon: int) -> None:
    whole, prefix = trial_of(5000, ended=True), trial_of(horizon, ended=False)
    with snapshot([whole, prefix], horizon):
        expected, got = trial_answers(prefix), trial_answers(whole)
    assert expected.keys() == got.keys()
    assert {key: expected[key] for key in expected if expected[key] != got[key]} == {
        key: got[key] for key in expected if expected[key] != got[key]
    }


def test_every_public_name_was_asked() -> None:
    trial = trial_of(5000, ended=True)
    names = {name for name in dir(trial) if not name.startswith("_")}
    assert names == TRIAL_ASKED | TRIAL_NOT_ASKED
    tensor = {name for name in dir(trial.tensor("loss")) if not name.startswith("_")}
    assert tensor == TENSOR_ASKED | TENSOR_NOT_ASKED


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("mode", [GLOBAL, None])
def test_asking_for_a_later_step_is_answered_as_unavailable_for_step(
    ended: bool, mode: ModeKeys | None
) -> None:
    trial = trial_of(5000, ended=ended)
    with snapshot([trial], 3):
        for step in (4, 5, 1000, 10**9):
            for question in ("value", "view", "shape", "reduction_values", "workers"):
                with pytest.raises(TensorUnavailableForStep, match=f"at step {step} of mode"):
                    getattr(trial.tensor("loss"), question)(step, mode)


def test_refreshing_by_hand_within_a_step_neither_shows_nor_ends_anything() -> None:
    store = dict(files(3))
    index = NativeIndex(MemoryStore(store))
    index.refresh()
    clock = WoundClock()
    trial = Trial("t", "/t", index, clock)
    store |= files(5000) | {END: b""}
    with snapshot([trial], 3), refresh(trial):
        trial.refresh_data()
        assert trial.steps() == [0, 1, 3]
        assert index.steps == [0, 1, 3]
    assert not index.loaded_all_steps
    assert clock.now == WoundClock().now
    assert sorted(STEPS) == trial.steps()
