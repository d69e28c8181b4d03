"""events: shows the events of an evaluation, or sends them again."""

from functools import partial
from pathlib import Path

import click

from rule_runner.cli.options import flag, number, texts
from rule_runner.cli.reporting import reporting
from rule_runner.errors import UsageError
from rule_runner.logs import configure

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@click.group()
def events() -> None:
    """Show the events of an evaluation, or send them again."""


@events.command()
@_FOLDER
@texts("--sink", "KIND[:TARGET][,region=R]", "Sink to send to, as for evaluate.")
@flag("--all", "Send all events, including those that the sink accepted.", "again")
@flag("--refused", "Send only the events that the sink refused.")
@number("--sink-deadline", "Give up after this time.", 30.0)
@reporting
def replay(
    folder: Path, sink: tuple[str, ...], again: bool, refused: bool, sink_deadline: float
) -> int:
    """Send the undelivered events in the output folder DIR.

    Each sink gets the events that it has not accepted yet.
    """
    from rule_runner.commands import events as replaying

    if again and refused:
        msg = "Options --all and --refused cannot be combined: --all includes refused events."
        raise UsageError(msg)
    send = replaying.replay_refused if refused else partial(replaying.replay, again=again)
    return send(folder, sink, seconds=sink_deadline)


@events.command()
@_FOLDER
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@reporting
def show(folder: Path, form: str) -> None:
    """Print the events in the output folder DIR, one per line."""
    from rule_runner.commands.events import show_events

    configure(-1)
    show_events(folder, form)
