"""A rule that hangs is stopped and ends as Error; eleven others find what they find without it."""

import json
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
import rawtrial
from click.testing import CliRunner

from rule_runner.cli import main

PATTERNS = {
    "losses": ["loss"],
    "gradients": ["^gradient"],
    "weights": ["weight"],
    "relu_output": ["relu"],
}
ELEVEN = (
    "VanishingGradient",
    "ExplodingTensor",
    "AllZero",
    "TensorVariance",
    "UnchangedTensor",
    "WeightUpdateRatio",
    "DeadRelu",
    "SaturatedActivation",
    "PoorWeightInitialization",
    "LossNotDecreasing",
    "Overtraining",
)
PARAMETERS = (
    "VanishingGradient.threshold=1e-3",
    "AllZero.collection_names=weights",
    "TensorVariance.collection_names=weights",
    "TensorVariance.max_threshold=1.5",
    "UnchangedTensor.tensor_regex=weight",
    "LossNotDecreasing.num_steps=2",
)
HANGS = """
import re
from smdebug.rules import Rule

class Hangs(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        if step == 3:
            re.match("(a+)+$", "a" * 60 + "b")  # holds the interpreter's lock meanwhile
        return False
"""


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    random = np.random.default_rng(0)
    steps = {
        step: {
            "loss": np.full(1, 1 / (step + 1), "f4"),
            "gradient/a": random.normal(size=(8, 8)).astype("f4") * (1e-9 if step > 4 else 1),
            "a.weight": random.normal(size=(8, 8)).astype("f4"),
            "b.weight": np.full((4, 4), min(step, 4), "f4"),
            "relu_output": random.normal(size=(8, 8)).astype("f4"),
        }
        for step in range(12)
    }
    return rawtrial.write(tmp_path / "trial", evaluating.trial(steps, PATTERNS))


def verdicts(*arguments: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Return the exit code of evaluate, and what it says of each rule."""
    done = CliRunner().invoke(main, ["evaluate", "--format=json", *arguments])
    rules = json.loads(done.stdout)["rules"]
    names = ("status", "outcome", "status_details", "step", "evidence", "coverage", "notes")
    return done.exit_code, {
        one["configuration_name"]: {name: one[name] for name in names} for one in rules
    }


def test_hanging_rule_is_stopped_while_eleven_others_finish(tmp_path: Path, trial: Path) -> None:
    source = tmp_path / "hangs.py"
    source.write_text(HANGS)
    builtin = [f"--trial={trial}", *(f"--rule={one}" for one in ELEVEN)]
    builtin += [f"--param={one}" for one in PARAMETERS]
    _, alone = verdicts(*builtin, f"--output={tmp_path / 'eleven'}")
    limited = ("--rule-timeout=3", "--isolate=process", f"--output={tmp_path / 'twelve'}")
    code, found = verdicts(*builtin, f"--source=hangs={source}", *limited)
    hanging = found.pop("hangs")
    assert (code, hanging["outcome"], hanging["coverage"]["judged"]) == (1, "Error", 3)
    assert hanging["status_details"] == "ClientError: Rule 'Hangs' took longer than 3 s at step 3."
    assert found == alone
    assert sorted({one["outcome"] for one in alone.values()}) == [
        "IssuesFound",
        "NoIssuesFound",
        "NotEvaluated",
    ]
