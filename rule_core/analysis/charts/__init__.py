"""Charts for notebooks; bokeh is imported when a chart is drawn."""

from rule_core.analysis.charts.metrics_histogram import MetricsHistogram
from rule_core.analysis.charts.step_charts import StepHistogram
from rule_core.analysis.charts.training_job import TrainingJob

__all__ = ["MetricsHistogram", "StepHistogram", "TrainingJob"]
