"""Bands: between which limits the statistics of further runs of a recipe lie."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from builtin_rules.statistics.baselines.run_metrics import Floats, MetricKind, RunMetric

# Least distance of a limit from the mean, as a share of it; least deviation between runs; and that
# between one run and another, beside the noise of its rows.
LEAST: Final = {
    MetricKind.LOSS: (0.01, 0.003, 0.01),
    MetricKind.METRIC: (0.01, 0.003, 0.01),
    MetricKind.REWARD: (0.02, 0.003, 0.01),
    MetricKind.SPEED: (0.03, 0.003, 0.0026),
    MetricKind.STEP_TIME: (0.03, 0.003, 0.0026),
    MetricKind.DURATION: (0.1, 0.003, 0.01),
    MetricKind.GRADIENT_NORM: (0.25, 0.03, 0.021),
}
# Student's t that chance exceeds once in a thousand cases, by degrees of freedom.
_FREEDOM: Final = (2, 3, 4, 5, 6, 7, 8, 10, 12, 15, 20, 30, 1e9)
_QUANTILES: Final = (22.3, 10.2, 7.17, 5.89, 5.21, 4.79, 4.5, 4.14, 3.93, 3.73, 3.55, 3.39, 3.09)
_FREEDOM_PER_RUN: Final = 2  # less 1; the curve before the end tells the deviation too
_WINDOWS: Final = ((8, 12), (12, 16))  # blocks before the final value
_LEVEL_SHARE: Final = 0.8  # of the quantile: a level is one statistic, and a loss has four
_NOISE_WEIGHT: Final = 2.0  # of the noise of rows, as that of two runs
_ALONE: Final = 13.0  # deviations between one run and another, as the noise of one tells them
_MORE_SPIKES: Final = 5.0


class Band(Struct, frozen=True):
    """Limits of a statistic, and its mean over the good runs."""

    low: float
    middle: float
    high: float


def band_of(name: str, runs: Sequence[RunMetric]) -> Band:
    """Return the band of a statistic that all runs have.

    The limits are a prediction interval: ``K`` deviations of a further run around the mean, where
    Student's t gives ``K`` for one error in a thousand. The deviation is that of the good runs at
    the end, of their curves before it, and of the noise of their rows. Positive statistics but
    metrics are compared as logarithms.
    """
    kind = runs[0].kind
    values = np.array([run.statistics[name] for run in runs])
    if name == "spikes":
        most = float(values.max())
        more = max(_MORE_SPIKES * (1 + (len(runs) == 1)), 3 * math.sqrt(most))
        return Band(0.0, float(values.mean()), rounded(most + more))
    is_log = bool(np.all(values > 0)) and kind is not MetricKind.METRIC
    scale = 1.0 if is_log else float(np.abs(values).max()) or 1.0
    scaled = np.log(values) if is_log else values / scale
    middle = float(scaled.mean())
    margin = max(LEAST[kind][0], _margin(name, runs, scaled, is_log=is_log, scale=scale))
    ends = [middle - margin, middle, middle + margin]
    return Band(*(rounded(math.exp(min(end, 700.0)) if is_log else end * scale) for end in ends))


def _margin(
    name: str, runs: Sequence[RunMetric], scaled: Floats, *, is_log: bool, scale: float
) -> float:
    """Return how far a further run may be from the mean, in scaled units."""
    is_value = name != "level"
    row_noise = float(np.mean([run.noise for run in runs])) if is_value else 0.0
    count = len(runs)
    _, least, least_alone = LEAST[runs[0].kind]
    if count == 1:
        return _ALONE * math.sqrt(2) * math.hypot(row_noise, least_alone)
    variances = [(count - 1.0, float(scaled.var(ddof=1)))]
    variances.append((_NOISE_WEIGHT, row_noise**2 + least**2))
    for first, end in _WINDOWS if is_value else ():
        blocks = np.array([run.blocks[first:end] for run in runs], np.float64)
        if np.all(np.any(np.isfinite(blocks), 1)):
            means = np.nanmean(blocks, 1) / scale
            usable = not is_log or bool(np.all(means > 0))
            spread = float((np.log(means) if is_log else means).var(ddof=1)) if usable else 0.0
            variances.append(((count - 1) / 2 * usable, spread))
    total = sum(weight for weight, _ in variances)
    variance = sum(weight * each for weight, each in variances) / total
    quantile = float(np.interp(_FREEDOM_PER_RUN * count - 1, _FREEDOM, _QUANTILES))
    return (quantile if is_value else _LEVEL_SHARE * quantile) * math.sqrt(
        variance * (1 + 1 / count)
    )


def curve_of(runs: Sequence[RunMetric]) -> list[tuple[float, float, float]]:
    """Return the progress at the ends of blocks, and the lowest and the highest mean of each."""
    means = [*zip(*(run.blocks for run in runs), strict=True)]
    return [
        (end / len(means), rounded(min(block)), rounded(max(block)))
        for end, block in enumerate(means, 1)
        if np.all(np.isfinite(block))
    ]


def rounded(figure: float) -> float:
    """Return a figure with six digits.

    >>> rounded(0.123456789)
    0.123457
    """
    return float(f"{figure:.6g}")
