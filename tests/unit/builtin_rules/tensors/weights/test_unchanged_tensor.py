"""UnchangedTensor: which tensors stand still, at which steps, with what evidence."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import UnchangedTensor
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAME = "fc.weight"
GRADIENT = f"gradient/{NAME}"
T, E, P = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT


def judged(root: Path, values: list[Any], **params: Any) -> Judged:
    """Judge one weight, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"other": np.ones(2)} if value is None else {NAME: np.asarray(value)}
        for at, value in enumerate(values)
    }
    return judge(UnchangedTensor, save(root, steps), **{"collection_names": "weights"} | params)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        pytest.param([1.0, 1.0, 1.0], [2], id="three-equal"),
        pytest.param([1.0, 1.0], [], id="too-few"),
        pytest.param([1.0], [], id="one-step"),
        pytest.param([1.0, 2.0, 2.0, 2.0, 3.0, 3.0], [3], id="in-between"),
        pytest.param([1.0, 1.0, 2.0, 1.0, 1.0, 1.0], [5], id="comes-back"),
        pytest.param([2.0, None, 2.0, None, None, 2.0], [5], id="need-not-be-adjacent"),
        pytest.param([0.0, 1e-8, 0.0], [2], id="absolute-tolerance-is-closed"),
        pytest.param([0.0, np.nextafter(1e-8, 1), 0.0], [], id="just-beyond-it"),
        pytest.param([1e6, 1e6 + 9, 1e6], [2], id="relative-tolerance"),
        pytest.param([1e6, 1e6 + 11, 1e6], [], id="beyond-the-relative-one"),
        pytest.param([np.nan, np.nan, np.nan], [], id="nan-is-a-change"),
        pytest.param([np.inf, np.inf, np.inf], [2], id="infinity-equals-itself"),
        pytest.param([np.inf, -np.inf, np.inf], [], id="infinities-differ"),
        pytest.param([[1.0, 2.0], [1.0, 2.1], [1.0, 2.0]], [], id="one-element-moves"),
        pytest.param([[1.0], [[1.0]], [1.0]], [], id="another-shape-is-a-change"),
        pytest.param([True, True, True], [2], id="booleans"),
        pytest.param([7, 7, 7], [2], id="integers"),
    ],
)
def test_it_is_met_where_the_latest_values_are_close(
    values: list[Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, values).met == met


def test_history_comes_from_the_trial_not_from_the_rule(tmp_path: Path) -> None:
    save(tmp_path, {at: {NAME: np.ones(2)} for at in range(3)})
    assert judge(UnchangedTensor, tmp_path, start=2, collection_names="weights").met == [2]


def test_a_slow_drift_is_a_change(tmp_path: Path) -> None:
    values = [1.0 + 8e-6 * at for at in range(4)]
    assert judged(tmp_path / "all", values).met == []
    assert judged(tmp_path / "neighbours", values, literal=True).met == [2, 3]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_all_floating_point_types_are_compared(dtype: Any, tmp_path: Path) -> None:
    still = np.array([[0.5, 2.0]], dtype)
    assert judged(tmp_path, [still, still, still, still + still]).met == [2]


@pytest.mark.parametrize("value", [np.zeros((0, 3)), np.array(["a"]), np.array([1j])])
def test_what_holds_no_real_numbers_is_not_judged(value: Any, tmp_path: Path) -> None:
    found = judged(tmp_path, [value] * 3)
    assert (found.met, found.skipped[2]) == ([], "no tensor with 3 values to compare")


def test_reductions_are_not_enough(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={at: {NAME: {("mean", False): 1.0}} for at in range(3)})
    found = judge(UnchangedTensor, tmp_path, collection_names="weights")
    assert (found.met, found.skipped[2]) == ([], "no tensor with 3 values to compare")


def test_a_step_without_the_tensors_is_reported(tmp_path: Path) -> None:
    assert judged(tmp_path, [None]).skipped == {0: "none of the selected tensors at this step"}


def test_too_few_steps_say_so(tmp_path: Path) -> None:
    found = judged(tmp_path, [1.0, 1.0, 1.0], num_steps=4)
    assert found.skipped == dict.fromkeys(range(3), "no tensor with 4 values to compare")


def test_large_tensors_are_compared_to_their_ends(tmp_path: Path) -> None:
    still, moves = np.zeros(70_000, np.float32), np.zeros(70_000, np.float32)
    moves[-1] = 1.0
    found = judged(tmp_path, [still, still, still, moves])
    assert (found.met, found.findings[0].measured) == ([2], 0.0)


# -- evidence ------------------------------------------------------------------------------------


def test_evidence_of_a_parameter_says_that_it_may_be_frozen(tmp_path: Path) -> None:
    note = "Unchanged since step 0. It is bitwise identical."
    found = judged(tmp_path, [1.0, 1.0, 1.0])
    assert found.findings == [Finding(2, NAME, "worker_0", 0.0, 1.0, note, Severity.WARNING)]


def test_evidence_of_another_tensor_gives_the_change_in_tolerances(tmp_path: Path) -> None:
    save(tmp_path, {4 + at: {"loss": value} for at, value in enumerate([0.0, 5e-9, 0.0])})
    found = judge(UnchangedTensor, tmp_path, collection_names="losses")
    expected = Finding(6, "loss", "worker_0", 0.5, 1.0, "Unchanged since step 4.", Severity.WARNING)
    assert found.findings == [expected]


def test_each_worker_is_judged_against_itself(tmp_path: Path) -> None:
    for worker, factor in (("worker_0", 1.0), ("worker_1", 0.0)):
        steps = {at: {NAME: np.full(2, 1.0 + factor * at)} for at in range(3)}
        save(tmp_path, steps, num_workers=2, worker=worker)
    found = judge(UnchangedTensor, tmp_path, collection_names="weights")
    assert [(one.step, one.worker) for one in found.findings] == [(2, "worker_1")]


def test_a_worker_with_other_steps_is_judged_by_its_own(tmp_path: Path) -> None:
    steps = {at: {NAME: np.full(2, at)} for at in range(5)}
    save(tmp_path, steps, num_workers=2)
    save(tmp_path, {at: {NAME: np.ones(2)} for at in (0, 2, 4)}, num_workers=2, worker="worker_1")
    found = judge(UnchangedTensor, tmp_path, collection_names="weights")
    assert [(one.step, one.worker) for one in found.findings] == [(4, "worker_1")]


# -- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("modes", "weights", "met", "literal"),
    [
        pytest.param([T, E, E, E, T, T], [1, 2, 2, 2, 2, 3], [], [3, 4], id="a-phase"),
        pytest.param([E, E, E, T, T], [1, 1, 1, 1, 2], [], [2, 3], id="sanity-check"),
        pytest.param([E, E, E, E], [1, 1, 1, 1], [], [2, 3], id="no-training-at-all"),
        pytest.param([T, E, T, E, T, E], [1, 1, 1, 1, 1, 1], [4, 5], [2, 3, 4, 5], id="stuck"),
        pytest.param([E, T, E, E, P, E], [1, 9, 1, 1, 7, 1], [5], [], id="first-of-each-phase"),
        pytest.param([P, T, P, T, P], [1, 2, 1, 3, 1], [4], [], id="predictions"),
    ],
)
def test_only_steps_with_training_in_between_are_compared(
    modes: list[ModeKeys],
    weights: list[float],
    met: list[int],
    literal: list[int],
    tmp_path: Path,
) -> None:
    steps = {at: {NAME: np.full(2, value)} for at, value in enumerate(weights)}
    save(tmp_path, steps, modes=dict(enumerate(modes)))
    assert judge(UnchangedTensor, tmp_path, collection_names="weights").met == met
    found = judge(UnchangedTensor, tmp_path, collection_names="weights", literal=True)
    assert found.met == literal


