"""A table whose names say nothing is shown and judged as the options say."""

import json
from pathlib import Path
from typing import Any

import pytest
import saved
from click.testing import CliRunner

from rule_runner.cli import main

NAMES = ("--map", "train_loss=my_loss", "--map", "val_loss=val_my_loss", "--mode", "predict=when")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "run" / "metrics.csv"
    path.parent.mkdir()
    rows = [f"{step},{10 * step},{5 / step},{6 / step}\n" for step in range(1, 40)]
    path.write_text("".join(["step,when,my_loss,val_my_loss\n", *rows]))
    return path


def call(*arguments: str) -> str:
    outcome = CliRunner().invoke(main, [*arguments])
    assert outcome.exit_code == 0, outcome.output
    return outcome.stdout


@pytest.mark.smoke
def test_trial_show_prints_each_decision_and_its_reason(table: Path) -> None:
    shown: Any = json.loads(call("trial", "show", str(table), "--format", "json", *NAMES))
    (source,) = shown["sources"]
    assert {
        "'my_loss' is read as 'train_loss', by --map",
        "'val_my_loss' is read as 'val_loss', by --map",
        "eval: 'val_loss', by its name",
        "losses: 'train_loss', 'val_loss', by their names",
        "predict: 'when', by --mode",
    } <= {*source["decisions"]}
    assert shown["caveats"] == []
    modes = {tensor["name"]: tensor["modes"] for tensor in shown["tensors"]}
    assert modes == {"train_loss": ["TRAIN"], "val_loss": ["EVAL"], "when": ["PREDICT"]}
    text = call("trial", "show", str(table), *NAMES, "--step-column", "whn", "--map", "lr=rate")
    assert "\n  predict: 'when', by --mode\n" in text
    assert "\nnote: No file has a series 'rate' to map. There are " in text
    assert "\nnote: No file counts its steps by a column 'whn'. Did you mean 'when'?" in text


@pytest.mark.parametrize("section", [False, True])
def test_evaluate_judges_what_the_options_name(table: Path, section: bool) -> None:
    output = table.parents[1] / "out"
    job = table.parents[1] / "job.yaml"
    names = "Map: [train_loss=my_loss, val_loss=val_my_loss]\n  Modes: ['predict=when']"
    rule = "{RuleConfigurationName: Overfit, RuleParameters: {rule_to_invoke: Overfit}}"
    job.write_text(f"Sources:\n  {names}\nDebugRuleConfigurations:\n  - {rule}\n")
    options = ("--job", str(job)) if section else ("--rule", "Overfit", *NAMES)
    more = ("--map", "lr=rate", "--no-wait", "--output", str(output))
    call("evaluate", "--trial", str(table), *options, *more)
    found: Any = saved.result(output)
    assert found["outcome"] == "NoIssuesFound"
    assert found["coverage"]["judged"]
    whole = json.loads((output / "results.json").read_text())
    notes = [note for rule in whole["rules"] for note in (*rule["notes"], *whole.get("notes", ()))]
    assert len([note for note in notes if "No file has a series 'rate' to map." in note]) == 1


def test_without_them_the_evaluation_loss_is_unknown(table: Path) -> None:
    shown: Any = json.loads(call("trial", "show", str(table), "--format", "json"))
    modes = {tensor["name"]: tensor["modes"] for tensor in shown["tensors"]}
    assert modes == {"my_loss": ["TRAIN"], "val_my_loss": ["EVAL"], "when": ["TRAIN"]}
