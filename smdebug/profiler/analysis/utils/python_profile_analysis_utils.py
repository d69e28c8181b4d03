"""Functions and times in the Python profiles of cProfile and pyinstrument."""

from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import (
    Metrics,
    PyinstrumentStepStats,
    cProfileFunctionStats,
    cProfileStats,
)
from rule_core.profiler.python_profiles.types import (
    PythonProfileModes,
    StepPhase,
    str_to_python_profile_mode,
)

__all__ = [
    "Metrics",
    "PyinstrumentStepStats",
    "PythonProfileModes",
    "StepPhase",
    "StepPythonProfileStats",
    "cProfileFunctionStats",
    "cProfileStats",
    "str_to_python_profile_mode",
]
