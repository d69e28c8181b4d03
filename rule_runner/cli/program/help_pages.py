"""HelpedCommand and HelpedGroup: help with options by purpose, whole summaries, and examples."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

import click

MAX_FLAT_OPTIONS: Final = 8  # besides --help; more of them are listed by their headings


class Heading(StrEnum):
    """What options are for."""

    TRIAL = "Trial"
    RULES = "Rules"
    STEPS = "Steps and waiting"
    RESULTS = "Results"
    EXIT_CODE = "Exit code"
    EVENTS = "Events and actions"
    READING = "Reading logs and tables"
    SYSTEM = "Where it runs"
    CONTAINERS = "Containers"
    PROFILE = "Profile"
    ACCESS = "Access"
    ACKNOWLEDGEMENT = "Acknowledgement"
    GENERAL = "General"


_NO_LIMIT: Final = 1000  # characters of a summary


class HelpedCommand(click.Command):
    """A command whose help lists many options by heading, and its epilog as examples.

    `rule_runner.cli.options.heading` sets the heading of an option.
    """

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, below headings if they are many."""
        sections: dict[Heading, list[tuple[str, str]]] = {heading: [] for heading in Heading}
        for param in self.get_params(ctx):
            if isinstance(param, click.Option) and (record := param.get_help_record(ctx)):
                sections[getattr(param, "heading", Heading.GENERAL)].append(record)
        if sum(map(len, sections.values())) <= MAX_FLAT_OPTIONS + 1:
            super().format_options(ctx, formatter)
            return
        for heading, records in sections.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are, so that they can be copied."""
        del ctx
        if self.epilog:
            with formatter.section("Examples"):
                for example in self.epilog.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


class HelpedGroup(HelpedCommand, click.Group):
    """A group of such commands, whose list has the first sentence of each help."""

    command_class = HelpedCommand

    def listed(self) -> Iterable[tuple[str, click.Command]]:
        """Return the commands for the list, by name."""
        return sorted(self.commands.items())

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        del ctx
        rows = [(name, command.get_short_help_str(_NO_LIMIT)) for name, command in self.listed()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