def test_later_steps_of_a_phase_say_why_they_are_skipped(tmp_path: Path) -> None:
    save(tmp_path, {at: {NAME: np.ones(2)} for at in (0, 1)}, modes={0: E, 1: E})
    found = judge(UnchangedTensor, tmp_path, collection_names="weights")
    assert found.skipped[1] == "not the first step of an evaluation phase"


# -- frozen parameters ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gradients", "params", "met"),
    [
        pytest.param([], {}, [2], id="unknown"),
        pytest.param([GRADIENT], {}, [2], id="forgotten"),
        pytest.param(["gradient/head.weight"], {}, [], id="frozen"),
        pytest.param(["gradient/head.bias"], {}, [2], id="all-weights-frozen"),
        pytest.param(["gradient/head.lora_A"], {}, [], id="frozen-beside-an-adapter"),
        pytest.param(["gradient/head.weight"], {"literal": True}, [2], id="frozen-to-the-letter"),
        pytest.param(["gradient/head.weight"], {"tensor_regex": "fc"}, [], id="frozen-by-name"),
        pytest.param(["gradient/head.weight"], {"num_steps": 3}, [2], id="frozen-and-num_steps"),
    ],
)
def test_parameters_without_a_gradient_are_frozen_where_others_have_one(
    gradients: list[str], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    steps = {
        at: {NAME: np.ones(2), "head.weight": np.full(2, float(at)), "head.bias": np.ones(1) * at}
        | {name: np.full(2, float(at)) for name in gradients}
        for at in range(3)
    }
    save(tmp_path, steps)
    found = judge(UnchangedTensor, tmp_path, **{"collection_names": "weights"} | params)
    assert found.met == met


@pytest.mark.parametrize(
    ("weight", "gradient"),
    [
        pytest.param("Net_fc.weight", "gradient/Net_fc.weight", id="pytorch"),
        pytest.param("conv0_weight", "gradient/conv0_weight", id="mxnet"),
        pytest.param("dense_weight:0", "gradients/dense_weight:0Grad", id="tensorflow"),
    ],
)
def test_gradients_are_found_by_the_names_of_all_frameworks(
    weight: str, gradient: str, tmp_path: Path
) -> None:
    learns = f"other_{weight}"
    steps = {
        at: {weight: np.ones(2), gradient: np.full(2, float(at)), learns: np.full(2, float(at))}
        for at in range(3)
    }
    assert judge(UnchangedTensor, save(tmp_path, steps), collection_names="weights").met == [2]


@pytest.mark.parametrize(
    ("flag", "gradient", "notes"),
    [
        pytest.param(0, GRADIENT, [], id="frozen"),
        pytest.param(1, GRADIENT, ["is bitwise identical."], id="forgotten"),
        pytest.param(1, "gradient/other", ["It requires a gradient and got none."], id="detached"),
    ],
)
def test_requires_grad_tells_frozen_parameters(
    flag: int, gradient: str, notes: list[str], tmp_path: Path
) -> None:
    flags = {f"parameters/requires_grad/{NAME}": np.uint8(flag)}
    learns = {"head.weight", "gradient/head.weight"}
    steps = {
        at: {NAME: np.ones(2)} | {name: np.full(2, at) for name in {gradient, *learns}}
        for at in range(3)
    }
    steps[0] |= flags
    found = judge(UnchangedTensor, save(tmp_path, steps), collection_names="weights")
    assert len(found.findings) == len(notes)
    assert all(
        str(one.note).endswith(note) for one, note in zip(found.findings, notes, strict=True)
    )


FLAG = f"parameters/requires_grad/{NAME}"
NORM = "optimizer/grad_norm"


@pytest.mark.parametrize(
    ("others", "met"),
    [
        pytest.param([{FLAG: 0}, {}, {}, {FLAG: 1}, {}, {}], [5], id="thawed"),
        pytest.param([{FLAG: 1}, {}, {}, {FLAG: 0}, {}, {}], [2, 3, 4, 5], id="frozen-midway"),
        pytest.param(
            [{FLAG: 1, GRADIENT: 1}, {}, {}, {GRADIENT: 1}, {GRADIENT: 1}, {GRADIENT: 1}],
            [5],
            id="not-used-by-all-batches",
        ),
        pytest.param([{NORM: 1}, {}, {}, {}, {NORM: 1}, {}], [5], id="accumulated"),
        pytest.param([{NORM: 1}, {}, {NORM: 1}, {}], [3], id="called-without-effect"),
        pytest.param([{NORM: 1}, *[{}] * 43], [41, 42, 43], id="never-called-again"),
        pytest.param([{NORM: 1}, *[{}] * 19, {NORM: 1}, *[{}] * 43], [21], id="seldom-called"),
        pytest.param([{}] * 6, [2, 3, 4, 5], id="nothing-known"),
    ],
)
def test_parameters_may_stand_still_for_a_reason(
    others: list[dict[str, int]], met: list[int], tmp_path: Path
) -> None:
    other = {"head.weight": 1, "gradient/head.weight": 1}
    steps = {
        at: {NAME: np.ones(2)}
        | {name: np.full(2, value * (at + 1.0)) for name, value in other.items()}
        | {name: np.array(value, np.uint8) for name, value in more.items()}
        for at, more in enumerate(others)
    }
    if GRADIENT not in str(others):
        for tensors in steps.values():
            tensors[GRADIENT] = np.ones(2)
    assert judge(UnchangedTensor, save(tmp_path, steps), collection_names="weights").met == met


@pytest.mark.parametrize(
    ("name", "values", "met"),
    [
        pytest.param("train-logloss", [0.6] * 3, [2], id="never-falls"),
        pytest.param("train-logloss", [0.6, 0.5, 0.5, 0.5], [], id="converged"),
        pytest.param("train-logloss", [0.6, 0.59, 0.59, 0.59], [3], id="hardly-fallen"),
        pytest.param("train-error", [0.2] * 3, [], id="a-share-of-rows"),
        pytest.param("validation_0-auc", [0.9] * 3, [], id="a-rank"),
        pytest.param("train-rmse", [0.2] * 3, [2], id="a-mean"),
    ],
)
def test_losses_that_have_converged_and_shares_of_rows_may_repeat(
    name: str, values: list[float], met: list[int], tmp_path: Path
) -> None:
    writer = TrialWriter(tmp_path, collections={"losses": name})
    for step, value in enumerate(values):
        writer.step(step, {name: np.array(value, np.float64)})
    writer.close()
    assert judge(UnchangedTensor, tmp_path, collection_names="losses").met == met


@pytest.mark.parametrize(
    ("name", "value", "met"),
    [
        pytest.param("critic.weight", [-0.1, 0.1, 0.1, 0.02] * 4, [], id="clipped"),
        pytest.param("critic.weight", [-0.1, 0.05, 0.02, 0.1] * 4, [3], id="not-clipped"),
        pytest.param("critic.weight", [0.1] * 16, [], id="clipped-on-one-side"),
        pytest.param("critic.weight", [0.1] * 15, [3], id="few-elements"),
        pytest.param("critic.weight", [0.0] * 16, [3], id="all-zero"),
        pytest.param("norm.weight", [1.0] * 16, [2], id="never-moved"),
        pytest.param("experts.0.weight", [1.0, 2.0], [], id="expert"),
    ],
)
def test_clipped_weights_and_experts_may_stand_still(
    name: str, value: list[float], met: list[int], tmp_path: Path
) -> None:
    steps = {at: {name: np.array(value)} for at in range(4)}
    if name != "norm.weight":
        steps[0] = {name: np.arange(1.0, len(value) + 1)}
    assert judge(UnchangedTensor, save(tmp_path, steps), collection_names="weights").met[:1] == met


@pytest.mark.parametrize("is_finite", [True, False])
def test_a_scaler_skips_updates_while_gradients_overflow(is_finite: bool, tmp_path: Path) -> None:
    gradient = np.array([1.0, 1.0 if is_finite else np.inf])
    steps = {
        at: {NAME: np.ones(2), GRADIENT: gradient, "head.weight": np.full(2, at)} for at in range(3)
    }
    met = judge(UnchangedTensor, save(tmp_path, steps), collection_names="weights").met
    assert met == ([2] if is_finite else [])


@pytest.mark.parametrize(("name", "met"), [("policy_loss", []), ("loss", [2])])
def test_losses_that_need_not_fall_need_not_move(name: str, met: list[int], tmp_path: Path) -> None:
    steps = {at: {name: 1.0} for at in range(3)}
    assert judge(UnchangedTensor, save(tmp_path, steps), collection_names="losses").met == met


@pytest.mark.parametrize(
    ("rates", "met"),
    [([0, 0, 0], []), ([0, 1e-9, 2e-9], []), ([1, 1, 1], [2]), ([1, 0, 0], [2])],
)
def test_a_warm_up_keeps_weights_still(rates: list[float], met: list[int], tmp_path: Path) -> None:
    collections = {"weights": "weight$", "learning_rates": "^rate"}
    writer = TrialWriter(tmp_path, collections=collections, end_job=False)
    for step, rate in enumerate(rates):
        writer.step(step, {NAME: np.ones(2), "rate": np.array(rate)})
    assert judge(UnchangedTensor, tmp_path, collection_names="weights").met == met
    found = judge(UnchangedTensor, tmp_path, collection_names="weights", literal=True)
    assert found.met == [2]


@pytest.mark.parametrize(
    ("rate", "drift", "met"),
    [(1e-6, 1e-6, []), (1e-6, 0.0, [2, 3]), (0.0, 1e-6, [2, 3])],
)
def test_small_updates_of_a_small_rate_are_changes(
    rate: float, drift: float, met: list[int], tmp_path: Path
) -> None:
    collections = {"weights": "weight$", "learning_rates": "^rate"}
    writer = TrialWriter(tmp_path, collections=collections, end_job=False)
    for step in range(4):
        writer.step(
            step, {NAME: np.ones(2) + drift * step, "rate": np.array(rate or float(step == 0))}
        )
    assert judge(UnchangedTensor, tmp_path, collection_names="weights").met == met


@pytest.mark.parametrize(
    ("loss", "params", "met"),
    [
        (2.125, {}, [11, 12]),
        (2.125, {"literal": True}, [*range(2, 13)]),
        (2.1, {}, [*range(2, 13)]),
        (2.125 + 1e-9, {}, [*range(2, 13)]),
        (1e300 / 3, {}, [*range(2, 13)]),
    ],
)
def test_losses_in_half_precision_are_compared_for_longer(
    loss: float, params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    save(tmp_path, {at: {"loss": loss} for at in range(13)})
    assert judge(UnchangedTensor, tmp_path, collection_names="losses", **params).met == met


def test_what_is_no_parameter_needs_no_gradient(tmp_path: Path) -> None:
    steps = {at: {"loss": 1.0, GRADIENT: np.full(2, float(at))} for at in range(3)}
    assert judge(UnchangedTensor, save(tmp_path, steps), collection_names="losses").met == [2]


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "met"),
    [
        pytest.param({"num_steps": "2"}, [1, 3], id="num_steps"),
        pytest.param({"num_steps": 4, "atol": 0.5}, [3], id="atol"),
        pytest.param({"num_steps": 4, "rtol": "0.4"}, [3], id="rtol"),
        pytest.param({"num_steps": 4}, [], id="none"),
    ],
)
def test_parameters_may_be_text(params: dict[str, Any], met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, [1.0, 1.0, 1.4, 1.4], **params).met == met


