"""What the built-in rules are, for people at a terminal."""

import sys
from collections.abc import Iterable

from rule_runner.loader import every_builtin
from rule_runner.pages import page, sentence


def listing() -> Iterable[str]:
    """Yield a line for each built-in rule."""
    rules = every_builtin()
    width = max(map(len, rules))
    for name, rule in rules.items():
        yield f"{name:{width}}  {sentence(rule)}"


def show(name: str) -> None:
    """Print the page of a built-in rule: set on a terminal, as Markdown elsewhere.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    """
    text = page(name)
    if not sys.stdout.isatty():
        print(text, end="")  # noqa: T201 - stdout carries results
        return
    from rich.console import Console  # noqa: PLC0415 - a terminal only
    from rich.markdown import Markdown  # noqa: PLC0415

    Console().print(Markdown(text))
