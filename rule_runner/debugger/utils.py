"""The enumerations, under the same path as in the SDK."""

from rule_runner.debugger.profiler_enums import PythonProfiler, cProfileTimer

__all__ = ["PythonProfiler", "cProfileTimer"]
