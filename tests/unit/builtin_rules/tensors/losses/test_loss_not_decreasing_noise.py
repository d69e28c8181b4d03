"""LossNotDecreasing and noise: what healthy, stuck and rising losses get, by simulation."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from builtin_rules import LossNotDecreasing

DETECTION = Path(__file__).parents[5] / "benchmarks" / "detection"
SIMULATION = runpy.run_path(str(DETECTION / "simulated_losses.py"))
SHAPES = {**SIMULATION["HEALTHY"], **SIMULATION["STUCK"]}
RUNS = 2


def fired(shape: str, noise: float, steps: int = 400, interval: int = 1, **params: Any) -> int:
    """Return in how many of `RUNS` runs the rule fires."""
    rng = np.random.default_rng(7)
    t = np.arange(steps, dtype=np.float64)
    runs = (SHAPES[shape](t) * (1 + noise * rng.standard_normal(steps)) for _ in range(RUNS))
    trials = (SIMULATION["OneLoss"](losses, interval) for losses in runs)
    hits = [SIMULATION["fires_at"](LossNotDecreasing, trial, **params) for trial in trials]
    return sum(hit is not None for hit in hits)


@pytest.mark.parametrize("interval", [1, 2, 5, 10])
@pytest.mark.parametrize("noise", [0.02, 0.1])
@pytest.mark.parametrize("shape", [name for name in SIMULATION["HEALTHY"] if "tuning" not in name])
def test_a_healthy_noisy_loss_does_not_meet_it(shape: str, noise: float, interval: int) -> None:
    assert fired(shape, noise, interval=interval) == 0


def test_to_the_letter_a_healthy_loss_with_a_tenth_of_noise_always_meets_it() -> None:
    assert fired("healthy: exponential decay", 0.1, literal=True) == RUNS


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize(
    "shape", ["plateau from the start", "rise of 4 % in 10 steps", "all of the fall lost at 200"]
)
def test_a_stuck_or_rising_loss_meets_it(shape: str, noise: float) -> None:
    assert fired(shape, noise) == RUNS
