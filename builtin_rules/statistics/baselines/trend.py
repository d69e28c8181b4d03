"""trends: whether the latest runs of a recipe become worse, each by a small step."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.statistics.baselines.bands import FLOORS
from builtin_rules.statistics.baselines.baseline_file import BaselineFile
from builtin_rules.statistics.baselines.run_metrics import MetricKey, RunMetric
from builtin_rules.statistics.noise_levels import rises
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.trials import create_trial

ERROR_RATE: Final = 0.001  # of the test, for each metric
JUDGED: Final = ("final", "level")
ENTRIES: Final = 10_000  # looked at in the folder


class Trend(NamedTuple):
    """A metric that becomes worse: its value in the latest runs and in the first ones."""

    metric: str
    latest: float
    first: float
    runs: int


def trends(
    baseline: BaselineFile, folder: str, trial: Any, metrics: dict[MetricKey, RunMetric], most: int
) -> Iterator[Trend]:
    """Yield the metrics that become worse over the latest runs in a folder, up to that in `trial`.

    They pass the Mann-Kendall test, which looks at ranks alone, and the median of the last third of
    the runs differs from that of the first third by more than the least width of a band.
    """
    runs = [*_earlier(baseline, folder, trial, most - 1), metrics]
    for bands in baseline.metrics:
        key = MetricKey(bands.name, bands.mode)
        statistics = [run[key].statistics for run in runs if key in run]
        for name in JUDGED:
            values = np.array([each[name] for each in statistics if name in each])
            third = len(values) // 3
            if not third:
                continue
            first, latest = float(np.median(values[:third])), float(np.median(values[-third:]))
            change = (latest - first) / max(abs(first), 1e-300)
            signs = (-bands.kind.better,) if bands.kind.better else (1, -1)
            for sign in signs:
                if sign * change > FLOORS[bands.kind] and rises(
                    (sign * values).tolist(), 0.0, ERROR_RATE
                ):
                    yield Trend(bands.name, latest, first, len(values))


def _earlier(
    baseline: BaselineFile, folder: str, trial: Any, most: int
) -> list[dict[MetricKey, RunMetric]]:
    """Return the metrics of the latest runs of the recipe in a folder, the oldest first."""
    own, own_time = Path(trial.path).resolve(), _time_of(trial)
    runs: list[tuple[float, str, dict[MetricKey, RunMetric]]] = []
    for path in _paths(folder):
        if path.resolve() in {own, own.parent}:
            continue
        try:
            earlier = create_trial(str(path), timeout=0)
            earlier.dynamic_refresh = False
            time = _time_of(earlier)
            if time <= own_time and not baseline.other_recipe(earlier):
                runs.append((time, path.name, baseline.metrics_of(earlier)))
        except SMDebugError:
            continue
    return [metrics for _, _, metrics in sorted(runs, key=lambda run: run[:2])[-most:]]


def _paths(folder: str) -> list[Path]:
    """Return the files and folders in a folder that may be runs."""
    try:
        with os.scandir(folder) as entries:
            return sorted(
                Path(entry.path) for entry, _ in zip(entries, range(ENTRIES), strict=False)
            )
    except OSError as err:
        reason = (err.strerror or str(err)).lower()
        raise SMDebugValueError(
            f"Folder {folder!r} of earlier runs cannot be read: {reason}."
        ) from err


def _time_of(trial: Any) -> float:
    """Return when a run ended: as its log says, or else when its files were last written."""
    steps = trial.steps(show_incomplete_steps=True)
    logged = trial.wall_time(steps[-1]) if steps else None
    return logged if logged is not None else Path(trial.path).stat().st_mtime
