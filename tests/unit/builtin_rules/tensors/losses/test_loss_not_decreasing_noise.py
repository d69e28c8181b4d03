"""LossNotDecreasing and noise: what healthy, stuck and rising losses get, by simulation."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from judging import judge, save

from builtin_rules import LossNotDecreasing
from builtin_rules.tensors.losses.loss_not_decreasing import NOISE_WINDOW
from smdebug.core.modes import ModeKeys

SIMULATION = runpy.run_path(str(Path(__file__).parents[5] / "scripts" / "detection_loss"))
SHAPES = {**SIMULATION["HEALTHY"], **SIMULATION["STUCK"]}
RUNS = 6


def fired(shape: str, noise: float, steps: int = 400, **params: Any) -> int:
    """Return in how many of `RUNS` runs the rule fires."""
    rng = np.random.default_rng(7)
    t = np.arange(steps, dtype=np.float64)
    runs = (SHAPES[shape](t) * (1 + noise * rng.standard_normal(steps)) for _ in range(RUNS))
    trials = (SIMULATION["OneLoss"](losses, 1) for losses in runs)
    hits = [SIMULATION["fires_at"](LossNotDecreasing, trial, **params) for trial in trials]
    return sum(hit is not None for hit in hits)


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("shape", SIMULATION["HEALTHY"])
def test_a_healthy_noisy_loss_does_not_meet_it(shape: str, noise: float) -> None:
    assert fired(shape, noise) == 0


@pytest.mark.parametrize("shape", SIMULATION["HEALTHY"])
def test_to_the_letter_a_healthy_loss_with_a_tenth_of_noise_always_meets_it(shape: str) -> None:
    assert fired(shape, 0.1, literal=True) == RUNS


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05, 0.1])
@pytest.mark.parametrize("shape", [one for one in SIMULATION["STUCK"] if "plateau" not in one])
def test_a_rise_meets_it_in_any_noise(shape: str, noise: float) -> None:
    assert fired(shape, noise) == RUNS


@pytest.mark.parametrize("shape", [one for one in SIMULATION["STUCK"] if "plateau" in one])
def test_a_long_plateau_meets_it_in_noise(shape: str) -> None:
    assert fired(shape, 0.05, steps=1500) == RUNS


@pytest.mark.parametrize(
    ("losses", "met"),
    [
        pytest.param([1.0, 1.2, 1.1], [2], id="below-five-losses"),
        pytest.param([1.1, 0.8, 1.2, 1.0, 1.2, 1.1, 1.2], [], id="from-five-losses-on"),
    ],
)
def test_noise_counts_from_five_losses_on(
    losses: list[float], met: list[int], tmp_path: Path
) -> None:
    root = save(tmp_path, {at: {"loss": one} for at, one in enumerate(losses)})
    assert judge(LossNotDecreasing, root, num_steps=1).met == met


SINCE = "The latest 10 losses, since the first one. A"


@pytest.mark.parametrize(
    ("losses", "found"),
    [
        pytest.param(
            [0.5, *(100 * 0.8**at * (1.5, 0.7)[at % 2] for at in range(20))],
            (11, 0.5),
            id="never-again-below-the-first",
        ),
        pytest.param(
            [2.4, 2.35, *((2.3, 2.32)[at % 2] for at in range(24))],
            (21, 2.31),
            id="has-not-begun-to-fall",
        ),
        pytest.param([2.4 * 0.99**at * (1, 1.05)[at % 2] for at in range(40)], None, id="falls"),
        pytest.param(
            [2.4, *((1.3, 1.32)[at % 2] for at in range(22))], None, id="has-fallen-and-stands"
        ),
    ],
)
def test_a_loss_that_never_began_to_fall(
    losses: list[float], found: tuple[int, float] | None, tmp_path: Path
) -> None:
    root = save(tmp_path, {at: {"loss": one} for at, one in enumerate(losses)})
    findings = judge(LossNotDecreasing, root, num_steps=1).findings
    told = [(one.step, one.limit) for one in findings if (one.note or "").startswith(SINCE)]
    assert next(iter(told), None) == (found and pytest.approx(found, abs=0.01))


def test_evidence_of_means_is_reported(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    losses = np.where(np.arange(60) < 30, 1.0, 1.12) + 0.04 * rng.standard_normal(60)
    root = save(tmp_path, {at: {"loss": one} for at, one in enumerate(losses)})
    found = judge(LossNotDecreasing, root).findings
    means = {at: float(losses[at - 9 : at + 1].mean()) for at in range(10, 60, 10)}
    assert [one.step for one in found] == [40, 50]
    for one in found:
        assert one.measured == pytest.approx(means[one.step])
        assert one.limit == pytest.approx(min(means[at] for at in (10, 20, 30)))
        assert one.note is not None
        rise = 100 * (one.measured - one.limit) / one.limit
        assert one.note == f"Means of 10 losses. A rise of {rise:.3g} percent."


def test_what_is_remembered_of_a_loss_is_bounded() -> None:
    losses = np.exp(-np.arange(500) / 100)
    rule = LossNotDecreasing(SIMULATION["OneLoss"](losses, 1))
    for step in range(len(losses)):
        rule.invoke_at_step(step)
    ((key, series),) = rule._series.items()
    assert (key, len(series.losses)) == (("loss", ModeKeys.TRAIN), NOISE_WINDOW + 1)
