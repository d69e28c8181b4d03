"""ProfilerTrial: the system metrics and framework events of a training job."""

from rule_core.exceptions import NoMoreProfilerData
from rule_core.logger import get_logger
from rule_core.trials.profiler_trial import ProfilerTrial

__all__ = ["NoMoreProfilerData", "ProfilerTrial", "get_logger"]
