"""The built-in rules on steps: what is damaged, what comes later, what was never saved."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rawtrial
from judging import Judged, judge, opened, save

from builtin_rules import RULES
from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    reduction,
    reductions,
    saved_reductions,
    saved_tensors,
    view,
)
from rule_core.trials.snapshot_view import snapshot
from smdebug.core.modes import ModeKeys

# By rule: parameters, a tensor's name, and its values: healthy, then met, then healthy. Rules that
# need more than a tensor and three steps have tests of their own.
HEALTHY = np.array([[0.5, 0.25]])
CASES: dict[str, tuple[dict[str, Any], str, list[Any]]] = {
    "AllZero": ({"tensor_regex": "w"}, "a_w", [HEALTHY, HEALTHY * 0, HEALTHY]),
    "ExplodingTensor": ({}, "a_w", [HEALTHY, HEALTHY * np.nan, HEALTHY]),
    "LossNotDecreasing": ({"num_steps": 1, "literal": True}, "a_loss", [1.0, 1.0, 0.5]),
    "PoorWeightInitialization": (
        {"patience": 1, "literal": True},
        "a_loss",
        [1.0, 1.0, 0.5],
    ),
    "TensorVariance": (
        {"tensor_regex": "w", "max_threshold": 1},
        "a_w",
        [HEALTHY, HEALTHY * 9, HEALTHY],
    ),
    "UnchangedTensor": (
        {"collection_names": "weights", "num_steps": 2},
        "a_weight",
        [HEALTHY, HEALTHY, HEALTHY * 2],
    ),
    "VanishingGradient": ({}, "gradient/a", [HEALTHY, HEALTHY * 1e-9, HEALTHY]),
    "WeightUpdateRatio": ({}, "a_weight", [HEALTHY, HEALTHY * 90, HEALTHY * 80]),
}
every_rule = pytest.mark.parametrize("rule", [pytest.param(one, id=one) for one in CASES])
# Nothing learns while a model is evaluated, and these judge learning.
OF_TRAINING = {"WeightUpdateRatio", "PoorWeightInitialization"}


def case(rule: str) -> tuple[dict[str, Any], str, dict[int, dict[str, Any]]]:
    """Return parameters, name and steps of the case of a rule; a second tensor stays healthy."""
    params, name, values = CASES[rule]
    other = [value / 2**at for at, value in enumerate([values[0]] * 3)]
    steps = {at: {name: value, f"{name}2": other[at]} for at, value in enumerate(values)}
    return params, name, steps


def judged(rule: str, root: Path, params: dict[str, Any]) -> Judged:
    return judge(RULES[rule], root, **params)


@every_rule
def test_it_is_met_at_exactly_its_step(rule: str, tmp_path: Path) -> None:
    params, name, steps = case(rule)
    found = judged(rule, save(tmp_path, steps), params)
    assert [(one.step, one.tensor) for one in found.findings] == [(1, name)]


@every_rule
def test_it_looks_at_no_later_step(rule: str, tmp_path: Path) -> None:
    params, _, steps = case(rule)
    whole = judged(rule, save(tmp_path / "whole", steps), params)
    for last in steps:
        begun = {step: values for step, values in steps.items() if step <= last}
        found = judged(rule, save(tmp_path / str(last), begun), params)
        assert found.findings == [one for one in whole.findings if one.step <= last]
        assert found.skipped == {at: why for at, why in whole.skipped.items() if at <= last}


@pytest.mark.parametrize("mode", [ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT])
@every_rule
def test_all_modes_are_judged(rule: str, mode: ModeKeys, tmp_path: Path) -> None:
    params, name, steps = case(rule)
    found = judged(rule, save(tmp_path, steps, modes=dict.fromkeys(steps, mode)), params)
    silent = rule in OF_TRAINING and mode is not ModeKeys.TRAIN
    assert [(one.step, one.tensor) for one in found.findings] == ([] if silent else [(1, name)])


def damage(root: Path, step: int, name: str) -> None:
    """Let the index point at bytes that are no record."""
    path = root / rawtrial.index_key(step)
    index = json.loads(path.read_text())
    (entry,) = (one for one in index["tensor_payload"] if one["tensorname"] == name)
    entry["start_idx"] += 1
    path.write_text(json.dumps(index))


@every_rule
def test_a_damaged_tensor_hides_no_other(rule: str, tmp_path: Path) -> None:
    params, name, steps = case(rule)
    damage(save(tmp_path, steps), 1, f"{name}2")
    found = judged(rule, tmp_path, params)
    assert [(one.step, one.tensor) for one in found.findings] == [(1, name)]


@every_rule
def test_a_step_whose_tensors_are_all_damaged_is_not_judged(rule: str, tmp_path: Path) -> None:
    params, name, steps = case(rule)
    save(tmp_path, steps)
    for one in (name, f"{name}2"):
        damage(tmp_path, 1, one)
    found = judged(rule, tmp_path, params)
    assert (found.met, 1 in found.skipped) == ([], True)


@every_rule
def test_a_trial_without_its_tensors_is_not_judged(rule: str, tmp_path: Path) -> None:
    found = judged(rule, save(tmp_path, {3: {"count": np.array([1])}}), CASES[rule][0])
    assert (found.met, list(found.skipped)) == ([], [3])


@every_rule
def test_a_worker_that_lacks_a_step_is_no_error(rule: str, tmp_path: Path) -> None:
    params, name, steps = case(rule)
    save(tmp_path, steps, num_workers=2)
    save(tmp_path, {0: steps[0]}, num_workers=2, worker="worker_1")
    found = judged(rule, tmp_path, params)
    assert [(one.step, one.tensor) for one in found.findings] == [(1, name)]


# -- what rules are handed -----------------------------------------------------------------------


def place(root: Path, values: dict[str, Any], **more: Any) -> SavedTensor:
    """Return where the tensor ``t`` is, saved at step 0."""
    return SavedTensor(opened(save(root, {0: values}, **more)).tensor("t"), "worker_0")


def test_a_value_that_was_not_saved_is_none(tmp_path: Path) -> None:
    reductions = {0: {"t": {("max", True): 2.0}}}
    one = place(tmp_path, {"u": 1.0}, reductions=reductions)
    assert view(one, 0) is None
    assert reduction(one, 0, "min") is None
    assert reduction(one, 0, "max", absolute=True) == 2.0
    assert saved_reductions(one, 0) == {("max", True): 2.0}


def test_reductions_are_computed_where_they_were_not_saved(tmp_path: Path) -> None:
    one = place(tmp_path, {"t": np.array([[3.0, -4.0]])})
    assert reduction(one, 0, "mean", absolute=True) == 3.5
    assert saved_reductions(one, 0) == {}


@pytest.mark.parametrize("value", [np.zeros(0), np.array(["a"])], ids=["empty", "text"])
def test_a_reduction_of_what_has_none_is_none(value: Any, tmp_path: Path) -> None:
    assert reduction(place(tmp_path, {"t": value}), 0, "mean") is None


def test_reductions_of_a_step_without_the_tensor_are_none(tmp_path: Path) -> None:
    save(tmp_path, {0: {"t": 1.0}, 1: {"u": 1.0}})
    one = SavedTensor(opened(tmp_path).tensor("t"), "worker_0")
    assert (view(one, 1), reduction(one, 1, "mean"), saved_reductions(one, 1)) == (None, None, {})


@pytest.mark.parametrize("step", range(4))
def test_reductions_of_many_tensors_are_those_of_each(step: int, tmp_path: Path) -> None:
    rows = {name: np.full((2, 2), float(at)) for at, name in enumerate("tuv")}
    odd = {"w": np.zeros(0), "x": np.array(["a"])}
    for worker in ("worker_0", "worker_1"):
        steps = {0: rows | odd, 1: rows, 2: rows | odd, 3: {"t": rows["v"]}}
        more = {at: {"y": {("mean", True): 7.0}} for at in steps}
        save(tmp_path, steps, num_workers=2, worker=worker, reductions=more)
    trial, names = opened(tmp_path), list("yxwvuta")
    for earlier in range(step + 1):
        with snapshot([trial], earlier):
            saved_by = trial.saved_by(earlier, names)
            found = reductions(trial, earlier, saved_by, "mean", absolute=True)
            each = {
                (saved.name, saved.worker): reduction(saved, earlier, "mean", absolute=True)
                for saved in saved_tensors(trial, earlier, names)
            }
    assert [*found.items()] == [item for item in each.items() if item[1] is not None]
    assert len(found) == (4 if step == 3 else 8)
    assert {type(saved) for saved in found.values()} == {float}
