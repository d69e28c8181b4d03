"""Shell completion of rule names, rule parameters, modes and AWS regions."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from click import Context, Parameter
from click.shell_completion import CompletionItem

from rule_runner.config.defaults import EVERY_RULE, FITTING_RULES, RuleMode
from rule_runner.errors import RuleRunnerError


def rule_names(_: Context, parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ``[ID=]NAME``: the name of a built-in rule."""
    from builtin_rules.rule_page import rule_summary
    from rule_runner.loading.loader import every_builtin
    from rule_runner.loading.rule_packages import rule_packages

    rule_id, equals, word = incomplete.rpartition("=")
    rules = every_builtin()
    words = {name: rule_summary(rules[name]) for name in rules if name.startswith(word)}
    packages = rule_packages(rules)
    words |= {name: f"Of package {rule.package}." for name, rule in packages.by_name.items()}
    if parameter.name == "rule":
        words[EVERY_RULE] = "Every built-in rule."
        words[FITTING_RULES] = "The built-in rules that fit the trial."
    return _items(words, word, rule_id + equals)


def rule_parameters(context: Context, _: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ``[ID.]KEY=VALUE`` with parameters of the preceding rules and their defaults."""
    from rule_runner.loading.loader import load_named

    rules = _rules(context)
    words = {}
    for rule_id, name in rules.items():
        with suppress(RuleRunnerError):
            for param in load_named(name).rule_class.PARAMS:
                prefix = f"{rule_id}." if len(rules) > 1 else ""
                words[f"{prefix}{param.name}={_default(param.default)}"] = param.meaning
    return _items(words, incomplete)


def modes(context: Context, _: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete ``[ID=]MODE``, with the IDs of the preceding rules."""
    words = [str(mode) for mode in RuleMode]
    words += [f"{rule_id}={mode}" for rule_id in _rules(context) for mode in RuleMode]
    return _items(dict.fromkeys(words, ""), incomplete)


def regions(_context: Context, _parameter: Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the name of an AWS region."""
    from rule_runner.images.aws_images import NAMES

    return _items(dict.fromkeys(sorted(NAMES), ""), incomplete)


def _rules(context: Context) -> dict[str, str]:
    """Return the names of the rules on the command line so far, by ID."""
    texts: Iterable[str] = context.params.get("rule") or ()
    pairs = [text.partition("=") for text in texts if text not in {EVERY_RULE, FITTING_RULES}]
    return {rule_id: name or rule_id for rule_id, _, name in pairs}


def _default(value: Any) -> str:
    """Return a default as a command line has it; "" if it cannot be written as text."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (int, float, str)) else ""


def _items(words: Mapping[str, str], incomplete: str, prefix: str = "") -> list[CompletionItem]:
    """Return the words that start with `incomplete`, each with its meaning."""
    return [
        CompletionItem(prefix + word, help=meaning or None)
        for word, meaning in words.items()
        if word.startswith(incomplete)
    ]
