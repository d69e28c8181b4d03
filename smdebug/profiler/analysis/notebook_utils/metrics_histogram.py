"""MetricsHistogram: how often each share of a machine's resources was used."""

from collections.abc import Sequence
from typing import Final

from smdebug.profiler.analysis.notebook_utils.chart import Chart, Panel
from smdebug.profiler.analysis.notebook_utils.drawn import Drawn
from smdebug.profiler.analysis.notebook_utils.histograms import amounts, shares
from smdebug.profiler.analysis.notebook_utils.system_curves import (
    Curves,
    SystemCurves,
    percent,
    selected,
)
from smdebug.profiler.system_metrics_reader import SystemMetricsReader

_COLUMNS: Final = 3


class MetricsHistogram(Drawn):
    """Histograms of system metrics, one for each dimension and metric.

    Each dimension has one more, ``total``: the mean of its metrics at each moment.

    Parameters
    ----------
    metrics_reader
        Of the job's system metrics.

    Attributes
    ----------
    system_metrics
        What is shown: curves by dimension and metric.
    """

    _source: SystemCurves | None
    _events: Sequence[str]
    system_metrics: Curves

    def __init__(self, metrics_reader: SystemMetricsReader) -> None:
        self.metrics_reader = metrics_reader
        self.clear()

    def plot(
        self,
        starttime: float = 0,
        endtime: float | None = None,
        select_dimensions: Sequence[str] = (".*",),
        select_events: Sequence[str] = (".*",),
        show_workers: bool = True,
    ) -> None:
        """Read the metrics of a range of time, and show them in a notebook.

        Parameters
        ----------
        starttime, endtime
            Microseconds since the epoch; None is all there is.
        select_dimensions, select_events
            Regular expressions: what is found in a dimension's or a metric's name is selected.
        show_workers
            Whether nodes have histograms of their own; otherwise their mean has.

        Raises
        ------
        re.error
            If an expression is none.
        """
        self._source = SystemCurves(
            self.metrics_reader, starttime, endtime, select_dimensions, show_workers=show_workers
        )
        self._events = select_events
        self.system_metrics = selected(self._source.curves(), select_events)
        self.show()

    def update_data(self, current_timestamp: float) -> None:
        """Add what came up to a time, in microseconds since the epoch."""
        if self._source is not None and self._source.update(current_timestamp):
            self.system_metrics = selected(self._source.curves(), self._events)
            self._renew()

    def clear(self) -> None:
        """Forget all that was read."""
        self._source = None
        self._events = ()
        self.system_metrics = {}

    def chart(self) -> Chart:
        """Return the histograms."""
        panels = []
        for dimension, named in self.system_metrics.items():
            in_percent = percent(dimension, named.values())
            for name, curve in named.items():
                bars = shares(curve.value) if in_percent else amounts(curve.value)
                label = "%" if in_percent else "value"
                panels.append(Panel(f"{dimension} {name}", label, "samples", bars))
        return Chart("Histograms of system metrics", tuple(panels), columns=_COLUMNS)
