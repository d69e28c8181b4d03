"""Rules: small classes that judge one step of a trial."""

from smdebug.rules.rule import Finding, Rule
from smdebug.rules.rule_invoker import invoke_rule

__all__ = ["Finding", "Rule", "invoke_rule"]
