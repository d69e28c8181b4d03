"""SaturatedActivation: which layers meet the condition, by which bounds, and at which steps."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save
from members import save_members
from numpy.typing import NDArray

from builtin_rules import SaturatedActivation
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

TANH, SIGMOID = "tanh1_input_0", "sigmoid1_input_0"
FEW = "too few numeric samples since the last judgement"
NONE = "no inputs of tanh or sigmoid at this step"
NO_VALUES = "no values of the tensors at this step"
Array = NDArray[Any]


def inputs(*units: float, rows: int = 100, dtype: Any = np.float64) -> Array:
    """Return inputs of units, each the same in all rows."""
    return np.tile(np.array(units, np.float64).astype(dtype), (rows, 1))


class AtOnce(SaturatedActivation):
    """With a warning at the first judgement of a layer that fails."""

    LASTING = 1


def at_once(root: Path, **params: Any) -> Judged:
    """Judge a trial, with a finding at the first judgement of a layer that fails."""
    return judge(AtOnce, root, **params)


def judged(root: Path, values: list[Any], name: str = TANH, **params: Any) -> Judged:
    """Judge one tensor, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"fc.weight": np.ones(2)} if value is None else {name: value}
        for at, value in enumerate(values)
    }
    return at_once(save(root, steps), **params)


