"""ClassImbalance against a second, slow version of it, over random trials."""

import math
import statistics
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import example, given
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


def slow_latest(steps: list[Pairs], enough: int) -> Pairs:
    """Return the labels of the latest steps that have enough together; fewer if all have not."""
    window: Pairs = []
    for one in reversed(steps):
        if len(window) < enough:
            window = one + window
    return window


def counted(pairs: Pairs) -> tuple[dict[int, int], dict[int, int]]:
    """Return the labels of each class, and the mispredicted ones among them."""
    counts = {kind: sum(label == kind for label, _ in pairs) for kind, _ in pairs}
    wrong = {kind: sum(kind == label != other for label, other in pairs) for kind in counts}
    return counts, wrong


def slow_ratio(pairs: Pairs) -> float:
    """Return a lower bound of the ratio of the largest to the smallest class."""
    counts, _ = counted(pairs)
    one, other = max(counts.values()), min(counts.values())
    bound = slow_bound(one, one + other, len(counts) * (len(counts) - 1) // 2)
    return bound / (1 - bound)


def slow_missed(steps: list[Pairs], window: Pairs) -> bool:
    """Return whether a class is mispredicted too often while the others are learned."""
    counts, wrong = counted(window)
    shares = {kind: slow_bound(wrong[kind], counts[kind], len(counts)) for kind in counts}
    worst = max(shares, key=lambda kind: shares[kind])
    others = len(window) - counts[worst]
    mistaken = sum(wrong.values())
    stands_out = wrong[worst] == counts[worst] and 0 < others >= 10 * (mistaken - wrong[worst])
    errors = [sum(one != two for one, two in pairs) / len(pairs) for pairs in steps]
    learned = stands_out or (slow_settled(errors) and mistaken <= 0.7 * len(window))
    return shares[worst] > 0.7 and learned


def slow_met(steps: list[Pairs], enough: int, patience: int) -> list[bool]:
    """Return at which steps of one mode it is met."""
    met = []
    rare: list[bool] = []  # what the latest steps show, step by step
    missed: list[bool] = []
    for end in range(1, len(steps) + 1):
        window = slow_latest(steps[:end], enough)
        if len(window) < enough:
            met.append(False)
            continue
        rare.append(slow_ratio(window) > 3)
        missed.append(slow_missed(steps[:end], window))
        lasts = any(len(one) >= patience and all(one[-patience:]) for one in (rare, missed))
        met.append(lasts or slow_ratio([pair for pairs in steps[:end] for pair in pairs]) > 3)
    return met


def literal_met(steps: list[Pairs], enough: int) -> list[bool]:
    """Return at which steps the documented sentence is met."""
    met = []
    for end in range(1, len(steps) + 1):
        every = [pair for pairs in steps[:end] for pair in pairs]
        counts, wrong = counted(every)
        ratio = max(counts.values()) / min(counts.values())
        share = max(wrong[kind] / counts[kind] for kind in counts)
        met.append(len(every) >= enough and (ratio > 3 or share > 0.7))
    return met


@given(
    seed=st.integers(0, 2**32 - 1),
    steps=st.integers(1, 50),
    classes=st.integers(1, 4),
    rare=st.sampled_from([1.0, 0.3, 0.05]),
    hard=st.sampled_from([0.0, 0.7, 1.0]),
    evaluates=st.booleans(),
    literal=st.booleans(),
)
@example(seed=0, steps=40, classes=3, rare=1.0, hard=1.0, evaluates=False, literal=False)
@example(seed=0, steps=40, classes=3, rare=1.0, hard=1.0, evaluates=True, literal=False)
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
    expected = []
    if literal:
        expected = [at for at, is_met in enumerate(literal_met(saved, 100)) if is_met]
    else:
        for mode, patience in ((ModeKeys.TRAIN, 20), (ModeKeys.EVAL, 5)):
            places = [at for at in range(steps) if modes[at] is mode]
            found = slow_met([saved[at] for at in places], 100, patience)
            expected += [at for at, is_met in zip(places, found, strict=True) if is_met]
    assert met == sorted(expected)
