"""The contract of a rule container: parameters as text, ranges of steps, statuses and messages."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from rule_runner.cli import main
from smdebug import modes
from smdebug.core.writer import TrialWriter

pytestmark = pytest.mark.usefixtures("sigterm_restored")
CUSTOM = """
from smdebug.rules.rule import Rule
class Mine(Rule):
    def __init__(self, base_trial, threshold="0.25"):
        super().__init__(base_trial)
        self.threshold = float(threshold)
    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step)[0] < self.threshold
"""
# A file of the job beside the environment: what is met, and at which step.
JUDGED: dict[str, tuple[dict[str, str], str, int | None]] = {
    "a built-in rule": ({"rule_to_invoke": "VanishingGradient"}, "IssuesFound", 8),
    "its parameter": (
        {"rule_to_invoke": "VanishingGradient", "threshold": "1e-3"},
        "IssuesFound",
        4,
    ),
    "a parameter without a value": (
        {"rule_to_invoke": "VanishingGradient", "threshold": ""},
        "IssuesFound",
        8,
    ),
    "a parameter of None": (
        {"rule_to_invoke": "VanishingGradient", "threshold": "None"},
        "IssuesFound",
        8,
    ),
    "no issue": (
        {"rule_to_invoke": "VanishingGradient", "threshold": "0"},
        "NoIssuesFound",
        None,
    ),
    "a later start": (
        {"rule_to_invoke": "VanishingGradient", "start_step": "9"},
        "IssuesFound",
        9,
    ),
    "an earlier end, which is exclusive": (
        {"rule_to_invoke": "VanishingGradient", "end_step": "8"},
        "NoIssuesFound",
        None,
    ),
    "a custom rule": ({"rule_to_invoke": "Mine", "source_s3_uri": "rule.py"}, "IssuesFound", 8),
    "a custom rule's text": (
        {"rule_to_invoke": "Mine", "source_s3_uri": "rule.py", "threshold": "0.55"},
        "IssuesFound",
        5,
    ),
    "an unknown parameter of a custom rule": (
        {"rule_to_invoke": "Mine", "source_s3_uri": "rule.py", "limit": "0.55"},
        "IssuesFound",
        8,
    ),
    **{
        f"only_nan of {text}": (
            {"rule_to_invoke": "ExplodingTensor", "collection_names": "losses", "only_nan": text},
            "NoIssuesFound",
            None,
        )
        for text in ("True", "true", "TRUE", "1", "yes", "False", "false", "0", "no")
    },
}
REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "a number that is none": ({"threshold": "abc"}, "threshold"),
    "not a number": ({"threshold": "nan"}, "threshold"),
    "infinity": ({"threshold": "inf"}, "threshold"),
    "an unknown parameter": ({"treshold": "1"}, "Did you mean 'threshold'"),
    "an unknown rule": ({"rule_to_invoke": "VanishingGradent"}, "Did you mean 'VanishingGradient'"),
    "a range that is none": ({"start_step": "x"}, "start_step"),
    "actions that are none": ({"action_json": "{"}, "Actions must be JSON"),
    "a class that is not there": (
        {"rule_to_invoke": "Other", "source_s3_uri": "rule.py"},
        "No class 'Other'",
    ),
    "a file that is not there": (
        {"rule_to_invoke": "Mine", "source_s3_uri": "nothing.py"},
        "nothing.py",
    ),
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RULE_RUNNER_ROOT", str(tmp_path))
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rule.py").write_text(CUSTOM)
    groups = {"losses": "loss", "gradients": "^gradient"}
    with TrialWriter(tmp_path / "processing/input/tensors", collections=groups) as writer:
        for step in range(10):
            gradient = np.full((2, 2), 10.0**-step * 2)
            tensors = {"loss": np.array([(10 - step) / 10]), "gradient/w": gradient}
            writer.step(step, tensors, mode=modes.TRAIN)
    return tmp_path


def evaluate(root: Path, environment: dict[str, str]) -> tuple[int, str, dict[str, Any]]:
    """Return the exit code, the message and the result of a job with these parameters."""
    config = root / "config" / "processingjobconfig.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"ProcessingJobName": "job", "Environment": environment}))
    code = CliRunner().invoke(main, []).exit_code
    message, result = root / "output/message", root / "processing/output/rule/results.json"
    return (
        code,
        message.read_text() if message.exists() else "",
        json.loads(result.read_text())["rules"][0] if result.exists() else {},
    )


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_judged(root: Path, name: str) -> None:
    environment, status, step = JUDGED[name]
    code, message, result = evaluate(root, environment)
    assert (code, result["status"], result["step"]) == (0, status, step)
    rule = environment["rule_to_invoke"]
    assert message == (
        ""
        if step is None
        else (
            f"RuleEvaluationConditionMet: Evaluation of the rule {rule} at step {step} "
            "resulted in the condition being met\n"
        )
    )


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(root: Path, name: str) -> None:
    environment, said = REFUSED[name]
    code, message, _ = evaluate(root, {"rule_to_invoke": "VanishingGradient", **environment})
    assert code == 1
    assert message.startswith("ClientError: ")
    assert said in message
    assert len(message) <= 1024
