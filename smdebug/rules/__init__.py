"""Rules: small classes that judge one step of a trial."""

from smdebug.rules.rule import Finding, Measurement, Page, Quantity, Rule
from smdebug.rules.rule_invoker import invoke_rule

__all__ = ["Finding", "Measurement", "Page", "Quantity", "Rule", "invoke_rule"]
