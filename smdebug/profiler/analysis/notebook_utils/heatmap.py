"""Heatmap: the utilization of each resource over time, as colours."""

from rule_core.analysis.charts.heatmap import Heatmap as Heatmap
