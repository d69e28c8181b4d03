"""PandasFrameAnalysis: statistics of data frames of system and framework metrics."""

from rule_core.analysis.frames.pandas_data_analysis import (
    JobStats,
    PandasFrameAnalysis,
    Resource,
    StatsBy,
)
from rule_core.logger import get_logger

__all__ = ["JobStats", "PandasFrameAnalysis", "Resource", "StatsBy", "get_logger"]
