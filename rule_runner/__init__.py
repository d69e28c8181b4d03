"""The service: evaluates rules over the steps of a trial and tells the world what it found."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rule_runner import debugger
    from rule_runner.api import check, evaluate
    from rule_runner.commands.check.tables import CheckedTrial, CheckResult
    from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult

    __version__: str

_MODULES = {
    **dict.fromkeys(["CheckResult", "CheckedTrial"], "commands.check.tables"),
    **dict.fromkeys(["EvaluationResult", "Evidence", "RuleResult"], "results.schema"),
    **dict.fromkeys(["check", "evaluate"], "api"),
    "debugger": "debugger",
}
__all__ = [
    "CheckResult",
    "CheckedTrial",
    "EvaluationResult",
    "Evidence",
    "RuleResult",
    "__version__",
    "check",
    "debugger",
    "evaluate",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: the command line needs little of it."""
    if name == "__version__":
        from rule_runner.results.versions import version

        return version("rule-runner")
    if name in _MODULES:
        module = import_module(f"rule_runner.{_MODULES[name]}")
        return getattr(module, name, module)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of the API."""
    return __all__
