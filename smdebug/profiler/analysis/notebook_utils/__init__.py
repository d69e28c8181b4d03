"""Charts for notebooks; bokeh is imported when the first one is drawn."""

from rule_core.analysis.charts.metrics_histogram import MetricsHistogram as MetricsHistogram
from rule_core.analysis.charts.step_charts import StepHistogram as StepHistogram
from rule_core.analysis.charts.training_job import TrainingJob as TrainingJob
