#!/usr/bin/env python3
"""Simulates losses of healthy and of stuck trainings; counts how often LossNotDecreasing fires.

    .venv/bin/python benchmarks/detection/simulated_losses.py

The same seed gives the same table.
"""

import argparse
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from builtin_rules import LossNotDecreasing
from smdebug.core.modes import ModeKeys

Losses = NDArray[np.float64]
Rates = dict[tuple[str, float], tuple[float, float | None]]
SEED = 20_230
HEALTHY: Mapping[str, Callable[[Losses], Losses]] = {
    "healthy: exponential decay": lambda t: 2.3 * np.exp(-t / 200),
    "healthy: falls and converges": lambda t: 0.5 + 1.8 * np.exp(-t / 30),
    "healthy: fine-tuning, 15 %": lambda t: 1.2 + 0.15 * np.exp(-t / 20) + 0.06 * np.exp(-t / 300),
    "healthy: staircase": lambda t: (
        2.3 * 0.6 ** np.floor((t + 60) / 100) * np.exp(-(t % 100) / 400)
    ),
    "healthy: power law 1/t": lambda t: 2.3 / (1 + t / 20),
    "healthy: power law 1/sqrt(t)": lambda t: 2.3 / np.sqrt(1 + t / 20),
}
STUCK: Mapping[str, Callable[[Losses], Losses]] = {
    "plateau from the start": lambda t: np.full(t.shape, 2.3),
    "plateau after 100 steps": lambda t: 2.3 * np.exp(-np.minimum(t, 100) / 100),
    "plateau after a rise of 3 %": lambda t: (
        2.3 * np.exp(-np.minimum(t, 100) / 100) * np.where(t > 100, 1.03, 1.0)
    ),
    "rise of 0.5 % in 10 steps": lambda t: 2.3 * 1.005 ** (t / 10),
    "rise of 4 % in 10 steps": lambda t: 2.3 * 1.04 ** (t / 10),
    "rise of 0.5 % after 100 steps": lambda t: (
        2.3 * np.exp(-np.minimum(t, 100) / 100) * 1.005 ** (np.maximum(t - 100, 0) / 10)
    ),
    "all of the fall lost at 200": lambda t: np.where(t < 200, 2.3 * np.exp(-t / 100), 2.3),
    "jump of 50 % at 200, then decay": lambda t: (
        2.3 * np.exp(-t / 200) * np.where(t >= 200, 1.5, 1.0)
    ),
}
NOISES = (0.0, 0.02, 0.05, 0.1)


class OneLoss:
    """A trial, and its only tensor: a loss saved at each of its steps."""

    name = "loss"

    def __init__(self, losses: Losses, interval: int) -> None:
        self.losses = losses
        self.interval = interval
        self.trial = self

    def modes_at(self, step: int) -> dict[ModeKeys, int]:
        return {ModeKeys.TRAIN: step}

    def tensor_names(self, *, collection: str = "", **_: object) -> list[str]:
        return [] if collection == "learning_rates" else [self.name]

    def tensor(self, _name: str) -> "OneLoss":
        return self

    def saved_by(self, _step: int, names: list[str]) -> dict[tuple[str, str], None]:
        return {(name, "worker_0"): None for name in names}

    def scalar(self, *_: object) -> None:
        return None

    def prefetched_shapes(self, *_: object) -> dict[str, tuple[int, ...]]:
        return {}

    def view(self, step: int, *_: object) -> Losses:
        return self.losses[step : step + 1]

    def steps_back(self, step: int, _mode: ModeKeys) -> Iterator[int]:
        return reversed(range(0, max(step + 1, 0), self.interval))


def fires_at(rule_class: type[LossNotDecreasing], trial: OneLoss, **params: object) -> int | None:
    """Return the first step at which the condition is met."""
    rule = rule_class(trial, **params)
    steps = range(0, len(trial.losses), trial.interval)
    return next((step for step in steps if rule.invoke_at_step(step)), None)


def rates(runs: int, steps: int, interval: int, rule_class: type, **params: object) -> Rates:
    """Return by shape and noise in how many percent of runs the rule fires, and the median step."""
    found: Rates = {}
    t = np.arange(steps, dtype=np.float64)
    for shape, function in {**HEALTHY, **STUCK}.items():
        for noise in NOISES:
            rng = np.random.default_rng(SEED)
            hits = [
                fires_at(
                    rule_class,
                    OneLoss(function(t) * (1 + noise * rng.standard_normal(steps)), interval),
                    **params,
                )
                for _ in range(runs if noise else 1)
            ]
            at = [step for step in hits if step is not None]
            found[shape, noise] = 100 * len(at) / len(hits), statistics.median(at or [-1])
    return found


def compare(runs: int, steps: int, intervals: Sequence[int]) -> dict[str, Rates]:
    """Return the rates of the documented sentence and of the judge, by title."""
    table = {"literal": rates(runs, steps, intervals[0], LossNotDecreasing, literal=True)}
    for interval in intervals:
        title = "every row" if interval == 1 else f"every {interval}"
        table[title] = rates(runs, steps, interval, LossNotDecreasing)
    return table


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="runs of each kind (100)")
    parser.add_argument("--steps", type=int, default=400, help="steps of a run (400)")
    parser.add_argument(
        "--intervals", type=int, nargs="+", default=[1, 2, 5, 10], help="steps between two rows"
    )
    args = parser.parse_args()
    table = compare(args.runs, args.steps, args.intervals)
    print(
        f"{args.runs} runs of {args.steps} steps; seed {SEED}.\n"
        "Percentage of runs in which LossNotDecreasing, with its defaults, fires @ median step.\n"
    )
    print(f"{'loss':32}{'noise':>6}" + "".join(f"{title:>14}" for title in table))
    for shape, noise in table["literal"]:
        cells = (rates_by[shape, noise] for rates_by in table.values())
        texts = (f"{rate:.0f} % @{step:.0f}" if rate else "-" for rate, step in cells)
        print(f"{shape:32}{noise:>6.0%}" + "".join(f"{text:>14}" for text in texts))


if __name__ == "__main__":
    main()
