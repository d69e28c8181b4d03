"""Overtraining against a second, slow version of it, over random trials."""

import math
import statistics
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import given as over
from hypothesis import strategies as st
from judging import judge, save

from builtin_rules import Overtraining
from smdebug.core.modes import ModeKeys

MODES = {"T": ModeKeys.TRAIN, "E": ModeKeys.EVAL, "P": ModeKeys.PREDICT}


def slow_noise(values: list[float]) -> float:
    values = values[-41:]
    steps = [values[at + 1] - values[at] for at in range(len(values) - 1)]
    middle = statistics.median(steps)
    return 1.4826 * statistics.median(abs(one - middle) for one in steps) / 2**0.5


def slow_level(
    values: list[float], scale: float, patience: int, earlier: int, deviations: float
) -> tuple[bool, bool] | None:
    """Return whether fewer than 64 values have ended to improve, and whether they ever did."""
    width = max(patience, len(values) // 4)
    before = max(1, width * min(earlier, patience) // patience)
    if len(values) < width + before:
        return None
    now = statistics.mean(values[-width:])
    ends = range(len(values) - width, before - 1, -before)
    best = min(statistics.mean(values[end - before : end]) for end in ends)
    enough = 0.01 * min(1, abs(scale))
    deviation = slow_noise(values) * (1 + 8 / min(len(values), 41))
    margin = deviations * deviation * (1 / width + 1 / before) ** 0.5
    return now >= best - enough + margin, values[0] - best > 4 * enough + margin + 2 * deviation


def slow_falls(values: list[float]) -> bool:
    """Return whether fewer than 64 values certainly fall by a hundredth in the latest half."""
    half = values[len(values) // 2 :]
    part = -(-len(half) // 4)
    before, latest = statistics.mean(half[:part]), statistics.mean(half[-part:])
    falling = sum((a > b) - (a < b) for at, a in enumerate(half) for b in half[at:])
    orders = {0: 1}  # of the values, by how many pairs rise
    for size in range(1, len(half) + 1):
        counts: dict[int, int] = {}
        for rising, count in orders.items():
            for more in range(size):
                counts[rising + more] = counts.get(rising + more, 0) + count
        orders = counts
    pairs = len(half) * (len(half) - 1) // 2
    chance = sum(count for rising, count in orders.items() if pairs - 2 * rising >= falling)
    certain = chance <= 0.05 * math.factorial(len(half))
    return before - latest > 0.01 * abs(latest) and certain


def slow_count(values: list[float], delta: float) -> int:
    """Return how many losses there are since the best one."""
    since, best = 0, values[0]
    for value in values[1:]:
        since = 0 if value < best - delta else since + 1
        best = value if since == 0 else best
    return since


def slow_overtraining(letters: str, losses: list[float], patience: int, *, literal: bool) -> list:
    """Return the steps at which it is met."""
    train: list[float] = []
    val: list[float] = []
    phase: list[float] = []
    met = []
    judged = 0
    ended_at: int | None = None
    for step, (letter, value) in enumerate(zip(letters, losses, strict=True)):
        news = letter == "T"
        if letter == "T":
            val += [statistics.mean(phase)] if phase and not literal else []
            phase = []
            train.append(value)
        elif letter == "E" and (literal or "T" not in letters[:step]):
            val.append(value)
            news = True
        elif letter == "E":
            phase.append(value)
        if not news:
            continue
        series = [one for one in (train, val) if one]
        if literal:
            hit = all(slow_count(one, 0.05) >= patience for one in series)
        else:
            answers = []
            if train:
                answers.append(slow_level(train, train[0], 5, 5, 0 if val else 3))
            if val:
                answers.append(slow_level(val, (train or val)[0], 10, 3, 2))
            known = [one for one in answers if one is not None]
            if len(known) == len(answers) and known and not known[-1][0]:
                ended_at = None
            ended = len(known) == len(answers) and all(one[0] for one in known)
            hit = ended and any(one[1] for one in known)
            judged += 1
            ended_at = judged if hit and ended_at is None else ended_at
            hit = hit and ended_at is not None and len(series) > 1
            hit = hit and judged >= max(1.25 * (ended_at or 0), (ended_at or 0) + 10)
            hit = hit and not any(slow_falls(one) for one in series)
        met += [step] if hit else []
    return met


@over(
    letters=st.one_of(st.text("TTEEP", min_size=1, max_size=60), st.just("TE" * 60)),
    seed=st.integers(0, 2**32 - 1),
    pace=st.sampled_from([1, 5, 20]),
    spread=st.sampled_from([0.0, 0.05, 0.5]),
    scale=st.sampled_from([3.0, 0.1]),
    patience=st.integers(1, 5),
    literal=st.booleans(),
)
def test_overtraining(
    letters: str,
    seed: int,
    pace: int,
    spread: float,
    scale: float,
    patience: int,
    literal: bool,
) -> None:
    noise = 1 + spread * np.random.default_rng(seed).uniform(-1, 1, len(letters))
    falls = scale * (0.3 + np.exp(-np.arange(len(letters)) / pace)) * noise
    losses = [float(one) for one in falls]
    params = {"patience_train": patience, "patience_validation": patience, "delta": 0.05}
    with tempfile.TemporaryDirectory() as folder:
        steps = {at: {"loss": one} for at, one in enumerate(losses)}
        save(Path(folder), steps, modes={at: MODES[one] for at, one in enumerate(letters)})
        given = params if literal else {}  # what is given binds
        met = judge(Overtraining, Path(folder), **given).met
    assert met == slow_overtraining(letters, losses, patience, literal=literal)
