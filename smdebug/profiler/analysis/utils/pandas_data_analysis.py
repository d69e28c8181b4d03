"""PandasFrameAnalysis: statistics of data frames of system and framework metrics."""

from rule_core.analysis.frames.pandas_data_analysis import (
    JobStats as JobStats,
    PandasFrameAnalysis as PandasFrameAnalysis,
    Resource as Resource,
    StatsBy as StatsBy,
)
from rule_core.logger import get_logger as get_logger
