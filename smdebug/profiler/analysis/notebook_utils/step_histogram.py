"""StepHistogram: the distribution of the durations of steps and their phases."""

from rule_core.analysis.charts.step_charts import StepHistogram as StepHistogram
