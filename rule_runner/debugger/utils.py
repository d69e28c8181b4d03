"""The enumerations under the path that the SDK has for them."""

from rule_runner.debugger.profiler_enums import PythonProfiler, cProfileTimer

__all__ = ["PythonProfiler", "cProfileTimer"]
