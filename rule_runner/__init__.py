"""The service: evaluates rules over the steps of a trial and tells the world what it found."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rule_runner.api import evaluate

__all__ = ["evaluate"]


def __getattr__(name: str) -> Any:
    """Import what is asked for only then: the command line needs little of it."""
    if name == "evaluate":
        from rule_runner.api import evaluate

        return evaluate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
