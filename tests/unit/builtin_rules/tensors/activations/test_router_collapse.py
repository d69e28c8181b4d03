"""RouterCollapse: which loads are unequal, and for how many saved steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import RouterCollapse
from builtin_rules.statistics.sustained import NOT_TRAINING
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Finding, Severity

LOAD = "router/model.layers.0.mlp/load"
EVEN = np.full(4, 0.25)
ONE = np.array([0.97, 0.01, 0.01, 0.01])  # entropy 0.121
# Its entropy is exactly half of ln(4).
HALF = np.array([0.5, 0.5, 0.0, 0.0])


def judged(root: Path, *values: Any, name: str = LOAD, **params: Any) -> Judged:
    steps = {at: {name: value} for at, value in enumerate(values) if value is not None}
    return judge(RouterCollapse, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "params", "met"),
    [
        pytest.param([ONE] * 11, {}, [9, 10], id="ten-saved-steps"),
        pytest.param([ONE] * 9, {}, [], id="nine-saved-steps"),
        pytest.param([*[ONE] * 9, EVEN, *[ONE] * 9], {}, [], id="interrupted"),
        pytest.param([ONE, ONE, None, ONE], {"patience": 3}, [3], id="missing-in-between"),
        pytest.param([ONE, ONE, ONE * np.nan, ONE], {"patience": 3}, [3], id="nan-in-between"),
        pytest.param([EVEN] * 12, {}, [], id="equal-loads"),
        pytest.param([HALF] * 12, {}, [], id="equal-to-the-threshold"),
        pytest.param([HALF] * 10, {"threshold": 0.51}, [9], id="just-below"),
        pytest.param([ONE] * 2, {"patience": 1}, [0, 1], id="patience-1"),
        pytest.param([ONE * 128] * 10, {}, [9], id="counts-of-tokens"),
        pytest.param([np.ones(1)] * 12, {}, [], id="one-expert"),
        pytest.param([np.zeros(4)] * 12, {}, [], id="no-load"),
    ],
)
def test_unequal_loads_meet_it_when_they_last(
    values: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, *values, **params).met == met


@pytest.mark.parametrize(
    ("tokens", "met"),
    [
        pytest.param(np.tile(ONE, (2, 8, 1)), True, id="probabilities"),
        pytest.param(np.tile(np.log(ONE), (16, 1)), True, id="logits"),
        pytest.param(np.tile([6.0, 0.0, 0.0, 0.0], (16, 1)), True, id="positive-logits"),
        pytest.param(np.eye(4), False, id="each-token-its-expert"),
    ],
)
def test_probabilities_are_averaged_over_tokens(
    tokens: "np.ndarray", met: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, *[tokens] * 10, name="block.router_logits")
    assert bool(found.met) is met


def test_evaluations_are_not_judged_and_workers_are_apart(tmp_path: Path) -> None:
    steps = {at: {LOAD: ONE} for at in range(3)}
    modes = {0: ModeKeys.TRAIN, 1: ModeKeys.EVAL, 2: ModeKeys.TRAIN}
    found = judge(RouterCollapse, save(tmp_path / "modes", steps, modes=modes), patience=3)
    assert (found.met, found.skipped) == ([], {1: NOT_TRAINING})
    save(tmp_path / "two", steps, num_workers=2)
    even = {at: {LOAD: EVEN} for at in range(3)}
    save(tmp_path / "two", even, worker="worker_1", num_workers=2)
    (finding,) = judge(RouterCollapse, tmp_path / "two", patience=3).findings
    note = "Expert 0 of 4 gets 97.0% of the tokens."
    measured = finding.measured
    expected = (2, LOAD, "worker_0", measured, 0.5, note, Severity.WARNING)
    assert finding == Finding(*expected)
    assert measured == pytest.approx(0.121, abs=1e-3)
