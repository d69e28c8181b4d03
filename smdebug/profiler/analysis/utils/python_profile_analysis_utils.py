"""Functions and times in the Python profiles of cProfile and pyinstrument."""

from rule_core.profiler.python_profiles.span import StepPythonProfileStats as StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import (
    Metrics as Metrics,
    PyinstrumentStepStats as PyinstrumentStepStats,
    cProfileFunctionStats as cProfileFunctionStats,
    cProfileStats as cProfileStats,
)
from rule_core.profiler.python_profiles.types import (
    PythonProfileModes as PythonProfileModes,
    StepPhase as StepPhase,
    str_to_python_profile_mode as str_to_python_profile_mode,
)
