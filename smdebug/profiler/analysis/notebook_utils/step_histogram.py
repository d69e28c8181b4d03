"""StepHistogram: how long steps and their phases took."""

from rule_core.analysis.charts.step_histogram import StepHistogram

__all__ = ["StepHistogram"]
