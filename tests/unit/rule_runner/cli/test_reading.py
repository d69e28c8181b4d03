"""The options about outputs of other writers reach every command that takes a trial."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from click.testing import CliRunner

from rule_core.sources.options import SourceOptions
from rule_runner.cli import main

OPTIONS = ("--step-column", "when", "--map", "loss=my_loss", "--mode", "eval=val_*")
SOURCES = SourceOptions(step_column="when", map=("loss=my_loss",), modes=("eval=val_*",))


def called(target: str, *arguments: str) -> Any:
    """Return the call of a use case by a command."""
    with mock.patch(target, return_value=0) as use_case:
        outcome = CliRunner().invoke(main, [*arguments])
    assert outcome.exit_code == 0, outcome.output
    return use_case.call_args


@pytest.mark.parametrize(
    ("target", "arguments"),
    [
        ("rule_runner.commands.trial.show.show_trial", ("trial", "show", "x")),
        (
            "rule_runner.commands.trial.export.export_trial",
            ("trial", "export", "x", "--to", "csv", "--output", "y"),
        ),
        ("rule_runner.commands.doctor.command.run_doctor", ("doctor", "x")),
        (
            "rule_runner.commands.record_case.record",
            ("record", "x", "--tensors", "a", "--output", "y"),
        ),
    ],
)
def test_commands_pass_them_on(target: str, arguments: Sequence[str]) -> None:
    call = called(target, *arguments, *OPTIONS)
    assert SOURCES in (*call.args, *call.kwargs.values())
    call = called(target, *arguments)
    assert SourceOptions() in (*call.args, *call.kwargs.values())


@pytest.mark.parametrize("command", ["watch", "serve"])
def test_commands_that_watch_request_them(command: str) -> None:
    call = called(f"rule_runner.commands.{command}.{command}", command, "x", *OPTIONS)
    assert call.args[0].sources == SOURCES


def test_check_requests_them() -> None:
    call = called("rule_runner.commands.check.command.check_trials", "check", "x", *OPTIONS)
    assert call.args[1].sources == SOURCES


def test_an_evaluation_has_modes_of_rules_too() -> None:
    request = '{"sources": {"map": ["a=my_loss", "b=c"]}, "modes": ["A=observe"]}'
    evaluate = ("evaluate", "--rule", "Overfit", *OPTIONS)
    target = "rule_runner.commands.evaluate.evaluate_trial"
    call = called(target, *evaluate, "--mode", "observe")
    assert (call.args[0].sources, call.args[0].modes) == (SOURCES, ("observe",))
    call = called(target, *evaluate, "--request", request)
    assert call.args[0].sources.map == ("loss=my_loss", "b=c")
    assert call.args[0].modes == ("A=observe",)


@pytest.mark.parametrize("command", ["evaluate --trial", "check", "trial show", "watch"])
def test_misspelt_options_are_errors(command: str, tmp_path: Path) -> None:
    arguments = [*command.split(), str(tmp_path), "--mode", "evl=val_*"]
    outcome = CliRunner().invoke(main, arguments)
    assert outcome.exit_code == 2
    assert outcome.output == (
        "Error: The mode of series 'val_*' must be one of train, eval, predict, global, got "
        "'evl'. Did you mean 'eval=val_*'?\n"
    )
