"""TimelineCharts: system metrics and framework events over time."""

from rule_core.analysis.charts.chart import LineMark as Line
from rule_core.analysis.charts.timeline_charts import TimelineCharts

__all__ = ["Line", "TimelineCharts"]
