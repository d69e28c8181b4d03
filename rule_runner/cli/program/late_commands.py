"""LateGroup: a group of commands that are imported when they are run."""

from collections import UserDict
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

# The module in `rule_runner.cli` where the command has its name, and the first paragraph of its
# help, so that the list of commands needs no import.
LateCommand = tuple[str, str]


class _Commands(UserDict[str, click.Command]):
    """Commands by name, each of which is imported when it is asked for.

    Attributes
    ----------
    data
        Commands that have nothing but their summary.
    """

    def __init__(self, late: Mapping[str, LateCommand]) -> None:
        super().__init__(
            {name: click.Command(name, help=summary) for name, (_, summary) in late.items()}
        )
        self._late = late

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"rule_runner.cli.{self._late[name][0]}")
        command: click.Command = getattr(module, name.replace("-", "_"))
        return command


class LateGroup(click.Group):
    """A group of commands that are imported when they are run, not when they are listed.

    Parameters
    ----------
    late
        The commands by name.
    """

    def __init__(self, *args: Any, late: Mapping[str, LateCommand], **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands = self._late = _Commands(late)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands as `click.Group` does."""
        limit = formatter.width - 6 - max(map(len, self.commands))
        rows = [(name, stub.get_short_help_str(limit)) for name, stub in self._listed(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command or of an option, as `click.Group` does."""
        return [
            *(
                CompletionItem(name, help=stub.get_short_help_str())
                for name, stub in self._listed(ctx)
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]

    def _listed(self, ctx: click.Context) -> Iterator[tuple[str, click.Command]]:
        for name in self.list_commands(ctx):
            yield name, self._late.data[name]
