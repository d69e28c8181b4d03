"""The evaluator of a training judges the rules that its command announced."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import told
import vanishing

from rule_core.severity import Severity
from rule_runner.commands.train.evaluator import Evaluator, EvaluatorResult
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.notify.event import RuleState
from rule_runner.results.status import FindingState, RuleStatus

BASELINE = Path(__file__).parents[3] / "builtin_rules/tensors/losses/baseline_of_ones.json"


def judged(tmp_path: Path, *rules: str, **more: Any) -> EvaluatorResult:
    """Judge a trial that has ended by rules that the command announced."""
    trial = vanishing.write_trial(tmp_path / "trial")
    output = tmp_path / "results"
    request = EvaluationRequest(
        trial=str(trial), output=str(output), rules=(RuleRequest(name="auto"),), **more
    )
    evaluator = Evaluator(request, rules, lambda _: None)
    return asyncio.run(evaluator.run())


def test_a_rule_that_fits_no_more_is_judged_as_announced(tmp_path: Path) -> None:
    result = judged(tmp_path, "VanishingGradient", "TreeDepth")
    assert [rule.outcome for rule in result.rules] == ["IssuesFound", "NotEvaluated"]
    assert [incident.root for incident in result.result.incidents] == ["VanishingGradient"]
    assert result.problem == ""


def test_an_issue_that_has_recovered_is_not_reported(tmp_path: Path) -> None:
    reported: list[tuple[str, str | None, str | None]] = []
    evaluator = Evaluator(
        EvaluationRequest(output=str(tmp_path)),
        (),
        lambda rule: reported.append((rule.configuration_name, rule.summary, rule.advice)),
    )
    held = RuleState("Loss", RuleStatus.ISSUES_FOUND, severity=Severity.ERROR)
    held = replace(held, summary="It is up.", advice="Mend.", finding_state=FindingState.OPEN)
    back = replace(held, configuration_name="Back", finding_state=FindingState.RECOVERED)
    for event in (told.told(held, back, changed=("Loss", "Back")), told.told(held)):
        evaluator._report(json.dumps(event).encode())
    assert reported == [("Loss", "It is up.", "Mend.")]


def test_a_baseline_is_one_more_rule(tmp_path: Path) -> None:
    rules = ("VanishingGradient", "Baseline")  # as the command announces them
    result = judged(tmp_path, *rules, baseline=str(BASELINE))
    assert [rule.configuration_name for rule in result.rules] == [*rules]
    assert result.rules[1].parameters["baseline"] == str(BASELINE)
    assert result.problem == ""


def test_missing_results_are_a_problem(tmp_path: Path) -> None:
    result = judged(tmp_path, "VanishingGradient", "NoSuchRule")
    assert result.problem.startswith("The evaluator ended with exit code ")
    assert result.problem.endswith(" before all verdicts.")
