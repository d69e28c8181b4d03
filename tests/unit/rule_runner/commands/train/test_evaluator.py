"""The evaluator of a training, which may choose its rules by the trial."""

import asyncio
from pathlib import Path

import pytest
import vanishing

from rule_runner.commands.train.evaluator import Evaluator
from rule_runner.config.request import EvaluationRequest, RuleRequest


@pytest.mark.parametrize(
    ("rule", "problem"),
    [("auto", ""), ("VanishingGradient", "The evaluator ended with exit code 0 before all")],
)
def test_rules_that_do_not_fit_owe_no_verdict(tmp_path: Path, rule: str, problem: str) -> None:
    trial = vanishing.write_trial(tmp_path / "trial")
    output = tmp_path / "results"
    request = EvaluationRequest(
        trial=str(trial), output=str(output), rules=(RuleRequest(name=rule),)
    )
    folders = [output / "VanishingGradient", output / "TreeDepth"]
    result = asyncio.run(Evaluator(request, folders, lambda _: None).run())
    assert result.problem.startswith(problem)
    assert bool(result.problem) == bool(problem)
