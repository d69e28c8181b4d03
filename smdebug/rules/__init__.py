"""Rules: small classes that evaluate one step of a trial at a time."""

from rule_core.rules.invoke_rule import invoke_rule
from rule_core.rules.rule import Rule

__all__ = ["Rule", "invoke_rule"]
