"""MetricsHistogram: how often each share of a machine's resources was used."""

from rule_core.analysis.charts.metrics_histogram import MetricsHistogram

__all__ = ["MetricsHistogram"]
