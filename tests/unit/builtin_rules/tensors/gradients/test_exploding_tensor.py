"""ExplodingTensor: which NaN and infinities meet the condition, at which steps, how shown."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, opened, save

from builtin_rules import ExplodingTensor
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding

NAN, INF = np.nan, np.inf


def judged(root: Path, values: list[Any], **params: Any) -> Judged:
    """Judge one tensor, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"count": np.ones(2, np.int64)} if value is None else {"w": np.array(value)}
        for at, value in enumerate(values)
    }
    return judge(ExplodingTensor, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met", "met_by_nan"),
    [
        pytest.param([[1.0], [NAN], [1.0]], [1], [1], id="nan-at-that-step"),
        pytest.param([[1.0, 2.0], [1.0, INF]], [1], [], id="infinity"),
        pytest.param([[1.0], [-INF, 1.0]], [1], [], id="minus-infinity"),
        pytest.param([[INF, -INF]], [0], [], id="infinities-that-cancel"),
        pytest.param([[INF, NAN]], [0], [0], id="both"),
        pytest.param([[[[NAN]]], [[[1.0]]]], [0], [0], id="three-dimensions"),
        pytest.param([NAN], [0], [0], id="no-dimension"),
        pytest.param([[1.0], None, [NAN]], [2], [2], id="missing-at-a-step"),
        pytest.param([[1.7e308, 1.7e308]], [], [], id="a-sum-that-overflows"),
        pytest.param([[]], [], [], id="empty"),
        pytest.param([[complex(1, NAN)], [complex(INF, 1)]], [0, 1], [0], id="complex"),
    ],
)
def test_it_is_met_where_a_tensor_is_not_finite(
    values: list[Any], met: list[int], met_by_nan: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, values).met == met
    assert judge(ExplodingTensor, tmp_path, only_nan="True").met == met_by_nan


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_all_floating_point_types_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [np.array([1.0, bad], dtype) for bad in (1.0, NAN, INF)]
    assert judged(tmp_path, values).met == [1, 2]


def test_half_precision_whose_sum_overflows_is_healthy(tmp_path: Path) -> None:
    assert judged(tmp_path, [np.full(10, 60000.0, np.float16)]).met == []


@pytest.mark.parametrize(
    "value", [np.array([1]), np.array([True]), np.array(["nan"])], ids=["int", "bool", "text"]
)
def test_what_is_no_floating_point_is_not_judged(value: Any, tmp_path: Path) -> None:
    found = judged(tmp_path, [value])
    assert (found.met, found.skipped) == ([], {0: "no floating-point tensor at this step"})


def test_evidence_counts_the_elements(tmp_path: Path) -> None:
    note = "1 NaN and 2 infinite of 4 elements."
    assert judged(tmp_path, [[NAN, INF, -INF, 0.0]]).findings == [
        Finding(0, "w", "worker_0", 3, 0, note)
    ]
    (finding,) = judge(ExplodingTensor, tmp_path, only_nan=True).findings
    assert (finding.measured, finding.note) == (1, note)


def test_each_worker_and_each_tensor_is_judged(tmp_path: Path) -> None:
    save(tmp_path, {0: {"a": 1.0, "b": NAN}}, num_workers=2)
    save(tmp_path, {0: {"a": NAN, "b": 1.0}}, num_workers=2, worker="worker_1")
    found = judge(ExplodingTensor, tmp_path)
    assert [(one.tensor, one.worker) for one in found.findings] == [
        ("a", "worker_1"),
        ("b", "worker_0"),
    ]


@pytest.mark.parametrize(
    ("params", "tensors"),
    [
        pytest.param({}, ["gradient/w", "loss", "w"], id="all-by-default"),
        pytest.param({"tensor_regex": "", "collection_names": "None"}, ["gradient/w", "loss", "w"]),
        pytest.param({"tensor_regex": "w"}, ["gradient/w", "w"], id="searched-anywhere"),
        pytest.param({"tensor_regex": "^w, loss"}, ["loss", "w"], id="two-patterns"),
        pytest.param({"collection_names": "losses"}, ["loss"], id="collection"),
        pytest.param({"collection_names": "losses,gradients"}, ["gradient/w", "loss"]),
        pytest.param({"collection_names": ["losses"], "tensor_regex": ["^w"]}, ["loss", "w"]),
        pytest.param({"collection_names": "nowhere", "tensor_regex": "^w"}, ["w"], id="unknown"),
    ],
)
def test_selectors_are_united(params: dict[str, Any], tensors: list[str], tmp_path: Path) -> None:
    save(tmp_path, {0: dict.fromkeys(("gradient/w", "loss", "w"), NAN)})
    found = judge(ExplodingTensor, tmp_path, **params)
    assert [one.tensor for one in found.findings] == tensors


