"""ClassImbalance against a second, slow version of it, over random trials."""

import math
import statistics
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from judging import judge, save, with_defaults

from builtin_rules import ClassImbalance
from smdebug.core.modes import ModeKeys

Pairs = list[tuple[int, int]]  # class, predicted class


def slow_bound(hits: int, total: int, compared: int) -> float:
    """Return the smallest share that does not make so many hits improbable: by bisection."""
    z = statistics.NormalDist().inv_cdf(1 - 0.01 / max(compared, 1))
    low, high = 0.0, hits / total
    for _ in range(100):
        share = (low + high) / 2
        improbable = hits / total - share > z * math.sqrt(share * (1 - share) / total)
        low, high = (share, high) if improbable else (low, share)
    return low


def slow_settled(shares: list[float]) -> bool:
    """Return whether fewer than 64 shares have ended to fall."""
    width = max(5, len(shares) // 4)
    if len(shares) < 2 * width:
        return False
    ends = range(len(shares) - width, width - 1, -width)
    best = min(statistics.mean(shares[end - width : end]) for end in ends)
    latest = shares[-41:]
    steps = [latest[at + 1] - latest[at] for at in range(len(latest) - 1)]
    middle = statistics.median(steps)
    noise = 1.4826 * statistics.median(abs(one - middle) for one in steps) / 2**0.5
    error = noise * (1 + 8 / len(latest)) * (2 / width) ** 0.5
    return best - statistics.mean(shares[-width:]) + error <= 0.02


def slow_met(steps: list[Pairs], enough: int, *, literal: bool) -> bool:
    """Return whether it is met at the last of the steps of one mode."""
    window: Pairs = []
    for one in reversed(steps):
        if len(window) < enough or literal:
            window = one + window
    if len(window) < enough:
        return False
    counts = {kind: sum(label == kind for label, _ in window) for kind, _ in window}
    wrong = {kind: sum(kind == label != other for label, other in window) for kind in counts}
    if literal:
        large, small = max(counts.values()), min(counts.values())
        return large / small > 3 or max(wrong[kind] / counts[kind] for kind in counts) > 0.7
    every = [label for pairs in steps for label, _ in pairs]
    ever = {kind: every.count(kind) for kind in every}
    ratios = []
    for found in (counts, ever):
        one, other = max(found.values()), min(found.values())
        bound = slow_bound(one, one + other, len(found) * (len(found) - 1) // 2)
        ratios.append(bound / (1 - bound))
    shares = {kind: slow_bound(wrong[kind], counts[kind], len(counts)) for kind in counts}
    worst = max(shares, key=lambda kind: shares[kind])
    others = len(window) - counts[worst]
    mistaken = sum(wrong.values())
    stands_out = wrong[worst] == counts[worst] and 0 < others >= 10 * (mistaken - wrong[worst])
    young = not slow_settled(
        [sum(one != two for one, two in pairs) / len(pairs) for pairs in steps]
    )
    lost = mistaken > 0.7 * len(window)
    learned = stands_out or not (young or lost)
    return max(ratios) > 3 or (shares[worst] > 0.7 and learned)


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 30),
    classes=st.integers(1, 4),
    rare=st.sampled_from([1.0, 0.3, 0.05]),
    hard=st.sampled_from([0.0, 0.7, 1.0]),
    evaluates=st.booleans(),
    literal=st.booleans(),
)
def test_class_imbalance(
    seed: int,
    steps: int,
    classes: int,
    rare: float,
    hard: float,
    evaluates: bool,
    literal: bool,
) -> None:
    rng = np.random.default_rng(seed)
    shares = np.array([1.0] * (classes - 1) + [rare])
    saved: list[Pairs] = []
    for _ in range(steps):
        labels = rng.choice(classes, rng.integers(1, 60), p=shares / shares.sum())
        missed = (labels == 0) & (rng.random(labels.size) < hard)
        saved.append(list(zip(labels.tolist(), (labels + missed).tolist(), strict=True)))
    modes = {
        at: ModeKeys.EVAL if evaluates and at % 3 == 2 else ModeKeys.TRAIN for at in range(steps)
    }
    with tempfile.TemporaryDirectory() as folder:
        tensors = {
            at: {"labels": np.array(pairs)[:, 0], "predictions": np.array(pairs)[:, 1]}
            for at, pairs in enumerate(saved)
        }
        save(Path(folder), tensors, modes=modes)
        rule = with_defaults(ClassImbalance, threshold_imbalance=3.0, samples=100)
        met = judge(rule, Path(folder), literal=literal).met
    expected = [
        at
        for at in range(steps)
        if slow_met(
            [saved[one] for one in range(at + 1) if literal or modes[one] is modes[at]],
            100,
            literal=literal,
        )
    ]
    assert met == expected
