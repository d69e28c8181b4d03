"""RunMetrics: the losses, metrics, norms and speeds of a run as a few numbers each."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from builtin_rules.statistics.noise_levels import noise
from builtin_rules.statistics.tensor_selection import LOSSES
from builtin_rules.statistics.training_scalars import GRADIENT_NORMS, REWARDS
from builtin_rules.tensors.losses.metric_not_improving import METRICS
from builtin_rules.tensors.losses.throughput_drop import SPEEDS, is_time
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import NumberSeries, TensorInput, number_series

BLOCKS: Final = 20  # of a run, of equal progress
FINAL_SHARE: Final = 0.2  # of the run, whose mean is the final value
START_SHARE: Final = 0.1  # of the run, that does not tell its speed
TRIMMED: Final = 0.1  # of the final rows, at each end
SPIKE_ROWS: Final = 20  # among which a row is a spike
SPIKE_NOISES: Final = 10.0
SPIKE_SHARE: Final = 0.2  # of the level
NOISE_ROWS: Final = 1000
STATISTICS: Final = ("final", "level", "best", "area", "spikes")  # the most telling first
TIMES_READ: Final = 64
MAX_SERIES: Final = 64
TOKENS: Final = TensorInput(
    "tokens", (), (r"(?i)(^|[/_])(num_|consumed_|total_)?(input_)?tokens(_seen)?$",), "per|/s"
)
Floats = NDArray[np.float64]


class MetricKind(StrEnum):
    """What a metric is, and so which values of it are better."""

    GRADIENT_NORM = "gradient norm"
    SPEED = "speed"
    STEP_TIME = "time of a step"
    DURATION = "duration"
    REWARD = "reward"
    METRIC = "metric"
    LOSS = "loss"

    @property
    def better(self) -> int:
        """1 if larger values are better, -1 if smaller ones are, 0 if neither are."""
        if self is MetricKind.GRADIENT_NORM:
            return 0
        return 1 if self in {MetricKind.SPEED, MetricKind.REWARD, MetricKind.METRIC} else -1


_INPUTS: Final = (  # the first that has a name decides
    (MetricKind.GRADIENT_NORM, GRADIENT_NORMS),
    (MetricKind.SPEED, SPEEDS),
    (MetricKind.REWARD, REWARDS),
    (MetricKind.METRIC, METRICS),
    (MetricKind.LOSS, LOSSES),
)


class MetricKey(NamedTuple):
    """The name of a metric, and the mode in which it was saved."""

    name: str
    mode: str


@dataclass(frozen=True, slots=True)
class RunMetric:
    """A metric of one run.

    Attributes
    ----------
    statistics
        By name, such as ``final``.
    blocks, block_steps
        The means of parts of equal progress, NaN where the run has no row, and their first steps.
    noise
        The relative deviation of the final value that the noise of its rows explains.
    last, last_step
        The progress at the last row, and its step.
    not_finite
        The step from which on no value is finite; None if the last one is.
    """

    kind: MetricKind
    statistics: dict[str, float]
    blocks: list[float] = field(default_factory=list)
    block_steps: list[int] = field(default_factory=list)
    noise: float = 0.0
    last: float = 1.0
    last_step: int = 0
    not_finite: int | None = None


class RunLength(NamedTuple):
    """The last step of a run, and the tokens that it has seen; NaN if it does not count them."""

    steps: float
    tokens: float


def run_length(trial: Any) -> RunLength:
    """Return the length of the run in a trial."""
    names = {name for _, required in _INPUTS for name in required.names(trial)}
    last = [series.steps[-1] for series in number_series(trial, names)]
    tokens = _tokens(trial)
    return RunLength(float(max(last, default=0)), tokens.values[-1] if tokens else np.nan)


def run_metrics(
    trial: Any, length: float, *, by_tokens: bool = False
) -> dict[MetricKey, RunMetric]:
    """Return the metrics of the run in a trial, up to a progress of 1.

    Parameters
    ----------
    length
        The step at which the progress is 1, or the number of tokens if `by_tokens`.
    """
    tokens = _tokens(trial) if by_tokens else None
    metrics: dict[MetricKey, RunMetric] = {}
    for kind, series in _kinds(trial):
        progress = series.steps.astype(np.float64)
        if tokens is not None:
            progress = np.interp(progress, tokens.steps, tokens.values)
        progress /= max(length, 1.0)
        inside = progress <= 1
        if np.any(inside) and len(metrics) < MAX_SERIES:
            key = MetricKey(series.name, series.mode.name)
            metrics[key] = _metric(
                kind, series.steps[inside], progress[inside], series.values[inside]
            )
    return metrics | _clock(
        trial, has_speed=any(each.kind is MetricKind.SPEED for each in metrics.values())
    )


def _tokens(trial: Any) -> NumberSeries | None:
    """Return the tokens that a run has seen."""
    every = number_series(trial, TOKENS.names(trial))
    ascending = (each for each in every if np.all(np.diff(each.values) >= 0))
    return next((each for each in ascending if each.mode is not ModeKeys.EVAL), None)


def _kinds(trial: Any) -> Iterator[tuple[MetricKind, NumberSeries]]:
    """Yield the series of a trial that are judged, with their kinds."""
    named: set[str] = set()
    for kind, required in _INPUTS:
        names = [name for name in required.names(trial) if name not in named]
        named.update(names)
        for series in number_series(trial, names):
            is_slow = kind is MetricKind.SPEED and is_time(series.name)
            yield MetricKind.STEP_TIME if is_slow else kind, series


def _metric(
    kind: MetricKind, steps: NDArray[np.int64], progress: Floats, values: Floats
) -> RunMetric:
    finite = np.isfinite(values)
    last = float(progress[-1])
    after = int(np.flatnonzero(finite)[-1]) + 1 if finite.any() else 0
    lost = int(steps[after]) if after < len(values) else None
    starts = np.searchsorted(progress, np.arange(BLOCKS) / BLOCKS)
    block_steps = [int(step) for step in steps[np.minimum(starts, len(steps) - 1)]]
    progress, values = progress[finite], values[finite]
    if not len(values):
        return RunMetric(kind, {}, last=last, last_step=int(steps[-1]), not_finite=int(steps[0]))
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = _block_means(progress, values)
        statistics = dict(_statistics(kind, progress, values, blocks))
        ends = values[progress > progress[-1] - FINAL_SHARE]
        deviation = noise(values[-NOISE_ROWS:]) / np.sqrt(len(ends))
        relative = deviation / max(abs(statistics.get("final", np.inf)), 1e-300)
    usable = {name: float(number) for name, number in statistics.items() if np.isfinite(number)}
    relative = float(min(relative, 1.0))
    return RunMetric(kind, usable, blocks, block_steps, relative, last, int(steps[-1]), lost)


def _statistics(
    kind: MetricKind, progress: Floats, values: Floats, blocks: list[float]
) -> Iterator[tuple[str, float]]:
    if kind in {MetricKind.SPEED, MetricKind.STEP_TIME, MetricKind.GRADIENT_NORM}:
        later = values[progress > START_SHARE]
        yield "level", float(np.median(later if len(later) else values))
        return
    ends = np.sort(values[progress > progress[-1] - FINAL_SHARE])
    cut = int(TRIMMED * len(ends))
    yield "final", float(np.mean(ends[cut : len(ends) - cut]))
    yield "best", float((np.nanmax if kind.better > 0 else np.nanmin)(blocks))
    yield "area", float(np.nanmean(blocks))
    if kind is MetricKind.LOSS:
        yield "spikes", float(_spikes(values))


def _block_means(progress: Floats, values: Floats) -> list[float]:
    which = np.minimum((progress * BLOCKS).astype(np.int64), BLOCKS - 1)
    counts = np.bincount(which, minlength=BLOCKS)
    sums = np.bincount(which, values, BLOCKS)
    return [
        float(total / count) if count else np.nan for total, count in zip(sums, counts, strict=True)
    ]


def _spikes(values: Floats) -> int:
    """Return how many rows are far above the median of the rows around them."""
    rows = values[: len(values) // SPIKE_ROWS * SPIKE_ROWS].reshape(-1, SPIKE_ROWS)
    levels = np.median(rows, 1, keepdims=True)
    deviations = 1.4826 * np.median(np.abs(rows - levels), 1, keepdims=True)
    limits = levels + np.maximum(SPIKE_NOISES * deviations, SPIKE_SHARE * np.abs(levels))
    return int(np.count_nonzero(rows > limits))


def _clock(trial: Any, *, has_speed: bool) -> dict[MetricKey, RunMetric]:
    """Return the duration of a run that was not resumed, and its speed if nothing else says it."""
    steps = trial.steps(show_incomplete_steps=True)
    if not steps[1:] or trial.segment(steps[-1]):
        return {}
    chosen = [
        steps[int(place)] for place in np.linspace(0, len(steps) - 1, min(len(steps), TIMES_READ))
    ]
    times = np.array([trial.wall_time(step) or np.nan for step in chosen])
    duration = float(times[-1] - times[0])
    if not duration > 0:
        return {}
    clock = {MetricKey("duration", "GLOBAL"): RunMetric(MetricKind.DURATION, {"level": duration})}
    pace = np.diff(chosen) / np.diff(times)
    if not has_speed and np.all(np.isfinite(pace)):
        speed = RunMetric(MetricKind.SPEED, {"level": float(np.median(pace))})
        clock[MetricKey("steps per second", "GLOBAL")] = speed
    return clock
