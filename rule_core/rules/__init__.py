"""Rules: small classes that evaluate one step of a trial at a time."""

from rule_core.rules.doc_page import Page
from rule_core.rules.evidence import Finding, Measured, Quantity
from rule_core.rules.invoke_rule import invoke_rule
from rule_core.rules.rule import Rule
from rule_core.severity import Severity

__all__ = ["Finding", "Measured", "Page", "Quantity", "Rule", "Severity", "invoke_rule"]
