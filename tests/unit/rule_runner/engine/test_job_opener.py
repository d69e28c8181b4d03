"""The fingerprint of a rule job: what a restart must not have changed."""

from pathlib import Path
from typing import Any

import pytest

from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.job_opener import fingerprint
from rule_runner.loading.parameters import bind

RULE = (
    "from smdebug.rules import Rule\nclass Mine(Rule):\n    def invoke_at_step(self, step): ...\n"
)
BEFORE: dict[str, Any] = {
    "trial": "/t",
    "other_trials": ("/u",),
    "rules": (RuleRequest("r", "LossNotDecreasing"),),
    "parameters": ("num_steps=1", "diff_percent=2"),
    "end_step": 9,
}


def fingerprint_of(**fields: Any) -> str:
    config = resolve(EvaluationRequest(**BEFORE | fields))
    (rule,) = config.rules
    return fingerprint(config, rule, bind(rule.loaded, rule.parameters))


@pytest.mark.parametrize(
    "change",
    [
        {"rules": (RuleRequest("r", "ExplodingTensor"),), "parameters": ()},
        {"rules": (RuleRequest("s", "LossNotDecreasing"),)},
        {"parameters": ("num_steps=1",)},
        {"parameters": ("num_steps=2", "diff_percent=2")},
        {"parameters": (*BEFORE["parameters"], "increase_threshold_percent=5")},
        {"trial": "/u", "other_trials": ("/t",)},
        {"other_trials": ()},
        {"start_step": 0},
        {"end_step": None},
        {"keep_going": True},
        {"min_coverage": 0.5},
    ],
    ids=str,
)
def test_another_rule_job_has_another_fingerprint(change: dict[str, Any]) -> None:
    assert fingerprint_of() != fingerprint_of(**change)


def test_the_order_of_parameters_does_not_count() -> None:
    assert fingerprint_of() == fingerprint_of(parameters=("diff_percent=2", "num_steps=1"))


def test_the_content_of_the_rule_counts(tmp_path: Path) -> None:
    prints = set()
    for text in (RULE, RULE + "# other\n"):
        (tmp_path / "mine.py").write_text(text)
        rule = RuleRequest("r", source=str(tmp_path / "mine.py"))
        prints.add(fingerprint_of(rules=(rule,), parameters=()))
    assert len(prints) == 2
