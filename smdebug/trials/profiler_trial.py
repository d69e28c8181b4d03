"""ProfilerTrial: the system metrics and framework events of a training job."""

from rule_core.exceptions import NoMoreProfilerData as NoMoreProfilerData
from rule_core.logger import get_logger as get_logger
from rule_core.trials.profiler_trial import ProfilerTrial as ProfilerTrial
