"""Heatmap: how much of each resource was used over time, as colours."""

from rule_core.analysis.charts.heatmap import Heatmap

__all__ = ["Heatmap"]
