"""AllZero: which shares of zeros meet the condition, and which tensors are passed over."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, opened, save

from builtin_rules import AllZero
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding

REDUCED = "Computed from saved reductions."
NOTHING = "no tensor to judge at this step"


def judged(root: Path, values: list[Any], name: str = "loss.0", **params: Any) -> Judged:
    """Judge one tensor, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"other": np.ones(2)} if value is None else {name: np.array(value)}
        for at, value in enumerate(values)
    }
    return judge(
        AllZero, save(root, steps), **({"collection_names": "losses,weights,biases"} | params)
    )


@pytest.mark.parametrize(
    ("values", "threshold", "met"),
    [
        pytest.param([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]], 100, [1], id="all-at-that-step"),
        pytest.param([[0.0, -0.0]], 100, [0], id="minus-zero"),
        pytest.param([[0.0, 1e-45]], 100, [], id="tiny-is-not-zero"),
        pytest.param([[0.0, 1.0, 1.0, 1.0]], 25, [0], id="reaches-the-threshold"),
        pytest.param([[0.0, 1.0, 1.0, 1.0]], 25.1, [], id="just-below-the-threshold"),
        pytest.param([[1.0, 1.0]], 0, [0], id="threshold-zero-is-always-reached"),
        pytest.param([[np.nan, 0.0], [np.inf, 0.0]], 100, [], id="not-finite-is-not-zero"),
        pytest.param([[np.nan, 0.0]], 50, [0], id="zeros-beside-nan"),
        pytest.param([[0.0, 0.0]], 100, [0], id="one-step"),
        pytest.param([[0.0, 0.0], None, [0.0, 0.0]], 100, [0, 2], id="missing-at-a-step"),
        pytest.param([[[[0.0], [0.0]]]], 100, [0], id="three-dimensions"),
    ],
)
def test_it_is_met_where_the_share_of_zeros_reaches_the_threshold(
    values: list[Any], threshold: float, met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, values, threshold=threshold).met == met


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint16, np.float16, ml_dtypes.bfloat16, np.complex64]
)
def test_all_numeric_types_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [np.array([0, bad], dtype) for bad in (1, 0)]
    assert judged(tmp_path, values).met == [1]


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize("value", [np.zeros((0, 2)), np.array(["0", "0"])], ids=["empty", "text"])
def test_what_has_no_numbers_is_not_judged(value: Any, literal: bool, tmp_path: Path) -> None:
    found = judged(tmp_path, [value], literal=literal)
    assert (found.met, found.skipped) == ([], {0: NOTHING})


def test_evidence_holds_share_and_threshold(tmp_path: Path) -> None:
    found = judged(tmp_path, [[0.0, 0.0, 0.0, 1.0]], threshold="75")
    assert found.findings == [Finding(0, "loss.0", "worker_0", 75.0, 75.0, None, AllZero.SEVERITY)]


def test_each_worker_is_judged(tmp_path: Path) -> None:
    save(tmp_path, {0: {"loss.0": np.ones(2)}}, num_workers=2)
    save(tmp_path, {0: {"loss.0": np.zeros(2)}}, num_workers=2, worker="worker_1")
    found = judge(AllZero, tmp_path, collection_names="losses")
    assert [(one.tensor, one.worker) for one in found.findings] == [("loss.0", "worker_1")]


# -- scalars, and parameters at their first step -------------------------------------------------

BY_COLLECTION = {"collection_names": "weights,biases"}
BY_NAME = {"collection_names": None, "tensor_regex": "fc"}
GIVEN = {"threshold": "100"}
LITERAL = {"literal": "true"}


