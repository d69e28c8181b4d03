"""NormGrowth: which weights have grown too far, at which steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import NormGrowth
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Finding, Severity

NAME = "fc.weight"
ONES = np.ones((8, 8))
GROWS = [0.1, 0.3, 0.9, 2.7, 8.1, 24.3]


def judged(root: Path, sizes: list[float], pattern: Any = ONES, **params: Any) -> Judged:
    """Judge a weight of these sizes, saved at steps 0, 1, 2..."""
    steps = {step: {NAME: pattern * size} for step, size in enumerate(sizes)}
    return judge(NormGrowth, save(root, steps), **params)


@pytest.mark.parametrize(
    ("sizes", "met"),
    [
        pytest.param(GROWS, [3, 4, 5], id="grows"),
        pytest.param([0.1, 0.2, 0.4, 0.8, 0.9, 1.0], [], id="within-ten-times"),
        pytest.param([0.1, 0.2, 0.4, 0.8, 0.9, 1.01], [5], id="just-beyond"),
        pytest.param([0.01, 0.05, 0.1, 0.2, 0.4, 0.5], [], id="below-the-floor"),
        pytest.param([0.0, 0.1, 0.3, 0.5, 0.51], [4], id="starts-at-zero"),
        pytest.param([0.1, 5.0, 5.0, 5.0, 5.0], [], id="leaps-and-rests"),
        pytest.param([0.1, 5.0, 6.0, 5.5, 6.5, 7.0, 7.5], [6], id="falls-in-between"),
        pytest.param([0.1, 0.2, np.nan, 0.3, 9.0], [4], id="nan-is-skipped"),
        pytest.param([1.0, 2.0], [], id="too-few"),
    ],
)
def test_weights_that_grow_far_beyond_their_start_meet_it(
    sizes: list[float], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, sizes).met == met


@pytest.mark.parametrize(
    "pattern", [np.ones(100), np.ones((1, 100)), np.ones((4, 4)), np.ones((1, 1, 80))]
)
def test_vectors_and_small_weights_are_not_judged(pattern: Any, tmp_path: Path) -> None:
    reason = "no matrix among the weights, or no size of one"
    assert judged(tmp_path, GROWS, pattern).skipped == dict.fromkeys(range(6), reason)


def test_evidence_tells_where_it_started(tmp_path: Path) -> None:
    note = "It started at 0.1."
    size, limit = pytest.approx(2.7), pytest.approx(1.0)
    expected = Finding(3, NAME, "worker_0", size, limit, note, Severity.WARNING)
    assert judged(tmp_path, GROWS[:4]).findings == [expected]


def test_norms_and_shapes_are_enough(tmp_path: Path) -> None:
    reductions = {step: {NAME: {("l2", False): 8 * size}} for step, size in enumerate(GROWS)}
    save(tmp_path, {}, reductions=reductions, shapes={NAME: (8, 8)})
    assert judge(NormGrowth, tmp_path).met == [3, 4, 5]


def test_steps_are_rows_and_evaluation_is_skipped(tmp_path: Path) -> None:
    steps = {7 * step: {NAME: ONES * size} for step, size in enumerate(GROWS)}
    modes = dict.fromkeys(steps, ModeKeys.TRAIN) | {30: ModeKeys.EVAL}
    save(tmp_path, steps | {30: {NAME: ONES * 99}}, modes=modes)
    assert judge(NormGrowth, tmp_path).met == [21, 28, 35]


@pytest.mark.parametrize(
    ("params", "met"),
    [
        ({"factor": 50}, [4, 5]),
        ({"floor": "3"}, [4, 5]),
        ({"patience": 5}, [5]),
        ({"patience": 1}, [3, 4, 5]),
    ],
)
def test_parameters(params: dict[str, Any], met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, GROWS, **params).met == met
