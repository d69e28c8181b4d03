"""TensorVariance: which tensors lie outside the bounds, at which steps, with what evidence."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import TensorVariance
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding

NAME = "fc.weight"


def spread(variance: float, dtype: Any = np.float64) -> "np.ndarray":
    """Return a tensor of this variance."""
    return np.array([[-1.0, 1.0]], dtype) * np.sqrt(variance).astype(dtype)


def judged(root: Path, values: list[Any], **params: Any) -> Judged:
    """Judge one weight, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"other": np.ones(2)} if value is None else {NAME: value}
        for at, value in enumerate(values)
    }
    return judge(TensorVariance, save(root, steps), **{"collection_names": "weights"} | params)


@pytest.mark.parametrize(
    ("variances", "bounds", "met"),
    [
        pytest.param([1, 4, 16], {"max_threshold": 10}, [2], id="rises-above"),
        pytest.param([1, 0.25, 1e-6], {"min_threshold": "1e-5"}, [2], id="falls-below"),
        pytest.param([16, 1, 1e-6], {"max_threshold": 10, "min_threshold": 1e-5}, [0, 2], id="two"),
        pytest.param([4], {"max_threshold": 4, "min_threshold": 4}, [], id="equal-is-inside"),
        pytest.param([np.nextafter(4, 5) ** 2], {"max_threshold": 16}, [0], id="next-above"),
        pytest.param([0] * 3, {"min_threshold": 1e-9}, [0, 1, 2], id="zero-from-the-start"),
        pytest.param([1e-6, 1, 1e-6], {"min_threshold": 1e-5}, [0, 2], id="small-again"),
        pytest.param([0], {"min_threshold": 1e-9, "literal": True}, [0], id="zero-to-the-letter"),
        pytest.param([0], {"min_threshold": 0}, [], id="nothing-is-below-zero"),
        pytest.param([1e-9], {"max_threshold": 10}, [], id="no-lower-bound"),
        pytest.param([1e9], {"min_threshold": 10}, [], id="no-upper-bound"),
        pytest.param([16, None, 16], {"max_threshold": 10}, [0, 2], id="missing-at-a-step"),
    ],
)
def test_it_is_met_outside_the_bounds(
    variances: list[float | None], bounds: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    values = [None if one is None else spread(one) for one in variances]
    assert judged(tmp_path, values, **bounds).met == met


def test_the_variance_divides_by_the_number_of_elements(tmp_path: Path) -> None:
    found = judged(tmp_path, [np.array([0.0, 0.0, 3.0])], max_threshold=1)
    assert found.findings == [Finding(0, NAME, "worker_0", 2.0, 1.0, None, TensorVariance.SEVERITY)]


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(np.array([1.0, np.nan]), id="nan"),
        pytest.param(np.array([1.0, np.inf]), id="infinity"),
        pytest.param(np.array([[5.0]]), id="one-element"),
        pytest.param(np.array(5.0), id="scalar"),
        pytest.param(np.zeros((0, 3)), id="empty"),
        pytest.param(np.array(["a", "b"]), id="text"),
    ],
)
def test_what_has_no_variance_is_not_judged(value: Any, tmp_path: Path) -> None:
    found = judged(tmp_path, [value], min_threshold=1, max_threshold=2)
    assert (found.met, found.skipped) == ([], {0: "no tensor has a variance to judge"})


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, ml_dtypes.bfloat16])
def test_all_types_of_numbers_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [np.array([-2, 2], dtype), np.array([-4, 4], dtype)]
    assert judged(tmp_path, values, max_threshold=10).met == [1]


def test_booleans_are_numbers(tmp_path: Path) -> None:
    assert judged(tmp_path, [np.array([True, False])], max_threshold=0.2).met == [0]


def test_a_variance_too_large_for_its_type_is_above(tmp_path: Path) -> None:
    values = [np.array([-1e30, 1e30], np.float32)]
    assert judged(tmp_path, values, max_threshold=10).met == [0]


def test_shapes_may_change(tmp_path: Path) -> None:
    values = [np.zeros(3), np.zeros((4, 4)), np.array([0.0, 9.0])]
    assert judged(tmp_path, values, max_threshold=1).met == [2]


