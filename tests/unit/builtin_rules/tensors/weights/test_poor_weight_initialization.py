"""PoorWeightInitialization: its three checks, the steps that count, and what tensors are read."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, Steps, judge, save

from builtin_rules import PoorWeightInitialization
from builtin_rules.tensors.weights.poor_weight_initialization import INPUTS, _spread
from rule_core.model.patterns import matching
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

GRADIENT = "gradient/fc.weight"
OTHER = "gradient/out.weight"
T, E, P = ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT
NOTHING = "nothing to compare yet"


def judged(root: Path, saved: Steps, /, **params: Any) -> Judged:
    return judge(PoorWeightInitialization, save(root, saved), **params)


def always(count: int, tensors: dict[str, Any]) -> Steps:
    """Return so many steps with the same tensors."""
    return dict.fromkeys(range(count), tensors)


def inputs(*variances: float) -> dict[str, Any]:
    """Return inputs of activation functions of twice these variances, at layers 0, 1, 2..."""
    spread = np.array([[-1.0, 1.0]]) * 2**0.5
    return {f"relu{at}_input_0": spread * one**0.5 for at, one in enumerate(variances)}


# -- (a) variances -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variances", "met", "literal"),
    [
        pytest.param((1, 4, 25), False, True, id="from-layer-to-layer"),
        pytest.param((25, 1, 4), False, True, id="in-any-order"),
        pytest.param((1, 4, 144), True, True, id="a-leap"),
        pytest.param((1, 36), True, True, id="two"),
        pytest.param((1, 9), False, False, id="two-alike"),
        pytest.param((1,), None, None, id="one"),
        pytest.param((0, 1), True, True, id="one-is-constant"),
        pytest.param((0, 0), False, False, id="all-are-constant"),
        pytest.param((1, np.inf), None, None, id="infinite"),
        pytest.param((1, np.nan, 4), False, False, id="nan"),
        pytest.param((5e-324, 1.0), True, True, id="almost-constant"),
    ],
)
def test_variances_of_activation_inputs(
    variances: tuple[float, ...], met: bool | None, literal: bool | None, tmp_path: Path
) -> None:
    save(tmp_path, {0: inputs(*variances)})
    for expected, params in ((met, {}), (literal, {"literal": True})):
        found = judge(PoorWeightInitialization, tmp_path, **params)
        assert (found.met, found.skipped) == (
            [0] if expected else [],
            {0: NOTHING} if expected is None else {},
        )


def test_the_threshold_is_open(tmp_path: Path) -> None:
    for variance, met in ((10, []), (10.1, [4]), (20, [4]), (20.1, [0, 1, 2, 3, 4])):
        steps = always(5, inputs(1, variance))
        assert judged(tmp_path / str(variance), steps).met == met, variance


def test_a_given_threshold_binds_at_once(tmp_path: Path) -> None:
    steps = always(2, inputs(1, 16))
    assert judged(tmp_path / "at", steps, threshold=16).met == []
    assert judged(tmp_path / "below", steps, threshold="15.99").met == [0, 1]
    assert judged(
        tmp_path / "largest-and-smallest", always(1, inputs(1, 4, 16)), threshold=10
    ).met == [0]


def test_variances_must_be_far_apart_from_the_first_step_on(tmp_path: Path) -> None:
    apart = [True, True, False, True, True]
    steps = {at: inputs(1, 36 if far else 1) for at, far in enumerate(apart)}
    assert judged(tmp_path, steps).met == [0, 1]
    assert judge(PoorWeightInitialization, tmp_path, literal=True).met == [0, 1, 3, 4]


def test_evidence_names_both_layers(tmp_path: Path) -> None:
    note = "Variance 72, compared with 2 of 'relu1_input_0'."
    ratio = pytest.approx(36.0)
    expected = Finding(0, "relu0_input_0", "worker_0", ratio, 10.0, note, Severity.WARNING)
    assert judged(tmp_path, {0: inputs(36, 1)}).findings == [expected]


@pytest.mark.parametrize(
    ("mean", "variance", "met"),
    [(0.0, 1.0, []), (0.09, 0.91, []), (0.2, 1.0, [0]), (0.0, 1.2, [0])],
)
def test_what_a_norm_layer_gives_is_no_matter_of_weights(
    mean: float, variance: float, met: list[int], tmp_path: Path
) -> None:
    behind_norm = np.array([[-1.0, 1.0]]) * variance**0.5 + mean
    steps = {0: {"relu0_input_0": behind_norm, "relu1_input_0": np.array([[0.1, -0.1]])}}
    assert judged(tmp_path, steps).met == met
    assert judge(PoorWeightInitialization, tmp_path, literal=True).met == [0]


@pytest.mark.parametrize(("is_trained", "met"), [(True, [0]), (False, [])])
def test_frozen_parameters_tell_of_an_earlier_training(
    is_trained: bool, met: list[int], tmp_path: Path
) -> None:
    flag = {"parameters/requires_grad/trunk.weight": np.array(is_trained)}
    assert judged(tmp_path, {0: inputs(36, 1) | flag}).met == met
    assert judge(PoorWeightInitialization, tmp_path, literal=True).met == [0]


def test_two_models_are_not_compared(tmp_path: Path) -> None:
    tensors = inputs(1, 36) | {"d_loss": 1.0, "g_loss": 1.0}
    reason = "layers of two models cannot be compared"
    assert judged(tmp_path, {0: tensors}).skipped == {0: reason}


def test_one_element_has_no_variance(tmp_path: Path) -> None:
    tensors = {"relu0_input_0": np.ones((1, 1)), "relu1_input_0": np.eye(2)}
    assert judged(tmp_path, {0: tensors}).skipped == {0: NOTHING}


def test_saved_variances_and_deviations_are_judged(tmp_path: Path) -> None:
    reductions = {
        0: {"relu0_input_0": {("variance", False): 144.0}, "relu1_input_0": {("std", False): 2.0}}
    }
    save(tmp_path, {}, reductions=reductions)
    assert judge(PoorWeightInitialization, tmp_path).met == [0]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_all_floating_point_types_are_judged(dtype: Any, tmp_path: Path) -> None:
    steps = {0: {name: value.astype(dtype) for name, value in inputs(1, 36).items()}}
    assert judged(tmp_path, steps).met == [0]


NAMES = {
    "pytorch": ["ReLU_input_0", "relu1_input_0", "conv1.relu_input_0", "block.ReLU6_input_2"],
    "mxnet": ["conv0_relu_input_0", "relu0_input_0"],
    "keras": ["activation_relu/inputs", "re_lu/inputs", "re_lu_1/inputs", "relu_1/inputs"],
}


@pytest.mark.parametrize("framework", NAMES)
def test_inputs_are_found_by_the_names_of_all_frameworks(framework: str) -> None:
    assert matching(NAMES[framework], INPUTS.whole_default) == NAMES[framework]


def test_other_tensors_are_no_inputs_of_activations() -> None:
    decoys = ["ReLU_output_0", "relu/outputs", "conv1_input_0", "gradient/relu.weight", "inputs"]
    assert matching(decoys, INPUTS.whole_default) == []


def collected(root: Path, names: dict[str, float]) -> Path:
    """Save tensors of these variances, in the collection relu_input."""
    writer = TrialWriter(root, collections={"relu_input": "^[0-9]_input"}, end_job=False)
    values = {name: np.array([-2.0, 2.0]) * one**0.5 for name, one in names.items()}
    writer.step(0, values)
    return root


def test_the_collection_tells_where_names_do_not(tmp_path: Path) -> None:
    root = collected(tmp_path, {"1_input_0": 1.0, "3_input_0": 36.0})
    assert judge(PoorWeightInitialization, root).met == [0]


def test_a_given_pattern_stands_for_itself(tmp_path: Path) -> None:
    names = {"1_input_0": 1.0, "3_input_0": 36.0, "a_relu_input": 1.0, "tanh1": 1.0, "tanh2": 1.0}
    root = collected(tmp_path, names)
    assert judge(PoorWeightInitialization, root, activation_inputs_regex="tanh").met == []
    given = judge(PoorWeightInitialization, root, activation_inputs_regex=["tanh", "^3"])
    assert [one.tensor for one in given.findings] == ["3_input_0"]


# -- (b) gradients -------------------------------------------------------------------------------


def wide(spread: float, size: int = 100) -> "np.ndarray":
    """Return a gradient whose 5th and 95th percentile lie so far apart."""
    return np.linspace(-spread, spread, size).reshape(-1, 1) / 1.8


@pytest.mark.parametrize(
    ("ours", "others", "met", "literal"),
    [
        pytest.param(1.0, 1.0, [], [], id="wide"),
        pytest.param(1e-10, 1e-6, [4, 5], [0, 1, 2, 3, 4, 5], id="narrow-beside-others"),
        pytest.param(1e-9, 1e-4, [], [0, 1, 2, 3, 4, 5], id="others-are-of-usual-size"),
        pytest.param(1e-4, 1e-4, [], [0, 1, 2, 3, 4, 5], id="all-are-small"),
        pytest.param(1e-5, 1e-3, [], [0, 1, 2, 3, 4, 5], id="a-hundredth"),
        pytest.param(0.1, 1e3, [], [], id="small-share-but-wide"),
        pytest.param(0.0, 1.0, [4, 5], [0, 1, 2, 3, 4, 5], id="zero"),
        pytest.param(np.nan, 1.0, [], [], id="nan"),
    ],
)
def test_gradients_of_narrow_distribution(
    ours: float, others: float, met: list[int], literal: list[int], tmp_path: Path
) -> None:
    tensors = {GRADIENT: wide(ours), OTHER: wide(others), "gradient/b.weight": wide(others)}
    save(tmp_path, always(6, tensors))
    assert judge(PoorWeightInitialization, tmp_path).met == met
    assert judge(PoorWeightInitialization, tmp_path, literal=True).met == literal


def test_a_gradient_must_be_narrow_without_a_break(tmp_path: Path) -> None:
    steps = {
        at: {
            GRADIENT: wide(1e-6 if at == 2 else 1e-10),
            OTHER: wide(1e-6),
            "gradient/b": wide(1e-6),
        }
        for at in range(9)
    }
    assert judged(tmp_path, steps).met == [7, 8]
    assert judge(PoorWeightInitialization, tmp_path, patience=2).met == [1, 4, 5, 6, 7, 8]


def test_zeros_of_sparse_gradients_are_left_out(tmp_path: Path) -> None:
    sparse = np.zeros((100, 4))
    sparse[0] = [-1.0, 1.0, -0.5, 0.5]
    save(tmp_path, always(5, {GRADIENT: sparse, OTHER: wide(1.0)}))
    assert judge(PoorWeightInitialization, tmp_path).met == []
    assert judge(PoorWeightInitialization, tmp_path, literal=True).met == [0, 1, 2, 3, 4]


def test_infinite_gradients_are_left_out(tmp_path: Path) -> None:
    infinite = np.array([[-np.inf, np.inf]])
    found = judged(tmp_path, always(5, {GRADIENT: infinite}), literal=True)
    assert found.skipped == dict.fromkeys(range(5), NOTHING)


@pytest.mark.parametrize("others", [True, False])
def test_one_dimension_counts_only_where_there_are_no_others(others: bool, tmp_path: Path) -> None:
    tensors = {"gradient/a.bias": np.zeros(4)} | ({OTHER: wide(1.0)} if others else {})
    found = judged(tmp_path, always(5, tensors))
    assert found.met == ([] if others else [4])


def test_evidence_of_a_gradient_that_is_zero_is_reported(tmp_path: Path) -> None:
    steps = always(5, {GRADIENT: wide(0.0), OTHER: wide(1.0)})
    limit = pytest.approx(5e-4)
    note = "All elements are 0."
    expected = Finding(4, GRADIENT, "worker_0", 0.0, limit, note, Severity.WARNING)
    assert judged(tmp_path, steps).findings == [expected]


@pytest.mark.parametrize(
    ("gradient", "note"),
    [
        pytest.param(np.full((4, 4), 0.001), "All elements are 0.001.", id="all"),
        pytest.param(
            np.diag(np.full(4, 0.001)), "All elements other than 0 are 0.001.", id="beside-zeros"
        ),
        pytest.param(
            np.array([*([0.001] * 39), 0.002]).reshape(4, 10),
            "At least 90 % of the elements are equal.",
            id="but-one",
        ),
    ],
)
def test_equal_elements_are_not_called_zero(gradient: Any, note: str, tmp_path: Path) -> None:
    findings = judged(tmp_path, always(5, {GRADIENT: gradient, OTHER: wide(1.0)})).findings
    assert [finding.note for finding in findings] == [note]


@pytest.mark.parametrize("dtype", [np.int8, np.bool_, ml_dtypes.bfloat16])
def test_other_numbers_have_percentiles_too(dtype: Any, tmp_path: Path) -> None:
    steps = always(5, {GRADIENT: np.ones((4, 4), dtype)})
    assert judged(tmp_path, steps, literal=True).met == [0, 1, 2, 3, 4]


# -- (c) losses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "literal"),
    [
        pytest.param([2.0] * 7, [5, 6], id="constant"),
        pytest.param([2.0, 1.9, 1.8, 1.7, 1.6, 1.5, 1.4], [], id="falls"),
        pytest.param([2.0, 1.5, 1.9, 1.8, 1.9, 1.7, 1.6], [6], id="noisy-but-below-the-first"),
        pytest.param([2.0, np.nan, 2.0, np.inf, 2.0, 2.0, 2.0, 2.0], [7], id="not-finite"),
        pytest.param([2.0, None, 2.0, 2.0, 2.0, 2.0, 2.0], [6], id="missing-at-a-step"),
        pytest.param([3, 3, 3, 3, 3, 3], [5], id="integers"),
    ],
)
def test_losses_are_judged_to_the_letter_only(
    losses: list[Any], literal: list[int], tmp_path: Path
) -> None:
    steps = {at: {"loss": one} if one is not None else {"x": 1.0} for at, one in enumerate(losses)}
    save(tmp_path, steps)
    found = judge(PoorWeightInitialization, tmp_path)
    nothing = "no activation inputs or gradients at this step"
    assert (found.met, {*found.skipped.values()}) == ([], {nothing})
    assert judge(PoorWeightInitialization, tmp_path, literal="yes").met == literal


def test_losses_of_elements_and_workers_are_averaged(tmp_path: Path) -> None:
    for worker, slope in (("worker_0", 0.1), ("worker_1", -0.1)):
        steps = {at: {"loss": np.array([2.0 + slope * at, 2.0 + slope * at])} for at in range(6)}
        save(tmp_path, steps, num_workers=2, worker=worker)
    note = "None of the last 5 losses is lower."
    found = judge(PoorWeightInitialization, tmp_path, literal=True).findings
    assert found == [Finding(5, "loss", None, 2.0, 2.0, note, Severity.WARNING)]


@pytest.mark.parametrize(
    ("name", "met"),
    [("loss", [5]), ("val_loss", []), ("train-logloss", [5]), ("validation-logloss", [])],
)
def test_losses_of_validation_are_passed_over(name: str, met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, always(6, {name: 2.0}), literal=True).met == met


# -- which steps ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "last"), [(None, 9), (3, 2), ("3.0", 2), (3.9, 2)])
def test_only_the_first_steps_are_judged(steps: Any, last: int, tmp_path: Path) -> None:
    found = judged(tmp_path, {at: inputs(1, 36) for at in range(12)}, steps=steps)
    over = f"the first {last + 1} saved steps are over"
    assert found.met == list(range(last + 1))
    assert found.skipped == dict.fromkeys(range(last + 1, 12), over)


def test_saved_steps_count_and_only_those_with_something_to_judge(tmp_path: Path) -> None:
    steps: dict[int, dict[str, Any]] = {0: {"x": 1.0}, 500: inputs(1, 36), 1000: {"x": 1.0}}
    found = judged(tmp_path, steps | {1500: inputs(1, 36), 2000: inputs(1, 36)}, steps=2)
    assert found.met == [500, 1500]
    assert found.skipped[1000] == "no activation inputs or gradients at this step"


@pytest.mark.parametrize("literal", [False, True])
def test_evaluation_neither_counts_nor_is_judged(literal: bool, tmp_path: Path) -> None:
    modes = {0: E, 1: T, 2: P, 3: T, 4: T}
    save(tmp_path, dict.fromkeys(modes, inputs(1, 36)), modes=modes)
    found = judge(PoorWeightInitialization, tmp_path, steps=2, literal=literal)
    assert found.met == [1, 3]
    assert found.skipped[2] == "no learning in this mode"


def test_each_worker_is_judged(tmp_path: Path) -> None:
    for worker, second in (("worker_0", 1.0), ("worker_1", 36.0)):
        save(tmp_path, {0: inputs(1, second)}, num_workers=2, worker=worker)
    found = judge(PoorWeightInitialization, tmp_path)
    assert [(one.tensor, one.worker) for one in found.findings] == [("relu1_input_0", "worker_1")]


def test_every_failing_check_is_named(tmp_path: Path) -> None:
    tensors = inputs(1, 36) | {GRADIENT: wide(0.0), "loss": 2.0}
    found = judged(tmp_path, always(6, tensors))
    tensors_at_5 = [one.tensor for one in found.findings if one.step == 5]
    assert tensors_at_5 == ["relu1_input_0", GRADIENT]
    found = judge(PoorWeightInitialization, tmp_path, literal=True)
    tensors_at_5 = [one.tensor for one in found.findings if one.step == 5]
    assert tensors_at_5 == ["relu1_input_0", GRADIENT, "loss"]


def test_experts_without_tokens_are_left_out(tmp_path: Path) -> None:
    steps = always(5, {"gradient/mlp.experts.1.weight": wide(0.0), OTHER: wide(1.0)})
    assert judged(tmp_path, steps).met == []
    assert judge(PoorWeightInitialization, tmp_path, literal=True).met == [*range(5)]


@pytest.mark.parametrize("value", [np.zeros((0, 3)), np.array(["a", "b"]), np.array([1j, 2j])])
def test_what_holds_no_real_numbers_is_not_judged(value: Any, tmp_path: Path) -> None:
    names = [GRADIENT, "loss", "relu0_input_0"]
    found = judged(tmp_path, {0: dict.fromkeys(names, value)})
    assert found.skipped == {0: NOTHING}


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold": 0}, "'threshold' must be a finite number > 0, got 0"),
        ({"distribution_range": -1}, "'distribution_range' must be a finite number >= 0, got -1"),
        ({"patience": 0}, "'patience' must be a whole number >= 1, got 0"),
        ({"patience": "5.5"}, "'patience' must be a whole number >= 1, got '5.5'"),
        ({"steps": 0.5}, "'steps' must be a finite number >= 1, got 0.5"),
        ({"activation_inputs_regex": "("}, r"'activation_inputs_regex' must be .*, got '\('"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, {0: inputs(1, 1)}, **params)


@pytest.mark.parametrize("size", [1, 2, 20, 21, 22, 101, 5000])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int16])
def test_percentiles_are_numpys(size: int, dtype: Any) -> None:
    array = (np.random.default_rng(size).standard_normal(size) * 100).astype(dtype)
    low, high = np.percentile(array.astype(np.float64), [5, 95])
    assert _spread(array, whole=True) == pytest.approx(high - low, rel=1e-12)


def test_there_is_no_percentile_beside_nan() -> None:
    assert np.isnan(_spread(np.array([1.0, np.nan, 2.0]), whole=True))
    assert _spread(np.array([*[0.5] * 50, np.inf]), whole=True) == 0.0
