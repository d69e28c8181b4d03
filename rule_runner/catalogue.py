"""What the built-in rules are, as text for people."""

import inspect
from collections.abc import Iterable

from rule_runner.loader import load_builtin
from smdebug.rules.params import Param


def listing() -> Iterable[str]:
    """Yield a line for each built-in rule."""
    from builtin_rules import RULES  # noqa: PLC0415 - imports every rule

    width = max(map(len, RULES))
    for name, rule in RULES.items():
        summary = (inspect.getdoc(inspect.getmodule(rule)) or "").partition(": ")[2]
        yield f"{name:{width}}  {summary}"


def description(name: str) -> Iterable[str]:
    """Yield what a rule judges and reads, and its parameters.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    """
    loaded = load_builtin(name)
    yield loaded.name
    yield ""
    yield inspect.getdoc(loaded.rule_class) or ""
    yield ""
    yield f"Reads {loaded.rule_class.READS}"
    yield ""
    yield "Parameters:"
    for param in loaded.rule_class.PARAMS:
        yield from _parameter(param)


def _parameter(param: Param) -> Iterable[str]:
    facts = [param.type_name, param.range_text, param.unit, f"default {param.default_text}"]
    yield f"  {param.name} ({', '.join(filter(None, facts))})"
    yield f"      {param.meaning}"
