"""RunMetrics: the losses, metrics, norms and speeds of a run as a few numbers each."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.statistics.noise_levels import noise
from builtin_rules.statistics.tensor_selection import LOSSES
from builtin_rules.statistics.training_scalars import GRADIENT_NORMS, REWARDS
from builtin_rules.tensors.losses.metric_not_improving import METRICS
from builtin_rules.tensors.losses.throughput_drop import SPEEDS, is_time
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
MAX_SERIES: Final = 64
HUGE: Final = 1e100  # larger values count as infinite
DURATION: Final = ("duration", "GLOBAL")
Floats = NDArray[np.float64]
MetricKey = tuple[str, str]  # the name of a metric, and the mode in which it was saved


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


_TOKENS_OF: Final = "((num|total|consumed|n|train(ed)?|input)[_ -])*"
TOKENS: Final = TensorInput(
    "tokens seen",
    (),
    (rf"(?i)(^|[/ .]){_TOKENS_OF}tokens([/ ._-](seen|consumed|processed|total|so_far))?$",),
    r"(?i)(^|[/_.])(eval|val|valid|validation|test)[/_.]",
)
_INPUTS: Final = (  # the first that has a name decides
    (MetricKind.GRADIENT_NORM, GRADIENT_NORMS),
    (MetricKind.SPEED, SPEEDS),
    (MetricKind.REWARD, REWARDS),
    (MetricKind.METRIC, METRICS),
    (MetricKind.LOSS, LOSSES),
)


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


def run_length(trial: Any) -> int:
    """Return the last step of the run in a trial."""
    return max((int(series.steps[-1]) for _, series in _kinds(trial)), default=0)


class TokenCounter:
    """The tokens that a run had seen, by its steps.

    Of several counters, the one with the most rows counts. It must never fall, and rise at all.

    Attributes
    ----------
    total
        The tokens at the end; 0 for a run without a counter.
    """

    def __init__(self, trial: Any) -> None:
        counters = [
            series
            for series in number_series(trial, TOKENS.names(trial))
            if series.values[-1] > series.values[0] >= 0 and np.all(np.diff(series.values) >= 0)
        ]
        self._counter = max(counters, key=lambda series: len(series.steps), default=None)
        self.total = 0 if self._counter is None else int(self._counter.values[-1])

    def at(self, steps: NDArray[np.int64]) -> Floats:
        """Return the tokens at steps, between rows of the counter by their distance."""
        if self._counter is None:
            return np.zeros(len(steps))
        known, tokens = self._counter.steps, self._counter.values
        counts: Floats = np.interp(steps, np.append(-1, known), np.append(0.0, tokens))
        return counts


def run_metrics(
    trial: Any, length: int, tokens: TokenCounter | None = None
) -> dict[MetricKey, RunMetric]:
    """Return the metrics of the run in a trial, up to a progress of 1.

    Parameters
    ----------
    length
        The step at which the progress is 1, or with `tokens` their number.
    """
    metrics: dict[MetricKey, RunMetric] = {}
    for kind, (name, mode, steps, values) in _kinds(trial):
        counts = steps if tokens is None else tokens.at(steps)
        count = int(np.searchsorted(counts, length, "right"))
        if count and len(metrics) < MAX_SERIES:
            progress = counts[:count] / max(length, 1)
            metrics[name, mode.name] = _metric(kind, steps, progress, values[:count])
    if tokens is None and (duration := _duration(trial, length)) > 0:
        metrics[DURATION] = RunMetric(MetricKind.DURATION, {"level": duration}, last=0.0)
    return metrics


def _kinds(trial: Any) -> Iterator[tuple[MetricKind, NumberSeries]]:
    """Yield the series of a trial that are judged, with their kinds."""
    named: set[str] = set()
    for kind, required in _INPUTS:
        names = set(required.names(trial)) - named
        named |= names
        for series in number_series(trial, names):
            is_slow = kind is MetricKind.SPEED and is_time(series.name)
            yield MetricKind.STEP_TIME if is_slow else kind, series


def _metric(
    kind: MetricKind, steps: NDArray[np.int64], progress: Floats, values: Floats
) -> RunMetric:
    last, last_step = float(progress[-1]), int(steps[len(values) - 1])
    rows = np.flatnonzero(np.abs(values) < HUGE)
    after = int(rows[-1]) + 1 if len(rows) else 0
    lost = int(steps[after]) if after < len(values) else None
    if not len(rows):
        return RunMetric(kind, {}, last=last, last_step=last_step, not_finite=lost)
    starts = np.searchsorted(progress, np.arange(BLOCKS) / BLOCKS)
    block_steps = steps[np.minimum(starts, len(values) - 1)].tolist()
    progress, values = progress[rows], values[rows]
    with np.errstate(over="ignore", invalid="ignore"):
        blocks = _block_means(progress, values)
        ends = values[progress > progress[-1] - FINAL_SHARE]
        statistics = dict(_statistics(kind, progress, values, ends, blocks))
        deviation = noise(values[-NOISE_ROWS:]) / np.sqrt(len(ends))
        relative = float(deviation / max(abs(statistics.get("final", np.inf)), 1e-300))
    return RunMetric(
        kind, statistics, blocks, block_steps, min(relative, 1.0), last, last_step, lost
    )


def _statistics(
    kind: MetricKind, progress: Floats, values: Floats, ends: Floats, blocks: list[float]
) -> Iterator[tuple[str, float]]:
    if kind in {MetricKind.SPEED, MetricKind.STEP_TIME, MetricKind.GRADIENT_NORM}:
        later = values[progress > START_SHARE]
        yield "level", float(np.median(later if len(later) else values))
        return
    cut = int(TRIMMED * len(ends))
    yield "final", float(np.mean(np.sort(ends)[cut : len(ends) - cut]))
    yield "best", kind.better * float(np.nanmax(kind.better * np.array(blocks)))
    yield "area", float(np.nanmean(blocks))
    if kind is MetricKind.LOSS:
        yield "spikes", float(_spikes(values))


def _block_means(progress: Floats, values: Floats) -> list[float]:
    which = np.minimum((progress * BLOCKS).astype(np.int64), BLOCKS - 1)
    counts = np.bincount(which, minlength=BLOCKS)
    means = np.bincount(which, values, BLOCKS) / np.maximum(counts, 1)
    return [float(each) for each in np.where(counts > 0, means, np.nan)]


def _spikes(values: Floats) -> int:
    """Return how many rows are far above the median of the rows around them."""
    rows = values[: len(values) // SPIKE_ROWS * SPIKE_ROWS].reshape(-1, SPIKE_ROWS)
    levels = np.median(rows, 1, keepdims=True)
    deviations = 1.4826 * np.median(np.abs(rows - levels), 1, keepdims=True)
    limits = levels + np.maximum(SPIKE_NOISES * deviations, SPIKE_SHARE * np.abs(levels))
    return int(np.count_nonzero(rows > limits))


def _duration(trial: Any, length: int) -> float:
    """Return the seconds from the first step of a run to the last; 0 if it was resumed."""
    steps = trial.steps(show_incomplete_steps=True)
    if not steps or trial.segment(steps[-1]) or steps[0] > length:
        return 0.0
    first, last = map(trial.wall_time, (steps[0], steps[bisect_right(steps, length) - 1]))
    return 0.0 if first is None or last is None else float(last - first)
