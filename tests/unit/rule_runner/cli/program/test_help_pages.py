"""Help pages: options by purpose, and examples that work."""

import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from rule_runner.cli import main
from rule_runner.cli.program.help_pages import MAX_FLAT_OPTIONS, Heading


def contexts(context: click.Context) -> Iterator[click.Context]:
    """Yield the contexts of all commands that are no groups."""
    group = context.command
    if not isinstance(group, click.Group):
        yield context
        return
    for name, command in dict(group.commands).items():
        yield from contexts(click.Context(command, context, name))


ROOT = click.Context(main, info_name="rule-runner", **main.context_settings)
COMMANDS = {
    context.command_path.removeprefix("rule-runner "): context.command for context in contexts(ROOT)
}
OPTIONS = {
    path: [param for param in command.params if isinstance(param, click.Option)]
    for path, command in COMMANDS.items()
}
LARGE = [path for path, options in OPTIONS.items() if len(options) > MAX_FLAT_OPTIONS]


def help_page(path: str) -> str:
    return CliRunner().invoke(main, [*path.split(), "--help"], terminal_width=80).output


def test_the_large_commands() -> None:
    assert {"check", "docker run", "evaluate", "fleet plan", "measure", "train"} <= {*LARGE}


@pytest.mark.parametrize("path", LARGE)
def test_each_option_of_a_large_command_has_a_heading(path: str) -> None:
    assert [option.name for option in OPTIONS[path] if not hasattr(option, "heading")] == []
    page = help_page(path)
    shown = [line[:-1] for line in page.splitlines() if line.endswith(":") and line[0] != " "]
    headings = [heading for heading in Heading if f"\n{heading}:\n" in page]
    assert shown == [*headings, "Examples"]
    assert len(headings) >= 3
    for option in OPTIONS[path]:
        _, _, section = page.partition(f"\n{vars(option)['heading']}:\n")
        assert f"  {option.get_help_record(ROOT)[0]}" in section.partition("\n\n")[0]  # type: ignore[index]


@pytest.mark.parametrize("path", sorted({*COMMANDS} - {*LARGE}))
def test_a_small_command_has_one_list_of_options(path: str) -> None:
    page = help_page(path)
    assert "\nOptions:\n" in page
    assert "\nGeneral:\n" not in page


@pytest.mark.parametrize("path", COMMANDS)
def test_each_command_shows_examples_that_it_accepts(path: str) -> None:
    examples = (COMMANDS[path].epilog or "").splitlines()
    assert 1 <= len(examples) <= 2
    assert help_page(path).endswith("\nExamples:\n" + "".join(f"  {line}\n" for line in examples))
    for example in examples:
        words, _, _ = example.partition(" > ")
        program, *arguments = shlex.split(words)
        names = path.split()
        assert (program, arguments[: len(names)]) == ("rule-runner", names)
        COMMANDS[path].make_context(path, arguments[len(names) :])


@pytest.mark.parametrize("path", COMMANDS)
def test_o_is_output_and_nothing_else(path: str) -> None:
    named = [option for option in OPTIONS[path] if {"-o", "--output"} & {*option.opts}]
    assert [option.opts for option in named] in ([], [["--output", "-o"]])
