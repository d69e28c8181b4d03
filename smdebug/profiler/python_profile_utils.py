"""Modes, phases, profilers and timers of Python profiles, and their names in files."""

from rule_core.profiler.files.constants import (
    CPROFILE_NAME as CPROFILE_NAME,
    PYINSTRUMENT_NAME as PYINSTRUMENT_NAME,
)
from rule_core.profiler.python_profiles.types import (
    PythonProfileModes as PythonProfileModes,
    PythonProfilerName as PythonProfilerName,
    StepPhase as StepPhase,
    cProfileTimer as cProfileTimer,
    cpu_time as cpu_time,
    mode_keys_to_python_profile_mode as mode_keys_to_python_profile_mode,
    off_cpu_time as off_cpu_time,
    python_profile_mode_to_str as python_profile_mode_to_str,
    str_to_python_profile_mode as str_to_python_profile_mode,
    total_time as total_time,
)
