"""FeatureImportanceOverweight: which shares meet the condition, and when a model is old enough."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import FeatureImportanceOverweight
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

WEIGHT = "feature_importance/weight/"
WARNING = Severity.WARNING
NONE = "no importances at this step"
YOUNG = "at most 3 features used so far, or until lately"
EVEN = [0.2] * 5
TOP = [0.4, 0.36, 0.2, 0.02, 0.02]  # the first three hold 0.96
USUAL = [0.5, 0.25, 0.1, 0.1, 0.05]
HIGH, LOWER = [0.5, 0.3, 0.1, 0.06, 0.04], [0.5, 0.28, 0.1, 0.08, 0.04]  # 0.9 and 0.88
ONE = [1.0]


def shares(values: Sequence[Any], kind: str = WEIGHT) -> dict[str, Any]:
    """Return importances of f90, f91, ...: there are at least 90 further features."""
    return {f"{kind}f{90 + at}": np.asarray(value) for at, value in enumerate(values)}


def judged(root: Path, rounds: dict[int, Sequence[Any] | None], **params: Any) -> Judged:
    """Judge importances by step; those of a step of None are missing."""
    steps = {
        step: {"train-rmse": np.ones(1)} | shares(values or ()) for step, values in rounds.items()
    }
    return judge(FeatureImportanceOverweight, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "params", "met"),
    [
        pytest.param(TOP, {}, True, id="above"),
        pytest.param(EVEN, {}, False, id="even"),
        pytest.param([0.5, 0.25, 0.125, 0.125], {"threshold": 0.875}, False, id="equal"),
        pytest.param([0.5, 0.25, 0.125, 0.125], {"threshold": "0.8749"}, True, id="just-above"),
        pytest.param(TOP[::-1], {}, True, id="any-order"),
        pytest.param(TOP, {"nfeatures": 2}, False, id="two-features"),
        pytest.param(TOP, {"nfeatures": "1", "threshold": 0.3}, True, id="one-feature"),
        pytest.param([40, 36, 20, 2, 2], {}, True, id="divided-by-the-total"),
        pytest.param([0.3, 0.3, 0.3, 0.3], {}, False, id="total-above-one"),
        pytest.param([0, 0, 0, 0], {"literal": True}, False, id="total-zero"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_it_is_met_where_the_top_features_hold_more(
    values: list[float], params: dict[str, Any], met: bool, literal: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, {0: values}, **({"literal": literal} | params))
    assert (found.met, found.skipped) == ([0] if met else [], {})


@pytest.mark.parametrize(
    ("rounds", "met", "literal"),
    [
        pytest.param({0: ONE}, [], [0], id="one-round"),
        pytest.param({0: ONE, 9: ONE, 10: ONE, 11: ONE}, [10, 11], [0, 9, 10, 11], id="a-leak"),
        pytest.param({0: ONE, 10: EVEN, 20: EVEN}, [], [0], id="healthy"),
        pytest.param({0: ONE, 5: TOP, 10: TOP, 15: TOP}, [15], [0, 5, 10, 15], id="young-then-top"),
        pytest.param({0: TOP, 1: TOP}, [0, 1], [0, 1], id="old-at-once"),
        pytest.param({0: TOP, 5: ONE, 14: ONE, 15: ONE}, [0, 15], [0, 5, 14, 15], id="fewer-later"),
        pytest.param({0: USUAL, 1: USUAL}, [], [0, 1], id="usual"),
        pytest.param({0: HIGH, 1: LOWER}, [], [0, 1], id="falls"),
        pytest.param({0: HIGH, 1: LOWER, 2: LOWER, 3: HIGH}, [2, 3], [0, 1, 2, 3], id="stays"),
        pytest.param({500: ONE, 505: None, 510: ONE}, [510], [500, 510], id="missing-at-a-step"),
        pytest.param({0: [0.5, 0.5, 0, 0], 9: TOP}, [], [0, 9], id="zero-is-not-used"),
        pytest.param({0: [1, 1, 1], 3: ONE, 10: [1, 1]}, [10], [0, 3, 10], id="few-is-few"),
    ],
)
def test_a_model_with_few_features_is_judged_when_it_is_older(
    rounds: dict[int, Any], met: list[int], literal: list[int], tmp_path: Path
) -> None:
    root = tmp_path / "trial"
    found = [judged(root, rounds).met, judge(FeatureImportanceOverweight, root, literal=1).met]
    assert found == [met, literal]


@pytest.mark.parametrize(
    ("names", "values", "met", "literal"),
    [
        pytest.param("f0 f1 f2 f3", [0.5, 0.3, 0.1, 0.1], [], [0], id="one-of-four"),
        pytest.param("f0 f1 f2 f3", [0.96, 0.02, 0.01, 0.01], [0], [0], id="one-of-four-above"),
        pytest.param("f0 f1 f2 f9", [0.4, 0.4, 0.1, 0.1], [], [0], id="two-of-ten-equal"),
        pytest.param("f0 f1 f2 f9", [0.5, 0.46, 0.03, 0.01], [0], [0], id="two-of-ten-above"),
        pytest.param("f0 f1 f2 f9", [0.5, 0.44, 0.04, 0.02], [], [0], id="two-of-ten-a-note"),
        pytest.param("f0 f1 f2 f14", [0.32, 0.32, 0.32, 0.04], [0], [0], id="three-of-fifteen"),
        pytest.param("age bmi sex kids", [0.5, 0.3, 0.1, 0.1], [], [0], id="named-features"),
        pytest.param("f7", [1.0], [], [0], id="young-and-few"),
    ],
)
def test_few_features_are_judged_by_a_fifth_of_them(
    names: str, values: list[float], met: list[int], literal: list[int], tmp_path: Path
) -> None:
    importances = dict(zip(names.split(), values, strict=True))
    save(tmp_path, {0: {WEIGHT + name: np.asarray(value) for name, value in importances.items()}})
    assert judge(FeatureImportanceOverweight, tmp_path).met == met
    assert judge(FeatureImportanceOverweight, tmp_path, literal=True).met == literal


def test_features_that_were_used_before_count(tmp_path: Path) -> None:
    first = {f"{WEIGHT}{name}": np.ones(1) for name in "abcdefghijklmno"}
    late = {f"{WEIGHT}{name}": np.ones(1) for name in "abcd"} | {WEIGHT + "a": np.full(1, 6.0)}
    assert judge(FeatureImportanceOverweight, save(tmp_path, {0: first, 10: late})).met == [10]
    assert judge(FeatureImportanceOverweight, tmp_path, start=10).met == []


def test_a_young_model_is_skipped(tmp_path: Path) -> None:
    found = judged(tmp_path, {0: ONE, 5: None, 7: TOP})
    assert (found.met, found.skipped) == ([], {0: YOUNG, 5: NONE, 7: YOUNG})


def test_evidence_names_the_features(tmp_path: Path) -> None:
    found = judged(tmp_path, {4: [0.06, 0.5, 0.25, 0.14, 0.05]}, threshold=0.75)
    note = "f91, f92, f93, of 5 features used."
    assert found.findings == [Finding(4, WEIGHT + "f91", "worker_0", 0.89, 0.75, note, WARNING)]


def test_each_worker_is_judged(tmp_path: Path) -> None:
    save(tmp_path, {0: shares(EVEN)}, num_workers=2)
    save(tmp_path, {0: shares(TOP)}, num_workers=2, worker="worker_1")
    findings = judge(FeatureImportanceOverweight, tmp_path).findings
    assert [(one.worker, one.tensor) for one in findings] == [("worker_1", WEIGHT + "f90")]


def test_each_kind_is_judged(tmp_path: Path) -> None:
    kinds = {"weight": EVEN, "gain": TOP, "cover": EVEN, "total_gain": TOP}
    tensors = {
        name: value
        for kind, values in kinds.items()
        for name, value in shares(values, f"feature_importance/{kind}/").items()
    }
    save(tmp_path, {0: tensors})
    found = {
        regex: [
            str(one.tensor).split("/")[1]
            for one in judge(FeatureImportanceOverweight, tmp_path, tensor_regex=regex).findings
        ]
        for regex in ("feature_importance", "feature_importance/weight", "/gain,/cover", "nothing")
    }
    assert found == {
        "feature_importance": ["gain", "total_gain"],
        "feature_importance/weight": [],
        "/gain,/cover": ["gain"],
        "nothing": [],
    }


@pytest.mark.parametrize(
    ("prefix", "names"), [("x/feature_importance/weight/", "a/b, a/c"), ("my/", "b, c")]
)
def test_names_may_hold_slashes(prefix: str, names: str, tmp_path: Path) -> None:
    values = {f"{prefix}a/{name}": np.float64(one) for name, one in zip("bcd", HIGH, strict=False)}
    if prefix == "my/":
        values = {name.replace("a/", ""): one for name, one in values.items()}
    save(tmp_path, {0: values})
    params = {"tensor_regex": prefix, "nfeatures": 2, "literal": True}
    (finding,) = judge(FeatureImportanceOverweight, tmp_path, **params).findings
    assert finding.note == f"{names}, of 3 features used."


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16, np.int64])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_all_types_and_shapes_of_one_number_are_read(
    dtype: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    found = judged(tmp_path, {0: [np.full(shape, one, dtype) for one in (8, 1, 1, 1)]})
    assert [one.measured for one in found.findings] == [10 / 11]


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize(
    "values",
    [
        [np.nan, 1, 1, 1],
        [np.inf, 1, 1, 1],
        [-0.1, 1, 1, 1],
        [np.array(["1"])],
        [np.zeros(0)],
        [np.ones(2)],
        [1j],
    ],
    ids=["nan", "inf", "negative", "text", "empty", "several", "complex"],
)
def test_what_is_no_share_is_not_judged(values: Any, literal: bool, tmp_path: Path) -> None:
    found = judged(tmp_path, {0: values}, literal=literal)
    assert (found.met, found.skipped) == ([], {0: NONE})


def test_reductions_alone_are_not_judged(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {WEIGHT + "f0": {("mean", False): 1.0}}})
    assert judge(FeatureImportanceOverweight, tmp_path, literal=True).skipped == {0: NONE}


def test_what_later_steps_hold_makes_no_difference(tmp_path: Path) -> None:
    rounds: list[Sequence[float]] = [ONE, ONE, TOP, EVEN, TOP]
    by_step = {10 * at: values for at, values in enumerate(rounds)}
    whole = judged(tmp_path / "whole", by_step).met
    assert whole == [10, 40]
    for last in by_step:
        part = {step: values for step, values in by_step.items() if step <= last}
        found = judged(tmp_path / str(last), part).met
        assert found == [one for one in whole if one <= last]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold": "1.1"}, r"'threshold' must be a finite number in \[0, 1\], got '1\.1'\."),
        ({"nfeatures": "0"}, r"'nfeatures' must be a whole number >= 1, got '0'\."),
        ({"nfeatures": "2.5"}, r"'nfeatures' must be a whole number >= 1, got '2\.5'\."),
        (
            {"tensor_regex": "("},
            r"'tensor_regex' must be comma-separated regular expressions, got '\('",
        ),
        ({"literal": "?"}, r"'literal' must be true, false, 1, 0, yes or no, got '\?'\."),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, {0: EVEN}, **params)
