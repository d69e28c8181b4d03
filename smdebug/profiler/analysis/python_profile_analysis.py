"""cProfileAnalysis, PyinstrumentAnalysis: Python profiles by step, time range or phase."""

from rule_core.profiler.files.constants import CPROFILE_NAME, PYINSTRUMENT_NAME
from rule_core.profiler.python_profiles.analysis import PyinstrumentAnalysis, cProfileAnalysis
from rule_core.profiler.python_profiles.selection import PythonProfileAnalysis
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import PyinstrumentStepStats, cProfileStats
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase

__all__ = [
    "CPROFILE_NAME",
    "PYINSTRUMENT_NAME",
    "PyinstrumentAnalysis",
    "PyinstrumentStepStats",
    "PythonProfileAnalysis",
    "PythonProfileModes",
    "StepPhase",
    "StepPythonProfileStats",
    "cProfileAnalysis",
    "cProfileStats",
]
