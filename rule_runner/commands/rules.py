"""rules: lists and describes the built-in rules, and those of installed packages."""

import sys
from collections.abc import Iterable

from builtin_rules.rule_page import rule_summary
from rule_runner.escape import print_lines
from rule_runner.loading.loader import every_builtin
from rule_runner.loading.rule_packages import rule_packages
from rule_runner.report.rule_pages import page
from rule_runner.report.tables import TextTable, aligned


def listing() -> Iterable[str]:
    """Yield a line for each built-in rule, and for each rule of a package, without importing it.

    Rules of packages that cannot be named are reported on standard error.
    """
    rules = every_builtin()
    packages = rule_packages(rules)
    rows = [(name, str(rule.SEVERITY), rule_summary(rule)) for name, rule in rules.items()]
    rows += [(name, "", f"Of package {rule.package}.") for name, rule in packages.by_name.items()]
    yield from aligned(TextTable((), rows))
    print_lines(packages.problems.values(), sys.stderr)


def show(name: str) -> None:
    """Print the page of a rule: formatted on a terminal, as Markdown elsewhere.

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
