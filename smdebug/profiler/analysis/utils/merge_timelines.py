"""MergedTimeline, merge_timelines: all profiler data of a training job in one trace."""

from rule_core.analysis.frames.merge_timelines import (
    MergedTimeline as MergedTimeline,
    MergeUnit as MergeUnit,
    merge_timelines as merge_timelines,
)
from rule_core.logger import get_logger as get_logger
