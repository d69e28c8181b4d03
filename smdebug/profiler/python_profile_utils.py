"""Modes, phases, profilers and timers of Python profiles, and their names in files."""

from rule_core.profiler.files.constants import CPROFILE_NAME, PYINSTRUMENT_NAME
from rule_core.profiler.python_profiles.types import (
    PythonProfileModes,
    PythonProfilerName,
    StepPhase,
    cProfileTimer,
    cpu_time,
    mode_keys_to_python_profile_mode,
    off_cpu_time,
    python_profile_mode_to_str,
    str_to_python_profile_mode,
    total_time,
)

__all__ = [
    "CPROFILE_NAME",
    "PYINSTRUMENT_NAME",
    "PythonProfileModes",
    "PythonProfilerName",
    "StepPhase",
    "cProfileTimer",
    "cpu_time",
    "mode_keys_to_python_profile_mode",
    "off_cpu_time",
    "python_profile_mode_to_str",
    "str_to_python_profile_mode",
    "total_time",
]