@pytest.mark.parametrize("equal_nan", ["yes", True])
def test_nan_may_equal_nan(equal_nan: Any, tmp_path: Path) -> None:
    assert judged(tmp_path, [[np.nan, 1.0]] * 3, equal_nan=equal_nan).met == [2]
    assert judged(tmp_path / "2", [1.0, np.nan, 1.0], equal_nan=equal_nan).met == []


def test_no_tolerance_at_all_wants_equal_bits(tmp_path: Path) -> None:
    values = [1.0, 1.0, 1.0, 1.0 + 1e-15]
    assert judged(tmp_path, values, rtol=0, atol=0).met == [2]


def test_an_empty_pattern_selects_nothing(tmp_path: Path) -> None:
    save(tmp_path, {at: {"loss": 1.0, NAME: np.ones(2)} for at in range(3)})
    found = judge(UnchangedTensor, tmp_path, collection_names="losses", tensor_regex="")
    assert [one.tensor for one in found.findings] == ["loss"]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"collection_names": ""}, "'collection_names' or 'tensor_regex', and neither was given"),
        ({"num_steps": 1}, "'num_steps' must be a whole number >= 2, got 1"),
        ({"num_steps": 2.5}, "'num_steps' must be a whole number >= 2, got 2.5"),
        ({"rtol": -1}, "'rtol' must be a finite number >= 0, got -1"),
        ({"atol": "nan"}, "'atol' must be a finite number >= 0, got 'nan'"),
        ({"equal_nan": "perhaps"}, "'equal_nan' must be true, false"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [1.0], **params)


