"""AttentionCollapse: how many heads look at a single key, and for how many saved steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import AttentionCollapse

ENTROPY = "attention/h.0.attn/entropy"
WEIGHTS = "h.0.attn_weights"


def judged(root: Path, *values: Any, name: str = ENTROPY, **params: Any) -> Judged:
    steps = {at: {name: value} for at, value in enumerate(values)}
    return judge(AttentionCollapse, save(root, steps), **params)


def heads(*entropies: float) -> "np.ndarray":
    return np.array(entropies, np.float32)


@pytest.mark.parametrize(
    ("values", "params", "met"),
    [
        pytest.param([heads(0.01, 0.01, 0.01, 0.9)] * 4, {}, [2, 3], id="most-heads"),
        pytest.param([heads(0.01, 0.01, 0.9, 0.9)] * 4, {}, [], id="half-of-the-heads"),
        pytest.param([heads(0.0625)] * 3, {"threshold": 0.0625}, [], id="equal"),
        pytest.param([heads(0.0625)] * 3, {"threshold": 0.0626}, [2], id="just-below"),
        pytest.param([heads(0.01)] * 2, {}, [], id="two-saved-steps"),
        pytest.param([heads(0.01), heads(0.01), heads(0.6), heads(0.01)], {}, [], id="interrupted"),
        pytest.param([heads(0.01, 0.01, np.nan)] * 3, {}, [], id="nan"),
        pytest.param([heads(0.99, 1.0)] * 3, {}, [], id="uniform"),
    ],
)
def test_heads_below_the_threshold_are_counted(
    values: list[Any], params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, *values, **params).met == met


def causal(focus: float, size: int = 8) -> "np.ndarray":
    """Return causal attention of ``(1, 1, size, size)`` with this mass on the first key."""
    rest = np.tril(np.ones((size, size)))
    rest[:, 0] = 0
    totals = rest.sum(axis=1, keepdims=True)
    rows = (1 - focus) * rest / np.maximum(totals, 1)
    rows[:, 0] = 1 - rows.sum(axis=1)
    return rows[None, None]


@pytest.mark.parametrize(
    ("attention", "measured"),
    [
        pytest.param(causal(1 - 1e-6), 0.0, id="the-first-token"),
        pytest.param(np.full((2, 3, 4, 4), 0.25), 1.0, id="uniform"),
        pytest.param(np.full((4, 4), 0.25), 1.0, id="a-matrix"),
        pytest.param(np.tril(np.ones((5, 5))) / np.arange(1, 6)[:, None], 1.0, id="causal-uniform"),
    ],
)
def test_entropies_are_computed_from_probabilities(
    attention: "np.ndarray", measured: float, tmp_path: Path
) -> None:
    found = judged(tmp_path, *[attention] * 3, name=WEIGHTS, threshold=1.0)
    entropies = [finding.measured for finding in found.findings]
    assert entropies == pytest.approx([measured] * len(entropies), abs=1e-4)
    assert bool(judged(tmp_path / "default", *[attention] * 3, name=WEIGHTS).met) is (measured < 1)


def test_rows_of_padding_do_not_count(tmp_path: Path) -> None:
    padded = np.full((2, 1, 8, 8), 0.125)
    padded[1] = 0  # all but one of 16 rows
    padded[0, 0, 1:] = 0
    assert judged(tmp_path, *[padded] * 3, name=WEIGHTS).met == []


def test_dropout_of_probabilities_is_undone(tmp_path: Path) -> None:
    kept = np.random.default_rng(0).random((8, 4, 8, 8)) < 0.9
    dropped = np.tile(causal(1 - 1e-6), (8, 4, 1, 1)) * kept / 0.9
    assert judged(tmp_path, *[dropped] * 3, name=WEIGHTS).met == [2]


def test_rows_that_are_no_probabilities_are_not_judged(tmp_path: Path) -> None:
    reason = "no attention that can be judged at this step"
    assert judged(tmp_path, np.ones((2, 2, 4, 4)), name=WEIGHTS).skipped == {0: reason}
