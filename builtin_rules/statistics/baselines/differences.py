"""differences: how a run differs from the good runs of its recipe."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from builtin_rules.statistics.baselines.baseline_file import BaselineFile, MetricBands
from builtin_rules.statistics.baselines.run_metrics import (
    STATISTICS,
    MetricKind,
    RunMetric,
)

LENGTH: Final = "length"
VANISHED: Final = "vanished"
NOT_FINITE: Final = "not_finite"
MOST: Final = 0.75  # of the blocks since then
LOST_SHARE: Final = 0.25  # of the run, for which a metric that has vanished has no value
QUANTITIES: Final = (*STATISTICS, LENGTH, VANISHED, NOT_FINITE)
_MISSING: Final = RunMetric(MetricKind.LOSS, {}, last=0.0)


class Difference(NamedTuple):
    """How a statistic of a run compares with the good runs.

    Attributes
    ----------
    metric
        Its name; None for the run as a whole.
    quantity
        A statistic, or `LENGTH`, `VANISHED` or `NOT_FINITE`.
    step
        The training step since which the run is outside; None: since the end.
    measured, limit
        In the unit of the metric.
    is_outside, is_better
        Whether the run is outside of the band, and if so, whether it is better than the good ones.
    """

    metric: str | None
    quantity: str
    step: int | None
    measured: float
    limit: float
    note: str
    is_outside: bool = True
    is_better: bool = False


def differences(baseline: BaselineFile, trial: Any) -> Iterator[Difference]:
    """Yield how each statistic of a run compares with the good ones, and what else differs."""
    is_cut = baseline.ends_before(trial)
    count = len(baseline.runs)
    of_runs = f"of {count} good run{'s' * (count > 1)}"
    if is_cut:
        yield Difference(None, LENGTH, None, baseline.length_of(trial), baseline.shortest, of_runs)
    metrics = baseline.metrics_of(trial)
    furthest = max((metric.last for metric in metrics.values()), default=0.0)
    for bands in baseline.metrics:
        name, expected = bands.name, min(bands.last, furthest)
        metric = metrics.get((name, bands.mode), _MISSING)
        if metric is _MISSING and bands.kind is MetricKind.DURATION:  # of a run that was resumed
            continue
        if metric.last < expected - LOST_SHARE or metric is _MISSING:
            yield Difference(name, VANISHED, metric.last_step, metric.last, expected, of_runs)
        elif metric.not_finite is not None:
            yield Difference(name, NOT_FINITE, metric.not_finite, metric.last, expected, of_runs)
        else:
            yield from _compared(bands, metric, of_runs, is_cut=is_cut)


def _compared(
    bands: MetricBands, metric: RunMetric, of_runs: str, *, is_cut: bool
) -> Iterator[Difference]:
    """Yield how the statistics of a metric compare with their bands."""
    for name in filter((bands.bands.keys() & metric.statistics.keys()).__contains__, STATISTICS):
        band, measured = bands.bands[name], metric.statistics[name]
        if is_cut and (name != "level" or not metric.blocks):
            continue
        better = -1 if name == "spikes" else bands.kind.better
        is_outside = not band.low <= measured <= band.high
        is_above = measured > band.high if is_outside else better < 0
        since = _since(bands, metric, is_above=is_above) if is_outside else None
        limit = band.high if is_above else band.low
        share = f"{100 * (measured / band.middle - 1):+.1f} %, " if band.middle else ""
        note = f"{share}band {band.low:g} to {band.high:g} {of_runs}"
        is_better = is_outside and better == (1 if is_above else -1)
        yield Difference(bands.name, name, since, measured, limit, note, is_outside, is_better)


def _since(bands: MetricBands, metric: RunMetric, *, is_above: bool) -> int | None:
    """Return the first step since which most blocks are above or below all good runs."""
    since, outside = None, 0
    for looked_at, (progress, low, high) in enumerate(reversed(bands.curve), 1):
        block = min(max(round(progress * len(metric.blocks)), 1), len(metric.blocks)) - 1
        is_outside = metric.blocks[block] > high if is_above else metric.blocks[block] < low
        outside += is_outside
        if is_outside and outside >= MOST * looked_at:
            since = metric.block_steps[block]
    return since