@pytest.mark.parametrize(
    ("name", "values", "params", "met"),
    [
        pytest.param("fc.weight", [[0.0]], BY_COLLECTION, [], id="scalar"),
        pytest.param("fc.weight", [0.0], BY_COLLECTION, [], id="scalar-without-dimensions"),
        pytest.param("fc.weight", [[0.0]], BY_NAME, [], id="scalar-by-name"),
        pytest.param("fc.weight", [[0.0]], GIVEN, [0], id="scalar-and-a-threshold"),
        pytest.param("fc.bias", [[0.0, 0.0]] * 2, GIVEN, [0, 1], id="bias-and-a-threshold"),
        pytest.param("fc.weight", [[0.0]], LITERAL, [0], id="scalar-to-the-letter"),
        pytest.param("fc.bias", [[0.0, 0.0]] * 3, BY_COLLECTION, [1, 2], id="bias-at-its-start"),
        pytest.param("fc.Bias", [[0.0, 0.0]] * 2, BY_NAME, [1], id="bias-by-name"),
        pytest.param("fc.bias", [[0.0, 0.0]] * 2, LITERAL, [0, 1], id="bias-to-the-letter"),
        pytest.param("fc.bias", [None, [0.0, 0.0]], BY_COLLECTION, [], id="bias-that-starts-late"),
        pytest.param("fc.weight", [[0.0, 0.0]] * 2, BY_COLLECTION, [1], id="weights-of-zeros"),
        pytest.param(
            "fc.weight", [[1.0, 0.0], [0.0, 0.0]], BY_COLLECTION, [1], id="weights-vanish"
        ),
        pytest.param(
            "gradient/a", [[0.0, 0.0]] * 5, {"collection_names": "gradients"}, [4], id="gradients"
        ),
        pytest.param(
            "gradient/a",
            [[0.0, 0.0], [1.0, 0.0]] * 4,
            {"collection_names": "gradients"},
            [],
            id="gradients-at-some-steps",
        ),
        pytest.param(
            "gradient/experts.1.up",
            [[0.0, 0.0]] * 6,
            {"collection_names": "gradients"},
            [],
            id="experts-without-tokens",
        ),
    ],
)
def test_scalars_and_parameters_that_begin_at_zero_are_passed_over_unless_asked_for(
    name: str, values: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, values, name, **params).met == met


@pytest.mark.parametrize(
    ("others", "met"),
    [
        pytest.param({"gradient/norm.weight": np.ones(3)}, [], id="its-layer-lives"),
        pytest.param({"gradient/norm.weight": np.zeros(3)}, [4], id="with-its-layer"),
        pytest.param({"gradient/other.weight": np.ones((2, 2))}, [4], id="another-layer-lives"),
    ],
)
def test_a_bias_gradient_of_zeros_counts_with_its_layer(
    others: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    steps = dict.fromkeys(range(5), {"gradient/norm.bias": np.zeros(3)} | others)
    found = judge(AllZero, save(tmp_path, steps), collection_names="gradients")
    assert sorted({one.step for one in found.findings}) == met


def test_a_matrix_of_zeros_counts_though_its_bias_does_not(tmp_path: Path) -> None:
    tensors = {"gradient/fc.weight": np.zeros((2, 2)), "gradient/fc.bias": np.ones(2)}
    found = judge(
        AllZero, save(tmp_path, dict.fromkeys(range(5), tensors)), collection_names="gradients"
    )
    assert [one.tensor for one in found.findings] == ["gradient/fc.weight"]


def test_a_bias_is_new_at_its_first_step_though_the_walk_begins_later(tmp_path: Path) -> None:
    root = save(tmp_path, {at: {"fc.bias": np.zeros(2)} for at in range(3)})
    assert judge(AllZero, root, start=1, collection_names="biases").met == [1, 2]


def test_gradients_of_a_loss_of_zero_are_not_judged(tmp_path: Path) -> None:
    steps = {step: {"gradient/a": np.zeros(2), "loss": np.zeros(1)} for step in range(6)}
    found = judge(AllZero, save(tmp_path, steps), collection_names="gradients")
    assert (found.met, [*found.skipped]) == ([], [*range(6)])
    assert judge(AllZero, tmp_path, tensor_regex="^gradient").met == []
    assert judge(AllZero, tmp_path, tensor_regex="^gradient", threshold=100).met == [*range(6)]


def test_what_is_passed_over_is_not_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, [[0.0]])
    assert (found.met, found.skipped) == ([], {0: NOTHING})


