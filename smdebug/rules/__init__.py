"""Rules: small classes that judge one step of a trial."""

from smdebug.rules.evidence import Finding, Measured, Quantity
from smdebug.rules.page import Page
from smdebug.rules.rule import Rule
from smdebug.rules.rule_invoker import invoke_rule

__all__ = ["Finding", "Measured", "Page", "Quantity", "Rule", "invoke_rule"]
