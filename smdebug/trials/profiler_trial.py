"""ProfilerTrial: the documented questions about a job's system metrics and framework events."""

from rule_core.exceptions import NoMoreProfilerData
from rule_core.logger import get_logger
from rule_core.trials.profiler_trial import ProfilerTrial

__all__ = ["NoMoreProfilerData", "ProfilerTrial", "get_logger"]
