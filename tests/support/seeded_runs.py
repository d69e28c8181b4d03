"""Runs of one recipe that differ in their seeds, as trials."""

from collections.abc import Callable, Mapping

import numpy as np
from list_source import ListSource, source_index, source_trial
from numpy.typing import NDArray

from rule_core.trials.trial import Trial

Rows = dict[str, NDArray[np.float64]]
STEPS = 200
Change = Callable[[Rows], object]


def rows_of_seed(seed: int, steps: int = STEPS) -> Rows:
    """Return the rows of a healthy run, by name."""
    rng = np.random.default_rng(seed)
    at = np.arange(steps)
    level = 1 + 0.01 * rng.normal()
    return {
        "loss": level * (0.5 + np.exp(-at / 30)) * np.exp(0.05 * rng.normal(size=steps)),
        "val_loss": level * (0.6 + np.exp(-at / 30)) * np.exp(0.01 * rng.normal(size=steps)),
        "val_accuracy": 0.9 - np.exp(-at / 30) / 2 + 0.005 * rng.normal(size=steps),
        "grad_norm": (1 + 0.03 * rng.normal()) * np.exp(0.2 * rng.normal(size=steps)),
        "tokens_per_second": 1e4 * np.exp(0.002 * rng.normal() + 0.05 * rng.normal(size=steps)),
    }


def trial_of(columns: Mapping[str, NDArray[np.float64]], name: str = "run") -> Trial:
    """Return the trial with these rows; a column that is shorter has no last rows."""
    steps = max(map(len, columns.values()))
    rows = [
        (step, {key: float(each[step]) for key, each in columns.items() if step < len(each)})
        for step in range(steps)
    ]
    index = source_index(ListSource(*rows))
    index.refresh()
    index.finish()
    trial = source_trial(index)
    trial.name = name
    return trial


def seeded_run(seed: int, change: Change = lambda rows: rows, steps: int = STEPS) -> Trial:
    """Return a healthy run, or one that `change` has made worse."""
    rows = rows_of_seed(seed, steps)
    change(rows)
    return trial_of(rows, f"seed_{seed}")


def good_runs(count: int = 5) -> list[Trial]:
    """Return healthy runs."""
    return [*map(seeded_run, range(count))]