@pytest.mark.parametrize(
    ("gradient", "other", "rate", "met"),
    [
        pytest.param(1.0, 0.0, None, [16, 17, 18, 19], id="all-stand-still"),
        pytest.param(1.0, 1.0, None, [*range(2, 20)], id="others-change"),
        pytest.param(0.0, 0.0, None, [*range(2, 20)], id="gradients-of-0"),
        pytest.param(1.0, 0.0, 0.1, [16, 17, 18, 19], id="rate-above-0"),
    ],
)
def test_all_parameters_may_stand_still_while_gradients_accumulate(
    gradient: float, other: float, rate: float | None, met: list[int], tmp_path: Path
) -> None:
    tensors = {NAME: np.ones(2), GRADIENT: np.full(2, gradient)}
    rates = {} if rate is None else {"optimizer/lr/0": np.array(rate)}
    steps = {at: {**tensors, **rates, "head.weight": np.ones(2) + other * at} for at in range(20)}
    trial = save(tmp_path, steps)
    assert judge(UnchangedTensor, trial, tensor_regex="", collection_names="weights").met == met


def test_a_parameter_that_moves_and_comes_back_does_not_stand_still(tmp_path: Path) -> None:
    tensors = {NAME: np.ones(2), GRADIENT: np.ones(2)}
    steps = {at: {**tensors, "head.weight": np.full(2, at % 2)} for at in range(5)}
    found = judge(UnchangedTensor, save(tmp_path, steps), collection_names="weights")
    assert found.met == [2, 3, 4]
