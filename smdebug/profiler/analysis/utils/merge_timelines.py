"""MergedTimeline, merge_timelines: all profiler data of a training job in one trace."""

from rule_core.analysis.frames.merge_timelines import MergedTimeline, MergeUnit, merge_timelines
from rule_core.logger import get_logger

__all__ = ["MergeUnit", "MergedTimeline", "get_logger", "merge_timelines"]