def test_a_selector_that_selects_nothing_judges_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, [[NAN]], tensor_regex="nowhere")
    assert (found.met, found.skipped) == ([], {0: "no floating-point tensor at this step"})


@pytest.mark.parametrize(
    ("reduction", "value", "met", "met_by_nan"),
    [
        pytest.param(("min", False), INF, True, False, id="min"),
        pytest.param(("max", False), -INF, True, False, id="max"),
        pytest.param(("min", True), INF, True, False, id="abs-min"),
        pytest.param(("max", True), INF, True, False, id="abs-max"),
        pytest.param(("sum", False), INF, False, False, id="sums-overflow"),
        pytest.param(("l2", True), INF, False, False, id="norms-overflow"),
        pytest.param(("sum", False), NAN, True, True, id="nan-in-a-sum"),
        pytest.param(("mean", True), 1.0, False, False, id="finite"),
    ],
)
def test_saved_reductions_are_judged(
    reduction: tuple[str, bool], value: float, met: bool, met_by_nan: bool, tmp_path: Path
) -> None:
    save(tmp_path, {}, reductions={0: {"w": {reduction: value}}})
    found = judge(ExplodingTensor, tmp_path)
    assert (found.met == [0], found.skipped) == (met, {})
    assert (judge(ExplodingTensor, tmp_path, only_nan=True).met == [0]) is met_by_nan


def test_evidence_names_the_saved_reduction(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"w": {("max", True): INF}}})
    assert judge(ExplodingTensor, tmp_path).findings == [
        Finding(0, "w", "worker_0", INF, None, "Saved reduction abs_max.")
    ]


def test_saved_reductions_that_are_no_numbers_do_not_tell(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"w": {("max", True): "inf", ("min", True): [INF, NAN]}}})
    assert judge(ExplodingTensor, tmp_path).skipped == {0: "no floating-point tensor at this step"}


def test_a_value_counts_before_its_reductions(tmp_path: Path) -> None:
    reductions = {0: {"w": {("max", True): INF}}}
    assert judge(ExplodingTensor, save(tmp_path, {0: {"w": 1.0}}, reductions=reductions)).met == []


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"only_nan": "perhaps"},
            r"'only_nan' must be true, false, 1, 0, yes or no, got 'perhaps'",
        ),
        (
            {"tensor_regex": "("},
            r"'tensor_regex' must be comma-separated regular expressions, got '\('",
        ),
        ({"collection_names": 3}, r"'collection_names' must be comma-separated names, got 3"),
        ({"collection_names": ","}, r"'collection_names' must be comma-separated names, got ','"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [[1.0]], **params)


def test_every_count_is_measured(tmp_path: Path) -> None:
    reductions = {0: {"c": {("min", False): 1.0}}}
    root = save(tmp_path, {0: {"a": np.ones(2), "b": np.array([NAN, 1.0])}}, reductions=reductions)
    rule = ExplodingTensor(opened(root))
    rule.invoke_at_step(0)
    (found,) = rule.take_measurements()
    assert [(tensor, value, met) for (tensor, _), value, met in found.points] == [
        ("a", 0.0, False),
        ("b", 1.0, True),
        ("c", 0.0, False),
    ]


@pytest.mark.parametrize(
    ("params", "met"),
    [({}, []), ({"literal": True}, [0]), ({"tensor_regex": "trees"}, [0])],
    ids=["trees", "to-the-letter", "by-name"],
)
def test_trees_hold_nan_at_their_leaves(
    params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    writer = TrialWriter(tmp_path, collections={"trees": "^trees/"}, end_job=False)
    writer.step(0, {"trees/Split": np.array([0.5, np.nan]), "train-rmse": np.ones(1)})
    assert judge(ExplodingTensor, tmp_path, **params).met == met


def test_to_the_letter_an_overflowed_sum_is_an_explosion(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"w": {("sum", False): INF, ("max", False): 1.0}}})
    assert judge(ExplodingTensor, tmp_path).met == []
    assert judge(ExplodingTensor, tmp_path, literal=True).met == [0]
    assert judge(ExplodingTensor, tmp_path, literal=True, only_nan=True).met == []
