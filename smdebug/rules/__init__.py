"""Rules: small classes that judge one step of a trial."""

from rule_core.rules.invoke_rule import invoke_rule
from rule_core.rules.rule import Rule

__all__ = ["Rule", "invoke_rule"]
