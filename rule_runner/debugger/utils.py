"""The Python profilers, and the timers of cProfile."""

from enum import Enum

from rule_core.profiler.python_profiles.types import cProfileTimer as cProfileTimer


class PythonProfiler(Enum):
    """A profiler of Python functions."""

    CPROFILE = "cprofile"
    PYINSTRUMENT = "pyinstrument"