def test_every_tensor_and_every_worker_is_judged(tmp_path: Path) -> None:
    tensors = {NAME: spread(1), "out.weight": spread(16)}
    save(tmp_path, {0: tensors}, num_workers=2)
    save(tmp_path, {0: {NAME: spread(25)}}, num_workers=2, worker="worker_1")
    found = judge(TensorVariance, tmp_path, collection_names="weights", max_threshold=10)
    assert [(one.tensor, one.worker, one.measured) for one in found.findings] == [
        (NAME, "worker_1", 25.0),
        ("out.weight", "worker_0", 16.0),
    ]


def test_collections_and_patterns_are_united(tmp_path: Path) -> None:
    tensors = {NAME: spread(16), "fc.bias": spread(16), "relu_output": spread(16)}
    found = judge(
        TensorVariance,
        save(tmp_path, {0: tensors}),
        collection_names="weights",
        tensor_regex="relu",
        max_threshold=10,
    )
    assert [one.tensor for one in found.findings] == [NAME, "relu_output"]


def test_all_modes_are_judged(tmp_path: Path) -> None:
    modes = {0: ModeKeys.TRAIN, 1: ModeKeys.EVAL, 2: ModeKeys.PREDICT}
    save(tmp_path, {at: {NAME: spread(16)} for at in modes}, modes=modes)
    found = judge(TensorVariance, tmp_path, collection_names="weights", max_threshold=10)
    assert found.met == [0, 1, 2]


def test_a_step_without_the_tensors_is_reported(tmp_path: Path) -> None:
    found = judged(tmp_path, [None], max_threshold=1)
    assert found.skipped == {0: "none of the selected tensors at this step"}


@pytest.mark.parametrize("name", ["norm.weight", "fc.bias", "lora_B.weight", "loss"])
@pytest.mark.parametrize("literal", [False, True])
def test_a_given_bound_applies_to_constants_too(name: str, literal: bool, tmp_path: Path) -> None:
    save(tmp_path, {at: {name: np.ones(3)} for at in range(2)})
    chosen = {"collection_names": "weights,biases,losses", "literal": literal}
    assert judge(TensorVariance, tmp_path, min_threshold=0.1, **chosen).met == [0, 1]


# -- reductions only -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("saved", "met"),
    [
        pytest.param({("variance", False): 16.0}, [0], id="variance"),
        pytest.param({("std", False): 4.0}, [0], id="deviation"),
        pytest.param({("variance", False): 1.0, ("std", False): 4.0}, [], id="variance-first"),
        pytest.param({("variance", True): 16.0}, None, id="of-magnitudes"),
        pytest.param({("variance", False): np.nan}, None, id="nan"),
    ],
)
def test_saved_reductions_are_judged(
    saved: dict[tuple[str, bool], float], met: list[int] | None, tmp_path: Path
) -> None:
    save(tmp_path, {}, reductions={0: {NAME: saved}})
    found = judge(TensorVariance, tmp_path, collection_names="weights", max_threshold=10)
    skipped = {0: "no tensor has a variance to judge"} if met is None else {}
    assert (found.met, found.skipped) == (met or [], skipped)


def test_a_saved_shape_of_one_element_is_passed_over(tmp_path: Path) -> None:
    saved = {0: {NAME: {("variance", False): 0.0}}}
    save(tmp_path, {}, reductions=saved, shapes={NAME: (1, 1)})
    found = judge(TensorVariance, tmp_path, collection_names="weights", min_threshold=1)
    assert list(found.skipped) == [0]


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"max_threshold": 1}, "'collection_names' or 'tensor_regex', and neither was given"),
        (
            {"collection_names": "", "tensor_regex": "None", "max_threshold": 1},
            "'collection_names' or 'tensor_regex', and neither was given",
        ),
        ({"tensor_regex": "w"}, "'max_threshold' or 'min_threshold', and neither was given"),
        (
            {"tensor_regex": "w", "max_threshold": 1, "min_threshold": 2},
            r"Parameter 'min_threshold' must be <= 'max_threshold', 1\.0, got 2\.0\.",
        ),
        (
            {"tensor_regex": "w", "max_threshold": "wide"},
            "must be a finite number >= 0, got 'wide'",
        ),
        ({"tensor_regex": "w", "min_threshold": -1}, "must be a finite number >= 0, got -1"),
        ({"tensor_regex": "(", "min_threshold": 1}, r"'tensor_regex' must be .*, got '\('"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    save(tmp_path, {0: {NAME: spread(1)}})
    with pytest.raises(SMDebugValueError, match=message):
        judge(TensorVariance, tmp_path, **params)
