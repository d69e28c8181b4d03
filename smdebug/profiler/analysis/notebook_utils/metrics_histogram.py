"""MetricsHistogram: the distribution of the utilization of each resource."""

from rule_core.analysis.charts.metrics_histogram import MetricsHistogram as MetricsHistogram
