"""WeightUpdateRatio: which weights move too much or too little, and when that counts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import WeightUpdateRatio
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAME = "fc.weight"
WARNING = Severity.WARNING
GRADIENT = f"gradient/{NAME}"
FROZEN = "Not changed at all."
NOTHING = "no weight to compare with an earlier step"
T, E, P = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT


def judged(root: Path, values: list[Any], every: int = 1, **params: Any) -> Judged:
    """Judge one weight, saved at steps 0, `every`, 2 * `every`...; None is a step without it."""
    steps = {
        at * every: {"other": np.ones(2)} if value is None else {NAME: np.asarray(value)}
        for at, value in enumerate(values)
    }
    return judge(WeightUpdateRatio, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        pytest.param([1.0, 1.5, 20.0, 21.0], [2], id="leaps"),
        pytest.param([1.0, -20.0], [1], id="to-the-other-side"),
        pytest.param([1.0], [], id="one-step"),
        pytest.param([1.0, None, 20.0], [2], id="missing-at-a-step"),
        pytest.param([1.0, 1.1, 1.0], [], id="healthy"),
        pytest.param([1.0, np.nan, 1.0, 20.0], [3], id="nan"),
        pytest.param([1.0, np.inf, 1.0], [], id="infinite"),
        pytest.param([[3.0, 4.0], [3.0, 60.0]], [1], id="norm-over-all-elements"),
        pytest.param([[3.0, 4.0], [3.0, 50.0]], [], id="just-within"),
        pytest.param([1.0, [20.0]], [], id="another-shape"),
        pytest.param([1, 20], [1], id="integers"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_large_updates_meet_it(
    values: list[Any], met: list[int], literal: bool, tmp_path: Path
) -> None:
    assert judged(tmp_path, values, literal=literal).met == met


@pytest.mark.parametrize(
    ("change", "params", "met"),
    [
        pytest.param(2.0, {"large_threshold": 2, "epsilon": 1e-300}, [], id="large-is-open"),
        pytest.param(2.0, {"large_threshold": 1.999}, [1], id="above"),
        pytest.param(0.5, {"small_threshold": 0.5, "epsilon": 1e-300}, [], id="small-is-open"),
        pytest.param(0.5, {"small_threshold": 0.501}, [1], id="below"),
        pytest.param(2.0, {"large_threshold": 1, "epsilon": 1.5}, [], id="epsilon"),
        pytest.param(2.0, {"large_threshold": "", "small_threshold": "None"}, [], id="defaults"),
    ],
)
def test_thresholds_and_epsilon(
    change: float, params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, [1.0, 1.0 + change], literal="yes", **params).met == met


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_all_floating_point_types_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [np.array([[0.5, 1.0]], dtype) * np.array(one, dtype) for one in (1, 2, 64)]
    assert judged(tmp_path, values).met == [2]


# -- what is compared ----------------------------------------------------------------------------

DOUBLING = [2.0**at for at in range(8)]


@pytest.mark.parametrize(
    ("num_steps", "every", "met"),
    [
        pytest.param(None, 1, [], id="the-last-one"),
        pytest.param(3, 1, [], id="seven-times-in-three-steps"),
        pytest.param(4, 1, [4, 5, 6, 7], id="fifteen-times-in-four"),
        pytest.param("40", 10, [40, 50, 60, 70], id="counted-in-steps-not-in-saves"),
        pytest.param(39, 10, [], id="not-further-back"),
    ],
)
def test_the_earliest_step_within_num_steps_is_taken(
    num_steps: Any, every: int, met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, DOUBLING, every, num_steps=num_steps).met == met


def test_nothing_within_num_steps_is_not_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, [1.0, 20.0], every=10, num_steps=9)
    assert found.skipped == {0: NOTHING, 10: NOTHING}


def test_steps_count_within_the_mode(tmp_path: Path) -> None:
    modes = {0: T, 1: E, 2: E, 3: T}
    save(tmp_path, {0: {NAME: np.ones(2)}, 3: {NAME: np.full(2, 20.0)}}, modes=modes)
    assert judge(WeightUpdateRatio, tmp_path, num_steps=1).met == [3]


@pytest.mark.parametrize("literal", [False, True])
def test_evaluation_is_passed_over(literal: bool, tmp_path: Path) -> None:
    modes = {0: E, 1: E, 2: T, 3: E, 4: P, 5: T}
    values = [1.0, 1.0, 1.0, 50.0, 50.0, 1.5]
    steps = {at: {NAME: np.full(2, value)} for at, value in enumerate(values)}
    found = judge(WeightUpdateRatio, save(tmp_path, steps, modes=modes), literal=literal)
    assert found.met == []
    still = "weights do not change in this mode"
    assert found.skipped == {0: still, 1: still, 2: NOTHING, 3: still, 4: still}


def test_at_a_save_interval_of_500_the_earliest_step_is_500(tmp_path: Path) -> None:
    assert judged(tmp_path, [1.0, 20.0, 20.0], every=500).met == [500]
    assert judged(tmp_path / "2", [1.0, 1.0, 1.0], 500, literal=True).met == [500, 1000]


def test_each_worker_is_judged_against_itself(tmp_path: Path) -> None:
    for worker, later in (("worker_0", 1.1), ("worker_1", 20.0)):
        steps = {0: {NAME: np.ones(2)}, 1: {NAME: np.full(2, later)}}
        save(tmp_path, steps, num_workers=2, worker=worker)
    found = judge(WeightUpdateRatio, tmp_path)
    assert [(one.tensor, one.worker) for one in found.findings] == [(NAME, "worker_1")]


def test_a_worker_that_lacks_a_step_is_compared_with_the_one_before(tmp_path: Path) -> None:
    save(tmp_path, {at: {NAME: np.ones(1) + at} for at in range(3)}, num_workers=2)
    steps = {0: {NAME: np.ones(1)}, 2: {NAME: np.full(1, 20.0)}}
    save(tmp_path, steps, num_workers=2, worker="worker_1")
    found = judge(WeightUpdateRatio, tmp_path)
    assert [(one.step, one.worker) for one in found.findings] == [(2, "worker_1")]


@pytest.mark.parametrize("value", [np.zeros((0, 3)), np.array(["a"]), np.array([1j])])
def test_what_holds_no_real_numbers_is_not_judged(value: Any, tmp_path: Path) -> None:
    assert judged(tmp_path, [value, value]).skipped == {0: NOTHING, 1: NOTHING}


def test_reductions_are_not_enough(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={at: {NAME: {("l2", False): 1.0}} for at in range(2)})
    assert judge(WeightUpdateRatio, tmp_path).skipped == {0: NOTHING, 1: NOTHING}


def test_a_step_without_weights_is_reported(tmp_path: Path) -> None:
    assert judged(tmp_path, [None]).skipped == {0: "no weights at this step"}


def test_evidence_names_tensor_worker_ratio_and_threshold(tmp_path: Path) -> None:
    found = judged(tmp_path, [[0.0, 5.0], [0.0, 60.0]], epsilon=5)
    assert found.findings == []
    found = judged(tmp_path / "2", [[0.0, 5.0], [0.0, 60.0]])
    expected = 55.0 / (5.0 + 1e-9)
    assert found.findings == [Finding(1, NAME, "worker_0", expected, 10.0, None, WARNING)]


# -- small updates -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "met", "literal"),
    [
        pytest.param([1.0] * 13, [10, 11, 12], list(range(1, 13)), id="never-moves"),
        pytest.param([1.0, 1.1] + [1.1] * 11, [11, 12], list(range(2, 13)), id="stops"),
        pytest.param([1.0] * 10 + [1.1] * 3, [], [*range(1, 10), 11, 12], id="accumulates"),
        pytest.param(
            [1.0 + 1e-9 * at for at in range(12)], [10, 11], list(range(1, 12)), id="creeps"
        ),
        pytest.param([0.0] * 12, [], list(range(1, 12)), id="zero"),
        pytest.param([0.0, 1e-3, 2e-3], [], [1], id="begins-at-zero"),
    ],
)
def test_small_updates_meet_it_once_they_last(
    values: list[float], met: list[int], literal: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path / "default", values).met == met
    assert judged(tmp_path / "literal", values, literal=True).met == literal


@pytest.mark.parametrize(
    ("updates", "met"),
    [
        pytest.param(range(12), [10, 11], id="called-without-effect"),
        pytest.param([0, 6], [], id="accumulates"),
    ],
)
def test_only_steps_with_an_update_of_the_optimizer_count(
    updates: Sequence[int], met: list[int], tmp_path: Path
) -> None:
    steps: dict[int, dict[str, Any]] = {at: {NAME: np.ones(2)} for at in range(12)}
    for at in updates:
        steps[at]["optimizer/grad_norm"] = np.float32(1)
    assert judge(WeightUpdateRatio, save(tmp_path, steps)).met == met


@pytest.mark.parametrize("every", [1, 5, 500])
def test_saved_steps_that_stand_still_are_counted(every: int, tmp_path: Path) -> None:
    assert judged(tmp_path, [1.0] * 12, every).met == [10 * every, 11 * every]


def test_factors_that_start_close_to_zero_multiply_at_first(tmp_path: Path) -> None:
    values = [[0.0, 0.0], [1e-5, 1e-5], [1e-3, 2e-3], [0.04, -0.04], [2.0, 3.0]]
    assert judged(tmp_path, values).met == [4]
    assert judge(WeightUpdateRatio, tmp_path, literal=True).met == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("rates", "met"),
    [
        pytest.param([0.0] * 12, [], id="before-a-warm-up"),
        pytest.param([1e-9 * at for at in range(12)], [], id="in-a-warm-up"),
        pytest.param([0.1] * 12, [10, 11], id="constant"),
        pytest.param([0.1] + [0.0] * 11, [10, 11], id="falls-to-zero"),
    ],
)
def test_a_warm_up_keeps_weights_still(rates: list[float], met: list[int], tmp_path: Path) -> None:
    steps = {at: {NAME: np.ones(2), "rate": np.array(rate)} for at, rate in enumerate(rates)}
    assert judge(WeightUpdateRatio, with_rates(tmp_path, steps)).met == met


def with_rates(root: Path, steps: dict[int, dict[str, Any]]) -> Path:
    """Save steps whose tensor `rate` is a learning rate."""
    writer = TrialWriter(
        root, collections={"weights": "weight$", "learning_rates": "^rate"}, end_job=False
    )
    for step, tensors in steps.items():
        writer.step(step, tensors)
    return root


def test_a_weight_that_does_not_move_may_be_frozen(tmp_path: Path) -> None:
    found = judged(tmp_path, [1.0] * 11)
    assert found.findings == [Finding(10, NAME, "worker_0", 0.0, 1e-8, FROZEN, WARNING)]


@pytest.mark.parametrize(
    ("first", "gradients", "met"),
    [
        pytest.param(1.0, [], [], id="others-move"),
        pytest.param(1.0, ["gradient/head.weight"], [], id="frozen"),
        pytest.param(1.0, ["gradient/head.weight", GRADIENT], [10, 11], id="forgotten"),
        pytest.param(0.5, [], [11], id="moved-before"),
        pytest.param(0.5, ["gradient/head.weight"], [11], id="moved-before-and-frozen-then"),
        pytest.param(1.0, ["gradient/head.lora_A"], [], id="frozen-beside-an-adapter"),
    ],
)
def test_a_weight_that_never_moves_while_others_do_is_frozen(
    first: float, gradients: list[str], met: list[int], tmp_path: Path
) -> None:
    steps = {
        at: {NAME: np.full(2, 1.0 if at else first), "head.weight": np.full(2, 1.0 + at)}
        | {name: np.ones(2) for name in gradients}
        for at in range(12)
    }
    assert judge(WeightUpdateRatio, save(tmp_path, steps)).met == met


@pytest.mark.parametrize(
    ("flags", "met"),
    [
        pytest.param({0: 0}, [], id="frozen"),
        pytest.param({0: 1}, [10, 11], id="forgotten"),
        pytest.param({0: 1, 3: 0}, [10, 11], id="frozen-later"),
        pytest.param({0: 0, 6: 1}, [], id="thawed"),
    ],
)
def test_requires_grad_tells_frozen_weights(
    flags: dict[int, int], met: list[int], tmp_path: Path
) -> None:
    steps = {
        at: {NAME: np.ones(2), "head.weight": np.full(2, 1.0 + at)}
        | ({f"parameters/requires_grad/{NAME}": np.uint8(flags[at])} if at in flags else {})
        for at in range(12)
    }
    assert judge(WeightUpdateRatio, save(tmp_path, steps)).met == met


def test_all_parameters_are_judged_whatever_their_names_but_biases(tmp_path: Path) -> None:
    names = ("cls_token", "A_log", "bias")
    writer = TrialWriter(tmp_path, collections={"parameters": ".", "biases": "bias"}, end_job=False)
    for step, value in enumerate([1.0, 20.0]):
        flags = {f"parameters/requires_grad/{name}": np.uint8(1) for name in names}
        writer.step(step, dict.fromkeys(names, np.full(2, value)) | flags)
    found = judge(WeightUpdateRatio, tmp_path)
    assert [finding.tensor for finding in found.findings] == ["A_log", "cls_token"]


def test_a_frozen_weight_is_no_fault_where_no_weight_moves(tmp_path: Path) -> None:
    steps = {
        at: {NAME: np.ones(2), "head.weight": np.ones(2), "gradient/head.weight": np.ones(2)}
        for at in range(11)
    }
    found = judge(WeightUpdateRatio, save(tmp_path, steps))
    assert [one.tensor for one in found.findings] == ["head.weight"]


def test_tensorflow_weights_are_those_of_the_collection(tmp_path: Path) -> None:
    steps = {at: {"dense_weight/kernel:0": np.full(2, 1.0 + 19 * at)} for at in (0, 1)}
    found = judge(WeightUpdateRatio, save(tmp_path, steps))
    assert [one.tensor for one in found.findings] == ["dense_weight/kernel:0"]


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"num_steps": 0}, "'num_steps' must be a whole number >= 1, got 0"),
        ({"large_threshold": 0}, "'large_threshold' must be a finite number > 0, got 0"),
        ({"small_threshold": -1}, "'small_threshold' must be a finite number >= 0, got -1"),
        ({"epsilon": "0"}, "'epsilon' must be a finite number > 0, got '0'"),
        ({"large_threshold": 1e-9}, "'small_threshold' must be <= 'large_threshold', 1e-09, got"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [1.0], **params)
