"""differences: how a run differs from the good runs of its recipe."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from builtin_rules.statistics.baselines.baseline_file import BaselineFile, MetricBands
from builtin_rules.statistics.baselines.run_metrics import STATISTICS, MetricKey, RunMetric

LENGTH: Final = "length"
VANISHED: Final = "vanished"
NOT_FINITE: Final = "not_finite"
MOST: Final = 0.75  # of the blocks since then
LOST_SHARE: Final = 0.25  # of the run, for which a metric that has vanished has no value


class Difference(NamedTuple):
    """How a statistic of a run compares with the good runs.

    Attributes
    ----------
    quantity
        A statistic, or `LENGTH`, `VANISHED` or `NOT_FINITE`.
    metric
        Its name; None for the run as a whole.
    step
        The training step since which it lasts; None: since the end.
    measured, limit
        In the unit of the metric.
    is_outside, is_better
        Whether the run is outside of the band, and if so, whether it is better than the good ones.
    """

    quantity: str
    metric: str | None
    step: int | None
    measured: float
    limit: float
    note: str
    is_outside: bool = True
    is_better: bool = False


def differences(baseline: BaselineFile, trial: Any) -> Iterator[Difference]:
    """Yield how each statistic of a run compares with the good ones, and what else differs."""
    reached = baseline.reached(trial)
    count = len(baseline.runs)
    of_runs = "1 good run" if count == 1 else f"{count} good runs"
    if reached is not None:
        unit = "tokens" if baseline.aligned_by == "tokens" else "step"
        note = f"It ends at {unit} {reached:g}; the shortest of {of_runs} at {baseline.shortest:g}."
        yield Difference(LENGTH, None, None, reached, baseline.shortest, note)
    metrics = baseline.metrics_of(trial)
    furthest = max((metric.last for metric in metrics.values()), default=0.0)
    for bands in baseline.metrics:
        metric = metrics.get(MetricKey(bands.name, bands.mode))
        expected = min(bands.last, furthest)
        if metric is None or metric.last < expected - LOST_SHARE:
            last, since = (metric.last, metric.last_step) if metric else (0.0, 0)
            yield Difference(
                VANISHED, bands.name, since, last, expected, f"All of {of_runs} have it."
            )
        elif metric.not_finite is not None:
            yield Difference(
                NOT_FINITE,
                bands.name,
                metric.not_finite,
                metric.last,
                expected,
                "It is NaN or infinite.",
            )
        else:
            yield from _compared(bands, metric, of_runs, is_cut=reached is not None)


def _compared(
    bands: MetricBands, metric: RunMetric, of_runs: str, *, is_cut: bool
) -> Iterator[Difference]:
    """Yield how the statistics of a metric compare with their bands."""
    for statistic in filter(bands.bands.__contains__, STATISTICS):
        band = bands.bands[statistic]
        measured = metric.statistics.get(statistic)
        if measured is None or (is_cut and (statistic != "level" or not metric.blocks)):
            continue
        better = -1 if statistic == "spikes" else bands.kind.better
        is_inside = band.low <= measured <= band.high
        is_above = better < 0 if is_inside else measured > band.high
        limit = band.high if is_above else band.low
        share = f"{100 * (measured / band.middle - 1):+.1f} %, " if band.middle else ""
        note = f"{share}band {band.low:g} to {band.high:g} over {of_runs}"
        is_better = not is_inside and better == (1 if is_above else -1)
        since = None if is_inside else _since(bands, metric, is_above=is_above)
        yield Difference(
            statistic, bands.name, since, measured, limit, note, not is_inside, is_better
        )


def _since(bands: MetricBands, metric: RunMetric, *, is_above: bool) -> int | None:
    """Return the first step since which most blocks are above or below all good runs."""
    since, outside, looked_at = None, 0, 0
    for progress, low, high in reversed(bands.curve):
        block = min(max(round(progress * len(metric.blocks)), 1), len(metric.blocks)) - 1
        is_outside = metric.blocks[block] > high if is_above else metric.blocks[block] < low
        outside, looked_at = outside + is_outside, looked_at + 1
        if is_outside and outside >= MOST * looked_at:
            since = metric.block_steps[block]
    return since
