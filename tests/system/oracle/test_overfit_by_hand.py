"""Overfit against a second, slow version of it, over random trials."""

import statistics
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st
from judging import judge, save

from builtin_rules import Overfit
from smdebug.core.modes import ModeKeys

MODES = {"T": ModeKeys.TRAIN, "E": ModeKeys.EVAL, "P": ModeKeys.PREDICT}


def slow_noise(values: list[float]) -> float:
    values = values[-41:]
    if len(values) < 3:
        return 0.0
    steps = [values[at + 1] - values[at] for at in range(len(values) - 1)]
    middle = statistics.median(steps)
    return 1.4826 * statistics.median(abs(one - middle) for one in steps) / 2**0.5


def slow_noise_about_trend(values: list[float]) -> float:
    values = values[-128:]
    if len(values) < 4:
        return 0.0
    bends = [values[at + 2] - 2 * values[at + 1] + values[at] for at in range(len(values) - 2)]
    middle = statistics.median(bends)
    return 1.4826 * statistics.median(abs(one - middle) for one in bends) / 6**0.5


def slow_rises(history: list[float]) -> bool:
    """Return whether the mean of the last three means is clearly above the best such mean."""
    if len(history) < 4:
        return False
    levels = [statistics.mean(history[end - 3 : end]) for end in range(3, len(history) + 1)]
    clear = 0.01 * abs(min(levels)) + 3 * slow_noise_about_trend(history) * (2 / 3) ** 0.5
    return levels[-1] - min(levels) > clear


def slow_overfit(letters: str, losses: list[float], patience: int, *, literal: bool) -> list[int]:
    """Return the steps at which it is met, from the whole trial up to each step of training."""
    met: list[int] = []
    history: list[float] = []
    in_a_row = 0
    for step, letter in enumerate(letters):
        seen = [at for at in range(step) if letters[at] != "P"]
        if letter != "T" or not seen or letters[seen[-1]] != "E":
            continue
        start = max(at for at in [-1, *seen] if at < 0 or letters[at] == "T")
        val = [losses[at] for at in seen if at > start]
        train = []
        while start >= 0 and letters[start] != "E":
            train += [losses[start]] if letters[start] == "T" else []
            start -= 1
        if not train:
            continue
        history.append(statistics.mean(val))
        margin = 0.0
        if not literal:
            every_train = [losses[at] for at in seen if letters[at] == "T"]
            every_val = [losses[at] for at in seen if letters[at] == "E"]
            noise_val = slow_noise(every_val if len(every_val) > 2 else every_train)
            variance = noise_val**2 / len(val)
            variance += (1.1 * slow_noise(every_train)) ** 2 / len(train)
            margin = 2 * variance**0.5
        mean = statistics.mean(train)
        exceeds = history[-1] - margin - mean > 0.1 * abs(mean)
        in_a_row = in_a_row + 1 if exceeds and (literal or slow_rises(history)) else 0
        met += [step] if in_a_row >= (patience if literal else 10) else []
    return met


@given(
    letters=st.one_of(st.text("TTEEP", min_size=1, max_size=60), st.just("TE" * 20 + "T")),
    seed=st.integers(0, 2**32 - 1),
    gap=st.sampled_from([1.0, 1.3, 3.0]),
    spread=st.sampled_from([0.0, 0.05, 0.5]),
    slope=st.sampled_from([0.0, 0.02, -0.01]),
    patience=st.integers(1, 2),
    literal=st.booleans(),
)
@example(
    letters="TE" * 20 + "T", seed=0, gap=1.3, spread=0.0, slope=0.02, patience=1, literal=False
)
def test_overfit(
    letters: str,
    seed: int,
    gap: float,
    spread: float,
    slope: float,
    patience: int,
    literal: bool,
) -> None:
    factors = 1 + spread * np.random.default_rng(seed).uniform(-1, 1, len(letters))
    losses = [
        float((gap if letter == "E" else 1.0) * (1 + slope * at) * factors[at])
        for at, letter in enumerate(letters)
    ]
    with tempfile.TemporaryDirectory() as folder:
        steps = {at: {"loss": one} for at, one in enumerate(losses)}
        save(Path(folder), steps, modes={at: MODES[one] for at, one in enumerate(letters)})
        given = {"patience": patience} if literal else {}  # what is given binds
        met = judge(Overfit, Path(folder), **given).met
    assert met == slow_overfit(letters, losses, patience, literal=literal)