@pytest.mark.parametrize(
    ("name", "values", "met"),
    [
        pytest.param(TANH, [inputs(0, 1), inputs(10, -10)], [1], id="saturates"),
        pytest.param(TANH, [inputs(10, 0)], [], id="half-is-not-more-than-half"),
        pytest.param(TANH, [inputs(10, 0, -10)], [0], id="both-sides"),
        pytest.param(TANH, [inputs(9.4999), inputs(-9.4999)], [0, 1], id="tanh-at-the-bounds"),
        pytest.param(TANH, [inputs(9.4998), inputs(-9.4998)], [], id="tanh-inside"),
        pytest.param(SIGMOID, [inputs(16.99999), inputs(-23)], [0, 1], id="sigmoid-at-the-bounds"),
        pytest.param(SIGMOID, [inputs(16.9999), inputs(-22.9999)], [], id="sigmoid-inside"),
        pytest.param(SIGMOID, [inputs(10)], [], id="sigmoid-has-bounds-of-its-own"),
        pytest.param(TANH, [inputs(np.inf), inputs(-np.inf)], [0, 1], id="infinity"),
        pytest.param(TANH, [np.full(100, 10.0)], [0], id="one-dimension-is-one-unit"),
        pytest.param(TANH, [inputs(10), None, inputs(10)], [0, 2], id="missing-at-a-step"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_it_is_met_where_most_units_are_saturated(
    name: str, values: list[Any], met: list[int], literal: bool, tmp_path: Path
) -> None:
    assert judged(tmp_path, values, name, literal=literal).met == met


def test_one_percent_of_the_samples_is_active(tmp_path: Path) -> None:
    one_of = [inputs(10, rows=rows) for rows in (100, 101)]
    for values in one_of:
        values[7] = 0
    assert judged(tmp_path, one_of).met == [1]


def test_evidence_names_tensor_worker_share_limit_and_units(tmp_path: Path) -> None:
    found = judged(tmp_path, [inputs(10, -10, 11, 0)])
    note = "3 of 4 units; samples: 100, saved steps: 1."
    assert found.findings == [Finding(0, TANH, "worker_0", 75.0, 50.0, note, Severity.WARNING)]


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.int8, np.int64, np.uint8]
)
def test_all_types_of_numbers_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [inputs(20, dtype=dtype), inputs(2, dtype=dtype)]
    assert judged(tmp_path, values).met == [0]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_bounds_may_be_larger_than_a_type_holds(dtype: Any, tmp_path: Path) -> None:
    found = judged(tmp_path, [inputs(6e4, dtype=dtype)], threshold_tanh_max=1e39)
    assert (found.met, found.skipped) == ([], {})


# -- samples and units, as in DeadRelu -----------------------------------------------------------


def test_steps_are_pooled_until_there_are_a_hundred_samples(tmp_path: Path) -> None:
    found = judged(tmp_path, [inputs(10, rows=40)] * 6)
    assert (found.met, found.skipped) == ([2, 5], dict.fromkeys([0, 1, 3, 4], FEW))


def test_units_that_are_active_now_and_then_are_not_saturated(tmp_path: Path) -> None:
    steps = [inputs(10, rows=25)] * 3 + [inputs(0, rows=25)]
    assert judged(tmp_path / "pooled", steps).met == []
    assert judged(tmp_path / "letter", steps, literal=True).met == [0, 1, 2]


def test_a_channel_is_a_unit(tmp_path: Path) -> None:
    values = np.full((10, 4, 4, 3), 10.0)
    values[:, 0] = 0.0  # one of four channels, or a quarter of the positions of each of three
    first = judged(tmp_path / "first", [values], "tanh_input_0").findings
    assert [one.measured for one in first] == [75.0]
    assert judged(tmp_path / "last", [values], "tanh/inputs").met == []


@pytest.mark.parametrize("literal", [False, True])
def test_each_worker_is_judged(literal: bool, tmp_path: Path) -> None:
    save(tmp_path, {0: {TANH: inputs(0)}}, num_workers=2)
    save(tmp_path, {0: {TANH: inputs(10)}}, num_workers=2, worker="worker_1")
    found = at_once(tmp_path, literal=literal)
    assert [(one.tensor, one.worker) for one in found.findings] == [(TANH, "worker_1")]


def test_modes_are_pooled_apart(tmp_path: Path) -> None:
    steps = {at: {TANH: inputs(10, rows=50)} for at in range(3)}
    modes = {0: ModeKeys.TRAIN, 1: ModeKeys.EVAL, 2: ModeKeys.TRAIN}
    assert at_once(save(tmp_path, steps, modes=modes)).met == [2]


def test_no_later_step_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    values = [rng.choice([0.0, 10.0], (30, 3), p=[0.02, 0.98]) for _ in range(12)]
    whole = judged(tmp_path / "whole", values)
    assert whole.met
    for end in range(1, len(values)):
        part = judged(tmp_path / str(end), values[:end])
        assert part.met == [step for step in whole.met if step < end]


def test_nan_is_no_sample(tmp_path: Path) -> None:
    values = inputs(10, np.nan, 0, rows=120)
    found = judged(tmp_path, [values], threshold_layer=49)
    assert [one.note for one in found.findings] == ["1 of 2 units; samples: 120, saved steps: 1."]
    assert judged(tmp_path / "nan", [inputs(np.nan)]).skipped == {0: FEW}


def test_to_the_letter_nan_is_not_active(tmp_path: Path) -> None:
    assert judged(tmp_path, [inputs(np.nan, rows=2)], literal=True).met == [0]


@pytest.mark.parametrize(
    "value",
    [np.zeros((0, 3)), np.array(["text"]), np.zeros((100, 2), np.complex64)],
    ids=["empty", "text", "complex"],
)
def test_a_tensor_without_numbers_is_not_judged(value: Array, tmp_path: Path) -> None:
    assert judged(tmp_path, [value]).skipped == {0: NO_VALUES}


def test_reductions_do_not_tell_units_apart(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={4: {TANH: {("max", True): 90.0}}})
    assert at_once(tmp_path).skipped == {4: NO_VALUES}


def test_a_trial_without_such_inputs_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, [None]).skipped == {0: NONE}


# -- names, collections and kinds ----------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("tanh_input", "tanh0_input_0", "conv0_tanh_input_0", "hybridsequential0_tanh1_input_0"),
        *("Tanh_input_0", "tanh_1_input_0", "net.tanh2_input_0", "tanh/inputs", "tanh_1/inputs"),
        *("activation_tanh/inputs", "Sigmoid_input_0", "sigmoid0_input_0", "gate.sigmoid_input_1"),
        *("sigmoid_2/inputs_1", "activation_sigmoid/inputs"),
    ],
)
def test_inputs_are_found_in_every_framework(name: str, tmp_path: Path) -> None:
    assert judged(tmp_path, [inputs(90)], name).met == [0]


@pytest.mark.parametrize(
    "name",
    [
        *("tanh_output_0", "Tanh_output_0", "tanh/outputs", "3_input_0", "gradient/tanh.weight"),
        *("Hardtanh_input_0", "hard_tanh_input_0", "hardsigmoid_input_0", "hard_sigmoid/inputs"),
        *("LogSigmoid_input_0", "log_sigmoid_input", "Tanhshrink_input_0", "relu_input_0"),
    ],
)
def test_other_tensors_are_not_taken_for_such_inputs(name: str, tmp_path: Path) -> None:
    assert judged(tmp_path, [inputs(90)], name).skipped == {0: NONE}


