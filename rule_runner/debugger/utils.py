"""The Python profilers, and the timers of cProfile."""

from enum import Enum


class PythonProfiler(Enum):
    """A profiler of Python functions."""

    CPROFILE = "cprofile"
    PYINSTRUMENT = "pyinstrument"


class cProfileTimer(Enum):  # noqa: N801 - the documented name
    """What cProfile measures; `DEFAULT` is each of the others, one step each."""

    TOTAL_TIME = "total_time"
    CPU_TIME = "cpu_time"
    OFF_CPU_TIME = "off_cpu_time"
    DEFAULT = "default"
