"""trends: whether the latest runs of a recipe become worse, each by a small step."""

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import numpy as np

from builtin_rules.statistics.baselines.bands import LEAST
from builtin_rules.statistics.baselines.baseline_file import BaselineFile
from builtin_rules.statistics.baselines.differences import Difference
from builtin_rules.statistics.baselines.run_metrics import MetricKey, RunMetric
from builtin_rules.statistics.noise_levels import rises
from smdebug.exceptions import SMDebugError, SMDebugValueError
from smdebug.trials import create_trial

TREND: Final = "trend"
ERROR_RATE: Final = 0.001  # of the test, for each metric


def trends(baseline: BaselineFile, folder: str, trial: Any, most: int) -> Iterator[Difference]:
    """Yield the metrics that become worse over the latest runs in a folder, up to that in `trial`.

    They pass the Mann-Kendall test, which looks at ranks alone, and the mean of the last third of
    the runs differs from that of the first third by more than the least width of a band.
    """
    runs = [*_earlier(baseline, folder, trial)[1 - most :], baseline.metrics_of(trial)]
    for bands in baseline.metrics:
        key = (bands.name, bands.mode)
        statistics = [run[key].statistics for run in runs if key in run]
        for name in ("final", "level"):
            values = [each[name] for each in statistics if name in each] or [0.0]
            third = max(len(values) // 3, 1)
            first, latest = (float(np.mean(each)) for each in (values[:third], values[-third:]))
            for sign in (-bands.kind.better,) if bands.kind.better else (1, -1):
                is_large = sign * (latest - first) > LEAST[bands.kind][0] * abs(first)
                if is_large and rises([sign * each for each in values], error_rate=ERROR_RATE):
                    note = f"over the latest {len(values)} runs"
                    yield Difference(bands.name, TREND, None, latest, first, note)


def _earlier(baseline: BaselineFile, folder: str, trial: Any) -> list[dict[MetricKey, RunMetric]]:
    """Return the metrics of the runs of the recipe in a folder before that of a trial, in order."""
    own, own_time = Path(trial.path).resolve(), _time_of(trial)
    runs: list[tuple[float, str, dict[MetricKey, RunMetric]]] = []
    try:
        paths = sorted(Path(folder).iterdir())[-10_000:]
    except OSError as err:
        raise SMDebugValueError(
            f"Folder {folder!r} of earlier runs cannot be read: {err}."
        ) from err
    for path in paths:
        with suppress(SMDebugError, OSError):
            earlier = create_trial(str(path), timeout=0)
            earlier.dynamic_refresh = False
            time = _time_of(earlier)
            is_earlier = path.resolve() not in (own, *own.parents) and time <= own_time
            if is_earlier and not baseline.other_recipe(earlier):
                runs.append((time, path.name, baseline.metrics_of(earlier)))
    return [metrics for _, _, metrics in sorted(runs, key=lambda run: run[:2])]


def _time_of(trial: Any) -> float:
    """Return when a run ended: as its log says, or else when its files were last written."""
    steps = trial.steps(show_incomplete_steps=True)
    logged, path = steps and trial.wall_time(steps[-1]), Path(trial.path)
    return logged or (path.stat().st_mtime if path.exists() else math.inf)
