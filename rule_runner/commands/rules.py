"""rules: lists and describes the built-in rules."""

import sys
from collections.abc import Iterable

from rule_runner.loading.loader import every_builtin
from rule_runner.report.rule_pages import page, sentence


def listing() -> Iterable[str]:
    """Yield a line for each built-in rule."""
    rules = every_builtin()
    width = max(map(len, rules))
    for name, rule in rules.items():
        yield f"{name:{width}}  {rule.SEVERITY:7}  {sentence(rule)}"


def show(name: str) -> None:
    """Print the page of a built-in rule: formatted on a terminal, as Markdown elsewhere.

    Raises
    ------
    UnknownRuleError
        If the rule does not exist.
    """
    text = page(name)
    if not sys.stdout.isatty():
        print(text, end="")
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))
