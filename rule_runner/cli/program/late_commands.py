"""LateGroup: a group of commands that are imported when they are run."""

from collections import UserDict
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from rule_runner.cli.program.help_pages import HelpedGroup

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


class LateGroup(HelpedGroup):
    """A group of commands that are imported when they are run, not when they are listed.

    Parameters
    ----------
    late
        The commands by name.
    """

    def __init__(self, *args: Any, late: Mapping[str, LateCommand], **options: Any) -> None:
        super().__init__(*args, **options)
        self.commands = self._late = _Commands(late)

    def listed(self) -> Iterable[tuple[str, click.Command]]:
        """Return the commands for the list, which have nothing but their summary."""
        return sorted(self._late.data.items())

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the name of a command or of an option, as `click.Group` does."""
        return [
            *(
                CompletionItem(name, help=stub.get_short_help_str())
                for name, stub in self.listed()
                if name.startswith(incomplete)
            ),
            *click.Command.shell_complete(self, ctx, incomplete),
        ]
