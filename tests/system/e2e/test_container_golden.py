"""The container's contract: what it tells the platform stays the same to the byte.

``tests/golden/container.json`` is what ``seen`` returned for the version before findings could
recover. It holds, for each trial and rule, the exit code, the message file, and the statuses in
results and events.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from rule_runner.cli import main
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

GOLDEN = Path(__file__).parents[2] / "golden" / "container.json"
EXPECTED = json.loads(GOLDEN.read_text("utf-8"))
STEPS = 400
VARYING = {"LastModifiedTime", "EvaluationLagSeconds"}
CUSTOM = """
from smdebug.rules import Rule
class Above(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = float(limit)
    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step) > self.limit
"""


def losses(kind: str) -> np.ndarray:
    """Return the training loss of each step."""
    steps = np.arange(STEPS)
    loss = 2.3 * np.exp(-steps / 60) + 0.3 + 0.01 * np.random.default_rng(0).random(STEPS)
    if kind == "spike":
        loss[200:206] += 40
    elif kind == "diverged":
        loss[200:] += np.linspace(0, 50, STEPS - 200)
    elif kind == "infinite":
        loss[300:] = np.nan
    return loss


def write_trial(path: Path, kind: str) -> None:
    """Write a trial of one kind of training: a loss and a gradient that vanishes at step 100."""
    collections = {"losses": "loss", "gradients": "^gradient", "weights": "^weight"}
    with TrialWriter(path, collections=collections) as writer:
        for step, loss in enumerate(losses(kind)):
            gradient = 1e-9 if kind == "vanishing" and step >= 100 else 0.1
            tensors = {
                "loss": np.array([loss]),
                "gradient/w": np.full((4, 4), gradient),
                "weight/w": np.eye(4) * (1 + step / 100),
            }
            writer.step(step, tensors, mode=ModeKeys.TRAIN)
            if step % 20 == 19:
                evaluation = loss + (step / 100 if kind == "overfit" and step < 300 else 0)
                tensors = {"loss": np.array([evaluation])}
                writer.step(step, tensors, mode=ModeKeys.EVAL)


KINDS = ("healthy", "spike", "diverged", "infinite", "vanishing", "overfit")
JUDGING = {
    "LossNotDecreasing": {"rule_to_invoke": "LossNotDecreasing"},
    "ExplodingTensor": {"rule_to_invoke": "ExplodingTensor"},
    "VanishingGradient": {"rule_to_invoke": "VanishingGradient"},
    "Overfit": {"rule_to_invoke": "Overfit"},
    "LossSpike": {"rule_to_invoke": "LossSpike"},
    "Custom": {"source_s3_uri": "rule.py", "rule_to_invoke": "Above", "limit": "20"},
}
FAILING = {
    "AllZero": {"rule_to_invoke": "AllZero", "collection_names": "losses"},
    "Confusion": {"rule_to_invoke": "Confusion"},
    "Misspelt": {"rule_to_invoke": "LossNotDecreasin"},
    "Invalid": {"source_s3_uri": "rule.py", "rule_to_invoke": "Above", "limit": "much"},
}
JOBS = JUDGING | FAILING


def observed(root: Path, job: str) -> dict[str, Any]:
    """Run the container's command over a trial, and return what the platform sees of it."""
    (root / "rule.py").write_text(CUSTOM)
    for written in ("output", "processing/output"):
        shutil.rmtree(root / written, ignore_errors=True)
    environment = {"RULE_RUNNER_ROOT": str(root), **JOBS[job]}
    if "source_s3_uri" in environment:
        environment["source_s3_uri"] = str(root / "rule.py")
    done = CliRunner().invoke(main, [], env=environment)
    message, output = root / "output" / "message", root / "processing/output/rule"
    written = {
        name: (output / name).read_text("utf-8") if (output / name).exists() else ""
        for name in ("results.json", "events.jsonl")
    }
    results = json.loads(written["results.json"] or '{"rules": []}')["rules"]
    events = map(json.loads, written["events.jsonl"].splitlines())
    found = {
        "exit_code": done.exit_code,
        "message": message.read_text("utf-8") if message.exists() else None,
        "results": [
            [rule[key] for key in ("status", "status_details", "step")] for rule in results
        ],
        "events": [
            [
                [content for key, content in one.items() if key not in VARYING]
                for one in event["detail"]["DebugRuleEvaluationStatuses"]
            ]
            for event in events
        ],
    }
    told: dict[str, Any] = json.loads(json.dumps(found).replace(str(root), "ROOT"))
    return told


def seen(root: Path, kind: str) -> dict[str, Any]:
    """Return what the platform sees of each job over one kind of training."""
    write_trial(root / "processing/input/tensors", kind)
    return {job: observed(root, job) for job in (*JUDGING, *(FAILING if kind == "spike" else ()))}


@pytest.mark.usefixtures("sigterm_restored")
@pytest.mark.parametrize("kind", KINDS)
def test_the_platform_sees_what_it_saw_before_findings_recovered(tmp_path: Path, kind: str) -> None:
    assert seen(tmp_path, kind) == EXPECTED[kind]
