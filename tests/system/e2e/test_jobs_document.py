"""docs/jobs.md: its requests, its Python file and its Python are run."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from rule_runner.cli import main
from rule_runner.config.documents import DEPTH, LIMIT, NODES, parse_yaml
from rule_runner.config.job_file.definition import definition_of
from rule_runner.config.sagemaker_contract import contract_of, is_platform, is_reserved
from smdebug.core.writer import TrialWriter

TEXT = (Path(__file__).parents[3] / "docs" / "jobs.md").read_text()
RULE = """
from smdebug.rules import Rule

class LossCheck(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = float(limit)

    def invoke_at_step(self, step):
        return self.base_trial.tensor("loss").value(step) < self.limit
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand where the document stands: beside a trial and a rule."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "loss_check.py").write_text(RULE)
    with TrialWriter(
        tmp_path / "runs" / "mnist", collections={"gradients": "^gradient", "losses": "loss"}
    ) as writer:
        for step in range(30):
            tensors = {"gradient/w": np.full(3, 10.0**-step, np.float32), "loss": 1 / (step + 1)}
            writer.step(step, tensors)


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)[number]


def lines(*arguments: str) -> list[str]:
    return CliRunner().invoke(main, ["evaluate", *arguments]).stdout.splitlines()


def test_the_request(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(block("yaml"))
    found = lines("--job", "job.yaml", "--trial", "runs/mnist", "--output", "out")
    assert found[0] == "Gradients (VanishingGradient): IssuesFound at step 8 (warning)"
    assert found[3] == "LossCheck: IssuesFound at step 2 (observed)"
    trial = definition_of(parse_yaml(block("yaml")), "the job").trial
    assert trial == "s3://my-training/jobs/mnist-42/debug-output"


def test_what_check_says(tmp_path: Path) -> None:
    rules = """
  - {RuleConfigurationName: Loss, RuleParameters: {rule_to_invoke: LossNotDecreasing, num_step: 1}}
ProfilerRuleConfigurations:
  - {RuleConfigurationName: Report, RuleParameters: {rule_to_invoke: ProfilerReport}}
"""
    (tmp_path / "job.yaml").write_text(block("yaml").rstrip() + rules)
    said = [line.removesuffix("...") for line in block("text").splitlines()]
    found = lines("--job", "job.yaml", "--check")
    assert len(found) == len(said)
    assert [line[: len(one)] for line, one in zip(found, said, strict=True)] == said


def test_the_python_file(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text(block("python"))
    given = ["--job", "rules.py", "--trial", "runs/mnist", "--output", "out", "--dry-run"]
    found = lines(*given, "--training-job-name", "mnist-42")
    assert found[0] == "Gradients (VanishingGradient): IssuesFound at step 8 (warning)"
    assert found[3] == "LossNotDecreasing: NoIssuesFound"


def test_the_python(capsys: pytest.CaptureFixture[str]) -> None:
    exec(block("python", 1), {})
    assert capsys.readouterr().out == "Gradients IssuesFound 8\n"


def test_names_that_are_no_parameters() -> None:
    table = TEXT.partition("These are not passed to the rule:")[2].partition("Values are")[0]
    names = re.findall(
        r"`([A-Za-z0-9_*]+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.MULTILINE))
    )
    assert len(names) == 18
    for name in names:
        given = name.replace("*", "X")
        assert is_reserved(given) or is_platform(given), name
    assert contract_of({"other_trials": "a, b"}).other_trials == ("a", "b")


def test_limits() -> None:
    assert (LIMIT, DEPTH, f"{NODES:,}") == (1 << 20, 64, "100,000")
    assert "at most 1 MiB and 64 levels" in TEXT
    assert f"{NODES:,} values" in TEXT
