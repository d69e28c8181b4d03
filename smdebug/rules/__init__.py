"""Rules: small classes that evaluate one step of a trial at a time."""

from rule_core.absent_names import absent_names
from rule_core.rules.invoke_rule import invoke_rule as invoke_rule
from rule_core.rules.rule import Rule as Rule

__getattr__ = absent_names(
    __name__, {"create_rule": "rule-runner evaluate --rule NAME, or rule_runner.evaluate"}
)
