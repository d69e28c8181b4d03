"""Unchanged PyTorch scripts under `rule-runner train`: healthy, and with a fault put in."""

import sys
from pathlib import Path
from typing import Any

import pytest
import saved
import training_scripts

pytest.importorskip("torch", reason="torch is not installed.")
SCRIPT = """
import sys
import torch
from torch import nn

depth, rate, steps = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
activation = nn.Sigmoid if depth > 4 else nn.ReLU
torch.manual_seed(0)
layers = [nn.Linear(10, 16)]
for _ in range(depth):
    layers += [activation(), nn.Linear(16, 16)]
model = nn.Sequential(*layers, nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=rate)
criterion = nn.CrossEntropyLoss() if rate < 100 else lambda found, y: found[:, 0].pow(4).mean()
for step in range(steps):
    x = torch.randn(64, 10)
    loss = criterion(model(x), (x.sum(1) > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step < 150:
        print(step, loss.item())
print("the end")
"""
ENDLESS = "1000000000"


def trained(tmp_path: Path, *options: str, words: list[str]) -> Any:
    (tmp_path / "script.py").write_text(SCRIPT)
    chosen = ["--output", "out", *options]
    return training_scripts.train(tmp_path, chosen, [sys.executable, "script.py", *words])


def outcomes(tmp_path: Path) -> dict[str, tuple[str, bool]]:
    """Return verdict and whether all steps were judged until then, by rule."""
    found = {}
    for result in saved.results(tmp_path / "out" / "results").values():
        found[result["rule"]] = (result["outcome"], result["trial_ended"])
    return found


def test_healthy_training_is_untouched(tmp_path: Path) -> None:
    words = ["1", "0.1", "150"]
    done = trained(tmp_path, "--stop-on-finding", words=words)
    alone = training_scripts.python(tmp_path, f"import sys\nsys.argv[1:] = {words}\n{SCRIPT}", {})
    assert (done.returncode, done.stdout) == (0, alone.stdout)
    verdicts = outcomes(tmp_path)
    judged = (
        *("ExplodingTensor", "LossNotDecreasing", "ProbabilitiesAsLogits", "VanishingGradient"),
    )
    assert {verdicts[rule] for rule in judged} == {("NoIssuesFound", True)}
    assert {outcome for outcome, _ in verdicts.values()} == {"NoIssuesFound", "NotEvaluated"}


@pytest.mark.parametrize(
    ("rule", "issue", "words"),
    [
        pytest.param("VanishingGradient", "a warning", ["12", "0.1", ENDLESS], id="deep-sigmoid"),
        pytest.param(
            *("ExplodingTensor", "an issue", ["1", "1e6", ENDLESS]),
            id="huge-learning-rate",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_faulty_training_is_caught_and_stopped(
    tmp_path: Path, rule: str, issue: str, words: list[str]
) -> None:
    done = trained(tmp_path, "--stop-on-finding", "--stop-on", "warning", words=words)
    assert done.returncode == 10
    assert f"rule-runner: {rule} has found {issue}: the training is stopped. " in done.stderr
    assert "the end" not in done.stdout
    assert outcomes(tmp_path)[rule][0] == "IssuesFound"
