"""Shell completion, and -h for every command."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from rule_runner.cli import main
from rule_runner.loading.loader import every_builtin

PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def completed(*words: str) -> list[str]:
    """Return what a shell offers for the last of `words`."""
    *before, incomplete = words
    completion = ShellComplete(main, {}, "rule-runner", "_RULE_RUNNER_COMPLETE")
    return [item.value for item in completion.get_completions(before, incomplete)]


@pytest.mark.parametrize("command", [["evaluate"], ["train"], ["docker", "run"]])
def test_rule_names_are_completed(command: list[str]) -> None:
    assert completed(*command, "--rule", "Vani") == ["VanishingGradient"]
    assert completed(*command, "--rule", "mine=Overf") == ["mine=Overfit"]
    assert {*completed(*command, "--rule", "")} == {*every_builtin(), "all", "auto"}


def test_names_of_rules_to_show_are_completed() -> None:
    assert completed("rules", "show", "Overf") == ["Overfit"]
    assert "all" not in completed("rules", "show", "")


def test_parameters_are_those_of_the_rules_with_their_defaults() -> None:
    single = ("evaluate", "--rule", "VanishingGradient", "-p")
    assert completed(*single, "th") == ["threshold=1e-07"]
    assert "literal=false" in completed(*single, "")
    several = ("evaluate", "--rule", "VanishingGradient", "--rule", "loss=LossNotDecreasing", "-p")
    assert completed(*several, "loss.num") == ["loss.num_steps=10"]
    assert completed(*several, "VanishingGradient.t") == ["VanishingGradient.threshold=1e-07"]
    assert completed("evaluate", "-p", "") == []
    assert completed("evaluate", "--rule", "Nope", "--rule", "all", "-p", "") == []


def test_modes_and_regions_are_completed() -> None:
    assert completed("evaluate", "--mode", "") == ["enforce", "observe"]
    assert completed("evaluate", "--rule", "a=Overfit", "--mode", "a=o") == ["a=observe"]
    assert completed("images", "uri", "--region", "eu-west-1") == ["eu-west-1"]


# How each shell loads the completion, and what it then offers.
LOADS = {
    "bash": 'eval "$({})"',
    "fish": "env {} | source",
    "zsh": 'compdef() {{ :; }}; eval "$({})"',
}
OFFERS = {
    "bash": "COMP_WORDS=(rule-runner evaluate --rule Vani); COMP_CWORD=3; "
    "_rule_runner_completion rule-runner; echo ${COMPREPLY[@]}",
    "fish": "complete -C 'rule-runner evaluate --rule Vani' | cut -f1",
    "zsh": "compadd() { :; }; _describe() { print -- ${${(P)3}[1]%%:*}; }; "
    "words=(rule-runner evaluate --rule Vani); CURRENT=4; _rule_runner_completion",
}


@pytest.mark.parametrize("shell", LOADS)
def test_real_shells_complete(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed.")
    load = LOADS[shell].format(f"_RULE_RUNNER_COMPLETE={shell}_source rule-runner")
    done = subprocess.run(
        [shell, "-c", f"{load}; {OFFERS[shell]}"],
        capture_output=True,
        check=False,
        env=os.environ | {"PATH": PATH, "HOME": str(tmp_path)},
        text=True,
        timeout=60,
    )
    assert done.stdout.split() == ["VanishingGradient"], done.stderr


def commands(command: click.Command, *path: str) -> Iterator[list[str]]:
    yield [*path]
    for name, subcommand in getattr(command, "commands", {}).items():
        yield from commands(subcommand, *path, name)


@pytest.mark.parametrize("path", [*commands(main)], ids=" ".join)
def test_every_command_has_h_for_help(path: list[str]) -> None:
    short, long = (CliRunner().invoke(main, [*path, option]) for option in ("-h", "--help"))
    assert (short.exit_code, short.stdout) == (0, long.stdout)
    assert short.stdout.startswith("Usage: ")
