"""The service: evaluates rules over the steps of a trial and tells the world what it found."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rule_runner import debugger
    from rule_runner.api import check, evaluate
    from rule_runner.commands.check.tables import CheckedTrial, CheckResult
    from rule_runner.results.schema import EvaluationResult, Evidence, RuleResult

    __version__: str

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
    if name in {"check", "evaluate"}:
        from rule_runner import api

        return getattr(api, name)
    if name in {"CheckResult", "CheckedTrial"}:
        from rule_runner.commands.check import tables

        return getattr(tables, name)
    if name in {"EvaluationResult", "Evidence", "RuleResult"}:
        from rule_runner.results import schema

        return getattr(schema, name)
    if name == "debugger":
        import rule_runner.debugger

        return rule_runner.debugger
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the names of the API."""
    return __all__
