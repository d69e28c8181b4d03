"""report, github, acknowledge and events: what is done with the results of evaluations."""

from datetime import datetime
from functools import partial
from pathlib import Path

import click

from rule_runner.cli.options import (
    choice,
    endpoint_option,
    flag,
    heading,
    number,
    output,
    text,
    texts,
)
from rule_runner.cli.program.help_pages import Heading, HelpedCommand, HelpedGroup
from rule_runner.cli.reporting import quiet_reporting, reporting
from rule_runner.errors import UsageError

_FOLDER = click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))


@click.command(cls=HelpedCommand, epilog="rule-runner report out/first -o first.html")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@output("File or folder of the page; s3:// too.", "FILE", "target")
@click.option("--title", help="Title of the page; by default the trials' names.")
@choice(
    "--format",
    ("html", "brief"),
    "'brief' prints an answer of at most 2 kB in place of the page.",
    "form",
)
@endpoint_option
@reporting
def report(folders: tuple[str, ...], target: str | None, title: str | None, *, form: str) -> None:
    """Write a page with charts of the results in output folders.

    Folders may be addresses, s3://bucket/prefix.
    """
    from rule_runner.commands import report as command

    if form == "brief":
        command.print_brief(folders)
    else:
        command.report(folders, target, title)


@click.command(
    cls=HelpedCommand, epilog="rule-runner github out/first --check rule-runner --comment"
)
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@text("--check", "NAME", "Create a check run of this name.")
@flag("--comment", "Write a comment on the pull request.")
@choice("--fail-on", ("error", "warning"), "The severity from which a finding fails the check run.")
@endpoint_option
@reporting
def github(folders: tuple[str, ...], check: str | None, comment: bool, fail_on: str) -> None:
    """Show the results in output folders in a GitHub workflow.

    Results are added to the summary of the workflow run. Folders may be addresses,
    s3://bucket/prefix.
    """
    from rule_core.severity import Severity
    from rule_runner.commands.github import show_on_github

    show_on_github(folders, check=check, comment=comment, fail_on=Severity(fail_on))


@click.command(
    cls=HelpedCommand,
    epilog="rule-runner acknowledge out/first\n"
    "rule-runner acknowledge out/first --rule LossSpike --mute --reason 'known bad batch'",
)
@click.argument("output", metavar="DIR")
@heading(Heading.RESULTS)
@text("--rule", "NAME", "All findings of this rule, also those to come.")
@text("--finding", "ID", "One finding; without options they are listed.")
@text("--incident", "ID", "A root cause, by ID or rule, and what may follow: also what is to come.")
@heading(Heading.ACKNOWLEDGEMENT)
@text("--reason", "TEXT", "Why; required.")
@flag("--mute", "Do not count: neither fail a command nor alert.")
@flag("--withdraw", "Take back what was said before.")
@text(
    "--until",
    "DATE",
    "The last day on which it holds, in UTC: 2027-01-31.",
    type=click.DateTime(["%Y-%m-%d"]),
)
@text("--who", "NAME", "Who says so; by default the user.")
@endpoint_option
@reporting
def acknowledge(
    output: str,
    rule: str | None,
    finding: str | None,
    incident: str | None,
    reason: str | None,
    mute: bool,
    withdraw: bool,
    until: datetime | None,
    who: str | None,
) -> None:
    """Acknowledge or mute findings in the output folder DIR.

    Reports, alerts and 'fleet collect' show who did so and why. Without --rule, --finding and
    --incident, the command lists the findings and incidents with their IDs. DIR may be an address,
    s3://bucket/prefix.
    """
    from rule_runner.commands.acknowledge import command
    from rule_runner.results.acknowledgements import AcknowledgementKind

    options = (reason, until, who, mute or None, withdraw or None)
    targets = [target for target in (rule, finding, incident) if target is not None]
    if not targets:
        if any(option is not None for option in options):
            raise UsageError("Give --rule, --finding or --incident: they say what is acknowledged.")
        command.list_findings(output)
        return
    if len(targets) > 1:
        raise UsageError("Options --rule, --finding and --incident cannot be combined.")
    if mute and withdraw:
        raise UsageError("Options --mute and --withdraw cannot be combined.")
    if not reason:
        raise UsageError("Option --reason is missing: reports show why.")
    kind = AcknowledgementKind.MUTED if mute else AcknowledgementKind.ACKNOWLEDGED
    command.acknowledge(
        output,
        rule,
        finding,
        incident,
        AcknowledgementKind.WITHDRAWN if withdraw else kind,
        reason,
        who=who,
        until=None if until is None else until.date(),
    )


@click.group(cls=HelpedGroup)
def events() -> None:
    """Show the events of an evaluation, or send them again."""


@events.command(epilog="rule-runner events replay out/first --sink file:events.jsonl")
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
        raise UsageError(
            "Options --all and --refused cannot be combined: --all includes refused events."
        )
    send = replaying.replay_refused if refused else partial(replaying.replay, again=again)
    return send(folder, sink, seconds=sink_deadline)


@events.command(epilog="rule-runner events show out/first")
@_FOLDER
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@quiet_reporting
def show(folder: Path, form: str) -> None:
    """Print the events in the output folder DIR, one per line."""
    from rule_runner.commands.events import show_events

    show_events(folder, form)