def test_the_collections_of_the_hooks_belong_to_the_default_and_tell_the_kind(
    tmp_path: Path,
) -> None:
    names = ("1_input_0", "3_input_0", "5_input_0", "tanh.7_input_0")
    collections = ("tanh_input", "sigmoid_input", "other", "sigmoid_input")
    steps = {0: {name: inputs(10) for name in names}}
    save_members(tmp_path, steps, dict(zip(names, collections, strict=True)))
    found = at_once(tmp_path)
    assert [one.tensor for one in found.findings] == ["1_input_0"]
    explicit = at_once(tmp_path, tensor_regex="5_input")
    assert explicit.skipped == {0: NO_VALUES}


def test_collections_are_judged_beside_the_patterns(tmp_path: Path) -> None:
    tensors = {name: inputs(90) for name in ("my tanh", TANH, "Hardtanh_input_0", "other")}
    save_members(tmp_path, {0: tensors}, {"my tanh": "mine"})
    for params, found in (
        ({}, [TANH]),
        ({"collection_names": "mine, missing"}, ["my tanh", TANH]),
        ({"collection_names": ["mine"], "tensor_regex": "^Hard"}, ["Hardtanh_input_0", "my tanh"]),
        ({"tensor_regex": ".*tanh_input"}, ["Hardtanh_input_0"]),
        ({"tensor_regex": ".*tanh1_input, my"}, ["my tanh", TANH]),
    ):
        findings = at_once(tmp_path, **params).findings
        assert [one.tensor for one in findings] == found


def test_a_tensor_of_neither_kind_is_passed_over_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = judged(tmp_path, [inputs(90)] * 2, "softplus_input_0", tensor_regex="softplus")
    assert found.skipped == {0: NO_VALUES, 1: NO_VALUES}
    assert [one.getMessage() for one in caplog.records] == [
        "The name of 'softplus_input_0' contains neither tanh nor sigmoid: skipped."
    ]


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "met"),
    [
        ({}, []),
        ({"threshold_tanh_min": "-3"}, [1]),
        ({"threshold_tanh_max": "3.0"}, [0]),
        ({"threshold_tanh_min": -3, "threshold_tanh_max": 3, "threshold_inactivity": 0}, []),
        ({"threshold_tanh_max": 3, "threshold_layer": "100"}, []),
        ({"threshold_sigmoid_min": -1, "threshold_sigmoid_max": 1}, []),
    ],
)
def test_parameters_may_be_text(params: dict[str, Any], met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, [inputs(5), inputs(-5)], **params).met == met


def test_the_bounds_of_sigmoid_are_parameters(tmp_path: Path) -> None:
    params = {"threshold_sigmoid_min": "-1", "threshold_sigmoid_max": "1"}
    found = judged(tmp_path, [inputs(-1), inputs(0.5), inputs(1)], SIGMOID, **params)
    assert found.met == [0, 2]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"threshold_tanh_min": 10},
            r"'threshold_tanh_min' must be smaller than 'threshold_tanh_max', got 10.0 and 9.49",
        ),
        (
            {"threshold_sigmoid_max": "-23"},
            r"'threshold_sigmoid_min' must be smaller .*, got -23.0 and -23.0\.$",
        ),
        ({"threshold_tanh_max": "inf"}, r"'threshold_tanh_max' must be a finite number, got 'inf'"),
        ({"threshold_layer": 101}, r"'threshold_layer' must be a finite number in \[0, 100\]"),
        ({"threshold_inactivity": "x"}, r"'threshold_inactivity' must be .*, got 'x'\.$"),
        (
            {"tensor_regex": "["},
            r"'tensor_regex' must be comma-separated regular expressions, got '\['",
        ),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=f"^Parameter {message}"):
        judged(tmp_path, [], **params)


def test_by_default_a_layer_must_fail_at_three_judgements_in_a_row(tmp_path: Path) -> None:
    values = [inputs(10), inputs(10), inputs(0), *[inputs(10)] * 3]
    steps = {at: {TANH: value} for at, value in enumerate(values)}
    found = judge(SaturatedActivation, save(tmp_path, steps))
    assert found.met == [5]
    notes = [one.step for one in found.findings if one.severity is Severity.NOTE]
    assert notes == [0, 1, 3, 4]
