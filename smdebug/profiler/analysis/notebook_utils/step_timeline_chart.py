"""StepTimelineChart: the duration of each step over time."""

from rule_core.analysis.charts.chart import LineMark as Line
from rule_core.analysis.charts.step_charts import StepTimelineChart

__all__ = ["Line", "StepTimelineChart"]
