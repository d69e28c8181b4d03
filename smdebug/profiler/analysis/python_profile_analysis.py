"""cProfileAnalysis, PyinstrumentAnalysis: Python profiles by step, time range or phase."""

from rule_core.profiler.files.constants import (
    CPROFILE_NAME as CPROFILE_NAME,
    PYINSTRUMENT_NAME as PYINSTRUMENT_NAME,
)
from rule_core.profiler.python_profiles.analysis import (
    PyinstrumentAnalysis as PyinstrumentAnalysis,
    PythonProfileAnalysis as PythonProfileAnalysis,
    cProfileAnalysis as cProfileAnalysis,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats as StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import (
    PyinstrumentStepStats as PyinstrumentStepStats,
    cProfileStats as cProfileStats,
)
from rule_core.profiler.python_profiles.types import (
    PythonProfileModes as PythonProfileModes,
    StepPhase as StepPhase,
)
