"""AttentionMaskLeak: the mass above the diagonal, and where attention is known to be causal."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import judge, save

from builtin_rules import AttentionMaskLeak
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Severity

MASS = "attention/h.0.attn/future_mass"
LOWER = np.tril(np.ones((4, 4))) / np.arange(1, 5)[:, None]
FULL = np.full((2, 3, 4, 4), 0.25)
REASON = "no causal attention that can be judged at this step"


@pytest.mark.parametrize(
    ("mass", "params", "met"),
    [
        (0.0, {}, False),
        (1e-7, {}, False),
        (2e-6, {}, True),
        (0.4, {}, True),
        (0.25, {"threshold": 0.25}, False),
    ],
)
def test_the_saved_mass_is_judged(
    mass: float, params: dict[str, Any], met: bool, tmp_path: Path
) -> None:
    found = judge(AttentionMaskLeak, save(tmp_path, {0: {MASS: np.float64(mass)}}), **params)
    assert found.met == ([0] if met else [])
    assert {finding.severity for finding in found.findings} <= {Severity.ERROR}


@pytest.mark.parametrize(
    ("attention", "mass"),
    [
        pytest.param(LOWER, 0.0, id="lower-triangle"),
        pytest.param(FULL, 0.375, id="no-mask"),
        pytest.param(np.full((1, 1, 1, 6), 1 / 6), 0.0, id="one-query-with-cached-keys"),
        pytest.param(LOWER * np.array([[0], [1], [1], [1]]), 0.0, id="a-row-of-padding"),
    ],
)
def test_probabilities_are_judged_if_they_are_causal(
    attention: "np.ndarray", mass: float, tmp_path: Path
) -> None:
    save(tmp_path, {0: {"attn_weights": attention}})
    found = judge(AttentionMaskLeak, tmp_path, causal=True)
    assert [finding.measured for finding in found.findings] == ([mass] if mass else [])
    assert found.skipped == {}
    assert judge(AttentionMaskLeak, tmp_path).skipped == {0: REASON}  # such as an encoder


@pytest.mark.parametrize(
    "tensors",
    [{MASS: np.float64(np.nan)}, {"attn_weights": FULL * 3}, {"attn_weights": -FULL}, {"x": FULL}],
)
def test_what_is_no_attention_is_not_judged(
    tensors: "dict[str, np.ndarray]", tmp_path: Path
) -> None:
    found = judge(AttentionMaskLeak, save(tmp_path, {0: tensors}), causal=True)
    assert (found.met, found.skipped) == ([], {0: REASON})


def test_evaluations_and_each_worker_are_judged(tmp_path: Path) -> None:
    modes = {0: ModeKeys.EVAL}
    save(tmp_path, {0: {MASS: np.float64(0)}}, modes=modes, num_workers=2)
    leak = {0: {MASS: np.float64(1)}}
    save(tmp_path, leak, modes=modes, worker="worker_1", num_workers=2)
    findings = judge(AttentionMaskLeak, tmp_path).findings
    assert [finding.worker for finding in findings] == ["worker_1"]
