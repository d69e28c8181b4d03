"""The evaluator of a training judges the rules that its command announced."""

import asyncio
from pathlib import Path

import vanishing

from rule_runner.commands.train.evaluator import Evaluator, EvaluatorResult
from rule_runner.config.request import EvaluationRequest, RuleRequest


def judged(tmp_path: Path, *rules: str) -> EvaluatorResult:
    """Judge a trial that has ended by rules that the command announced."""
    trial = vanishing.write_trial(tmp_path / "trial")
    output = tmp_path / "results"
    request = EvaluationRequest(
        trial=str(trial), output=str(output), rules=(RuleRequest(name="auto"),)
    )
    evaluator = Evaluator(request, rules, lambda _: None)
    return asyncio.run(evaluator.run())


def test_a_rule_that_fits_no_more_is_judged_as_announced(tmp_path: Path) -> None:
    result = judged(tmp_path, "VanishingGradient", "TreeDepth")
    assert [rule.outcome for rule in result.rules] == ["IssuesFound", "NotEvaluated"]
    assert result.problem == ""


def test_missing_results_are_a_problem(tmp_path: Path) -> None:
    result = judged(tmp_path, "VanishingGradient", "NoSuchRule")
    assert result.problem.startswith("The evaluator ended with exit code ")
    assert result.problem.endswith(" before all verdicts.")
