"""A package of rules, installed by pip: its rules run by name, as built-in ones do."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import packaged_rules
import pytest

from rule_core.saving.trial_writer import TrialWriter

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("package")
    return packaged_rules.install(packaged_rules.write(folder / "source"), folder / "target")


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("trial")
    with TrialWriter(root, collections={"losses": "loss"}) as writer:
        for step, loss in enumerate((1.0, 9.0, 30.0)):
            writer.step(step, {"loss": np.array([loss])})
    return root


def run(target: Path, *arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "rule_runner", *arguments],
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{target}"},
        capture_output=True,
        text=True,
        check=False,
        cwd=target.parent,
    )


def judged(target: Path, trial: Path, *arguments: str) -> Any:
    done = run(target, "evaluate", "--trial", trial, "--no-wait", "--format", "json", *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rules"]


@pytest.mark.parametrize("isolate", ["none", "process"])
def test_its_rules_run_by_name_beside_built_in_ones(
    target: Path, trial: Path, isolate: str
) -> None:
    rules = judged(
        *(target, trial, "--rule", "LossTooHigh", "--rule", "low=LossTooHigh"),
        *("--rule", "PlainRule", "--rule", "ExplodingTensor", "--isolate", isolate),
        *("-p", "low.threshold=5"),
    )
    assert {rule["configuration_name"]: (rule["outcome"], rule["step"]) for rule in rules} == {
        "LossTooHigh": ("IssuesFound", 2),
        "low": ("IssuesFound", 1),
        "PlainRule": ("NoIssuesFound", None),
        "ExplodingTensor": ("NoIssuesFound", None),
    }
    source = next(rule["source"] for rule in rules if rule["configuration_name"] == "low")
    assert source["location"] == "acme-rules 1.2 (acme_rules.losses:LossTooHigh)"


def test_it_is_listed_without_being_imported_and_its_page_is_shown(target: Path) -> None:
    listed = run(target, "rules", "list")
    assert [line.split() for line in listed.stdout.splitlines()[-3:]] == [
        [name, "Of", "package", "acme-rules", "1.2."]
        for name in ("Broken", "LossTooHigh", "PlainRule")
    ]
    assert listed.stderr == (
        "Rule 'Overfit' of package acme-rules 1.2 (acme_rules.losses:Overfit) is ignored: a "
        "built-in rule has this name.\n"
    )
    page = run(target, "rules", "show", "losstoohigh").stdout
    assert page.startswith("# LossTooHigh\n\nA loss is above a limit.\n")
    for text in ("Losses above this.", "`10.0`", "It may recover.", "Lower the rate."):
        assert text in page


def test_wrong_parameters_are_errors_before_anything_runs(target: Path, trial: Path) -> None:
    evaluate = ("evaluate", "--trial", trial, "--no-wait", "--rule", "LossTooHigh")
    for parameter, sentence in (
        ("treshold=1", "Did you mean 'threshold'?"),
        ("threshold=-1", "Parameter 'threshold' must be a finite number >= 0"),
    ):
        done = run(target, *evaluate, "-p", parameter)
        assert (done.returncode, sentence in done.stderr + done.stdout) == (1, True), done.stderr


def test_a_package_that_cannot_be_imported_is_named(target: Path, trial: Path) -> None:
    evaluate = ("evaluate", "--trial", trial, "--no-wait")
    done = run(target, *evaluate, "--rule", "Broken")
    assert done.returncode == 1
    assert done.stderr == (
        "Error: Rule 'Broken' of package acme-rules 1.2 (acme_rules.broken:Broken) raised "
        "ModuleNotFoundError while it was loaded: No module named 'no_such_module'.\n"
    )
    others = run(
        *(target, *evaluate, "--rule", "Broken", "--rule", "LossTooHigh", "--isolate", "process"),
        *("--format", "json"),
    )
    rules = json.loads(others.stdout)["rules"]
    assert sorted(rule["outcome"] for rule in rules) == ["Error", "IssuesFound"]


def test_doctor_imports_each_rule(target: Path) -> None:
    told = run(target, "doctor").stdout
    for sentence in (
        "Rule 'LossTooHigh' of package acme-rules 1.2 can be used.",
        "No module named 'no_such_module'.",
        "(acme_rules.losses:Overfit) is ignored: a built-in rule has this name.",
    ):
        assert sentence in " ".join(told.split())


def test_a_built_in_rule_imports_no_package(target: Path, trial: Path) -> None:
    done = run(target, "evaluate", "--trial", trial, "--no-wait", "--rule", "Overfit")
    assert "acme_rules is imported" not in done.stderr
    named = run(target, "evaluate", "--trial", trial, "--no-wait", "--rule", "PlainRule")
    assert "acme_rules is imported" in named.stderr


def test_its_rules_are_tested_by_tables(target: Path, tmp_path: Path) -> None:
    table = tmp_path / "acme.rules.yaml"
    table.write_text(
        "rule: LossTooHigh\ncases:\n  - losses: {loss: 1 11}\n"
        "    expect: {step: 1, severity: warning}\n"
    )
    done = run(target, "test", str(table))
    assert done.returncode == 0, done.stdout
