"""events: what an evaluation told the world, shown, or told again."""

from pathlib import Path

import click

from rule_runner.cli.reporting import reporting
from rule_runner.logs import configure

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@click.group()
def events() -> None:
    """Show the events of an evaluation, or send them to sinks that lack them."""


@events.command()
@_FOLDER
@click.option(
    "--sink", multiple=True, metavar="KIND[:TARGET][,region=R]", help="Where they go, as before."
)
@click.option("--all", "again", is_flag=True, help="Send every event, also those taken before.")
@click.option(
    "--sink-deadline",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    metavar="S",
    help="Give up then.",
)
@reporting
def replay(folder: Path, sink: tuple[str, ...], again: bool, sink_deadline: float) -> int:
    """Send each sink the events in the output folder DIR that it has not taken."""
    from rule_runner import replay as replaying  # noqa: PLC0415 - only when it is needed

    return replaying.replay(folder, sink, again=again, seconds=sink_deadline)


@events.command()
@_FOLDER
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@reporting
def show(folder: Path, form: str) -> None:
    """Print the events in the output folder DIR, a line each."""
    from rule_runner.replay import show_events  # noqa: PLC0415 - only when it is needed

    configure(-1)
    show_events(folder, form)