@pytest.mark.parametrize(
    ("params", "tensors"),
    [
        ({"tensor_regex": "weight"}, ["a.weight", "gradient/a.weight"]),
        ({"tensor_regex": "^a, loss"}, ["a.weight", "loss"]),
        ({"collection_names": "losses"}, ["loss"]),
        ({"collection_names": "losses", "tensor_regex": "^grad"}, ["gradient/a.weight", "loss"]),
        ({"collection_names": "nowhere", "tensor_regex": "loss"}, ["loss"]),
    ],
)
def test_selectors_are_united(params: dict[str, str], tensors: list[str], tmp_path: Path) -> None:
    names = ("loss", "gradient/a.weight", "a.weight")
    root = save(tmp_path, {0: dict.fromkeys(names, np.zeros(2))})
    found = judge(AllZero, root, threshold=100, **params)
    assert [one.tensor for one in found.findings] == tensors


# -- reductions only -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reductions", "met", "skipped"),
    [
        pytest.param({("max", True): 0.0}, [0], {}, id="abs-max"),
        pytest.param({("min", False): 0.0, ("max", False): 0.0}, [0], {}, id="min-and-max"),
        pytest.param({("max", True): 1e-9}, [], {}, id="abs-max-above"),
        pytest.param({("min", False): 0.0, ("max", False): 1.0}, [], {}, id="max-above"),
        pytest.param({("min", False): 0.0}, [], {0: NOTHING}, id="min-alone"),
        pytest.param({("mean", True): 0.0}, [], {0: NOTHING}, id="mean"),
        pytest.param({("max", True): np.nan}, [], {}, id="nan"),
    ],
)
def test_saved_reductions_are_judged(
    reductions: dict[Any, float], met: list[int], skipped: dict[int, str], tmp_path: Path
) -> None:
    save(tmp_path, {}, reductions={0: {"loss.0": reductions}})
    found = judge(AllZero, tmp_path, collection_names="losses")
    assert (found.met, found.skipped) == (met, skipped)


def test_evidence_says_that_it_comes_from_reductions(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"loss.0": {("max", True): 0.0}}})
    assert judge(AllZero, tmp_path, collection_names="losses").findings == [
        Finding(0, "loss.0", "worker_0", 100.0, 100.0, REDUCED, AllZero.SEVERITY)
    ]


def test_a_share_cannot_be_told_from_reductions(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"loss.0": {("max", True): 0.0}}})
    found = judge(AllZero, tmp_path, collection_names="losses", threshold=99)
    assert (found.met, found.skipped) == ([], {0: NOTHING})


@pytest.mark.parametrize(
    ("reductions", "met"),
    [
        pytest.param({("max", True): 0.0}, [1], id="abs-max"),
        pytest.param({("min", False): 0.0, ("max", False): 0.0}, [1], id="min-and-max"),
    ],
)
def test_weights_that_begin_at_zero_are_recognized_from_reductions(
    reductions: dict[Any, float], met: list[int], tmp_path: Path
) -> None:
    save(tmp_path, {}, reductions={at: {"fc.weight": reductions} for at in range(2)})
    assert judge(AllZero, tmp_path, collection_names="weights").met == met


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold": "101"}, r"'threshold' must be a finite number in \[0, 100\], got '101'"),
        ({"threshold": -1}, r"'threshold' must be a finite number in \[0, 100\], got -1"),
        ({"literal": "2"}, r"'literal' must be true, false, 1, 0, yes or no, got '2'"),
        (
            {"tensor_regex": "*"},
            r"'tensor_regex' must be comma-separated regular expressions, got '\*'",
        ),
        (
            {"collection_names": "", "tensor_regex": "None"},
            r"Rule 'AllZero' needs parameter 'collection_names' or 'tensor_regex', and neither",
        ),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [[1.0]], **params)


def test_every_share_is_measured(tmp_path: Path) -> None:
    root = save(tmp_path, {0: {"a.loss": np.array([0.0, 1.0]), "b.loss": np.zeros(2)}})
    rule = AllZero(opened(root), collection_names="losses")
    rule.invoke_at_step(0)
    assert [one.points for one in rule.take_measurements()] == [
        [(("a.loss", "worker_0"), 50.0, False), (("b.loss", "worker_0"), 100.0, True)]
    ]


def test_outputs_of_relu_must_be_zero_for_five_steps(tmp_path: Path) -> None:
    steps = {at: {"relu_output_0": np.full((2, 3), at == 1.0)} for at in range(8)}
    collections = {"relu_output": "^relu"}
    found = judge(
        AllZero, save(tmp_path, steps, collections=collections), collection_names="relu_output"
    )
    assert found.met == [6, 7]
