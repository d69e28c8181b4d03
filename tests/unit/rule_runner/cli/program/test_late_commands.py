"""LateGroup: it lists commands as click does, and imports only the one that is run."""

import subprocess
import sys
from collections.abc import Iterator

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from rule_runner.cli import main
from rule_runner.cli.program.help_pages import HelpedGroup

USUAL = HelpedGroup(
    "rule-runner",
    dict(main.commands),
    invoke_without_command=True,
    params=main.params,
    help=main.help,
    epilog=main.epilog,
    context_settings=main.context_settings,
)


@pytest.mark.parametrize("width", [50, 80, 200])
def test_help_is_that_of_a_group_of_all_commands(width: int) -> None:
    texts = [
        CliRunner().invoke(group, ["--help"], prog_name="rule-runner", terminal_width=width).output
        for group in (main, USUAL)
    ]
    assert texts[0] == texts[1]
    assert "evaluate" in texts[0]


def groups(group: click.Group, *names: str) -> Iterator[list[str]]:
    """Yield the words that call a group and each group in it."""
    yield list(names)
    for name, command in dict(group.commands).items():
        if isinstance(command, click.Group):
            yield from groups(command, *names, name)


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("words", list(groups(main)), ids=" ".join)
def test_no_summary_is_cut_off(words: list[str], width: int) -> None:
    text = CliRunner().invoke(main, [*words, "--help"], terminal_width=width).output
    _, _, commands = text.partition("\nCommands:\n")
    assert "..." not in commands
    assert "." in commands


@pytest.mark.parametrize("name", main.commands)
def test_the_summary_is_the_first_paragraph_of_the_help(name: str) -> None:
    paragraph = (main.commands[name].help or "").split("\n\n")[0].replace("\n", " ")
    assert main.commands.data[name].help == paragraph  # type: ignore[attr-defined]
    assert main.commands[name].name == name


@pytest.mark.parametrize("word", ["", "e", "--", "serve"])
def test_completion_is_that_of_a_group_of_all_commands(word: str) -> None:
    items = [
        [
            (item.value, item.help)
            for item in ShellComplete(group, {}, "rule-runner", "_C").get_completions([], word)
        ]
        for group in (main, USUAL)
    ]
    assert items[0] == items[1] != []


def test_a_misspelt_command_is_answered_with_a_near_one() -> None:
    result = CliRunner().invoke(main, ["evaluat"])
    assert (result.exit_code, "Did you mean 'evaluate'?" in result.output) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [
        (["--help"], set()),
        (["rules", "--help"], {"completion", "inspection", "inspection.rules", "reporting"}),
    ],
)
def test_only_the_command_that_is_run_is_imported(arguments: list[str], modules: set[str]) -> None:
    code = (
        "import sys\nfrom rule_runner.cli import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit: print('\\f', *(m for m in sys.modules if m.startswith('rule_runner.')))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = ended.stdout.partition("\f")[2].split()
    of_cli = {name.removeprefix("rule_runner.cli.") for name in imported if ".cli." in name}
    assert of_cli - {"program", "program.help_pages", "program.late_commands"} == modules
