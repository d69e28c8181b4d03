"""The command line: parses, calls, and maps what happened to an exit code; no logic of its own."""

from datetime import datetime
from pathlib import Path
from typing import Final

import click

from rule_runner.cli import completion
from rule_runner.cli.checking import check
from rule_runner.cli.docker import docker_group
from rule_runner.cli.endpoint import endpoint_option
from rule_runner.cli.evaluation import evaluate
from rule_runner.cli.events import events
from rule_runner.cli.fleet import fleet
from rule_runner.cli.images import images
from rule_runner.cli.measuring import measure
from rule_runner.cli.profiling import profile
from rule_runner.cli.reporting import reporting
from rule_runner.cli.standard_output import results_alone
from rule_runner.cli.testing import record, test
from rule_runner.cli.training import train
from rule_runner.cli.watching import serve, serve_token, watch
from rule_runner.config.model import check_is_local, default_output
from rule_runner.errors import UsageError
from rule_runner.logs import configure


@click.group(invoke_without_command=True, context_settings={"help_option_names": ["--help", "-h"]})
@click.version_option(package_name="rule-runner")
@click.pass_context
def main(context: click.Context) -> None:
    """Evaluate rules over the tensors that a training job saved.

    Without a command, evaluate as a rule container if the environment or
    processingjobconfig.json describes a rule.
    """
    if context.invoked_subcommand is None:
        _without_command(context)


@reporting
def _without_command(context: click.Context) -> int:
    """Run as a rule container, or print the help."""
    from rule_runner.config.sagemaker_contract import is_asked_for, is_expected

    if is_asked_for():
        from rule_runner.commands.sagemaker import run

        configure(1, as_json=True)
        with results_alone():
            return run()
    if is_expected():
        from rule_runner.commands.sagemaker import reject

        reject()
    click.echo(context.get_help())
    return 0


@main.group()
def rules() -> None:
    """Show the built-in rules, and those of installed packages."""


@rules.command("list")
@reporting
def rules_list() -> None:
    """List the built-in rules, and those of installed packages."""
    from rule_runner.commands.rules import listing

    click.echo("\n".join(listing()))


@rules.command("show")
@click.argument("name", shell_complete=completion.rule_names)
@reporting
def rules_show(name: str) -> None:
    """Show the page of a rule: its inputs, parameters and findings, and what to do."""
    from rule_runner.commands.rules import show

    show(name)


@rules.command("job-schema")
@reporting
def rules_job_schema() -> None:
    """Print the JSON schema of job files, for editors."""
    from rule_runner.commands.rules import job_schema

    click.echo(job_schema(), nl=False)


@rules.command("fleet-schema")
@reporting
def rules_fleet_schema() -> None:
    """Print the JSON schema of fleet.yaml, the configuration of watch, for editors."""
    from rule_runner.fleet.config_schema import config_schema

    click.echo(config_schema(), nl=False)


@main.command()
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Output folder.")
@reporting
def demo(output: Path | None) -> int:
    """Judge three real trainings while they run: healthy, vanishing, diverging."""
    from rule_runner.commands.demo.command import run_demo

    place = output or default_output("demo")
    check_is_local(place, "--output of demo")
    return run_demo(place)


@main.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@click.option("--output", metavar="FILE", help="File or folder of the page; s3:// too.")
@click.option("--title", help="Title of the page; by default the trials' names.")
@endpoint_option
@reporting
def report(folders: tuple[str, ...], output: str | None, title: str | None) -> int:
    """Write one page with charts from the results in one or more output folders.

    Folders may be addresses, s3://bucket/prefix.
    """
    from rule_runner.commands import report as command

    return command.report(folders, output, title)


@main.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...")
@click.option("--check", metavar="NAME", help="Create a check run of this name.")
@click.option("--comment", is_flag=True, help="Write a comment on the pull request.")
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning"]),
    default="error",
    show_default=True,
    help="The severity from which a finding fails the check run.",
)
@endpoint_option
@reporting
def github(folders: tuple[str, ...], check: str | None, comment: bool, fail_on: str) -> int:
    """Show the results in one or more output folders in a workflow of GitHub.

    They are added to the summary of the workflow's run. Folders may be addresses,
    s3://bucket/prefix.
    """
    from rule_core.severity import Severity
    from rule_runner.commands.github import show_on_github

    return show_on_github(folders, check=check, comment=comment, fail_on=Severity(fail_on))


@main.command()
@click.argument("output", metavar="DIR")
@click.option("--rule", metavar="NAME", help="All findings of this rule, also those to come.")
@click.option("--finding", metavar="ID", help="One finding; without options they are listed.")
@click.option("--reason", metavar="TEXT", help="Why; required.")
@click.option("--mute", is_flag=True, help="Do not count: neither fail a command nor alert.")
@click.option("--withdraw", is_flag=True, help="Take back what was said before.")
@click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="The last day on which it holds, in UTC: 2027-01-31.",
)
@click.option("--who", metavar="NAME", help="Who says so; by default the user.")
@endpoint_option
@reporting
def acknowledge(
    output: str,
    rule: str | None,
    finding: str | None,
    reason: str | None,
    mute: bool,
    withdraw: bool,
    until: datetime | None,
    who: str | None,
) -> int:
    """Record that somebody has seen or muted findings in the output folder DIR.

    Reports, alerts and fleet collect show it. Without --rule and --finding, the findings are listed
    with their IDs. DIR may be an address, s3://bucket/prefix.
    """
    from rule_runner.commands.acknowledge import command
    from rule_runner.results.acknowledgements import AcknowledgementKind

    options = (reason, until, who, mute or None, withdraw or None)
    if rule is None and finding is None:
        if any(option is not None for option in options):
            msg = "Options --rule or --finding are missing: they say what is acknowledged."
            raise UsageError(msg)
        return command.list_findings(output)
    if rule is not None and finding is not None:
        msg = "Options --rule and --finding cannot be combined."
        raise UsageError(msg)
    if mute and withdraw:
        msg = "Options --mute and --withdraw cannot be combined."
        raise UsageError(msg)
    if not reason:
        msg = "Option --reason is missing: reports show why."
        raise UsageError(msg)
    kind = AcknowledgementKind.MUTED if mute else AcknowledgementKind.ACKNOWLEDGED
    return command.acknowledge(
        output,
        command.Subject(rule, finding),
        AcknowledgementKind.WITHDRAWN if withdraw else kind,
        reason,
        who=who,
        until=None if until is None else until.date(),
    )


@main.group()
def trial() -> None:
    """Inspect a trial."""


@trial.command("show")
@click.argument("path")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@click.option("--all", "everything", is_flag=True, help="Show every row of each table.")
@endpoint_option
@reporting
def trial_show(path: str, form: str, everything: bool) -> int:
    """Show steps, workers, collections, tensors and sizes of the trial at PATH, or s3://."""
    from rule_runner.commands.trial_show import show_trial

    configure(-1)
    return show_trial(path, form, everything=everything)


@trial.command("export")
@click.argument("path")
@click.option(
    "--to",
    "form",
    type=click.Choice(["tensorboard", "csv", "jsonl", "safetensors", "smdebug"]),
    required=True,
    help="The format: of numbers tensorboard, csv and jsonl; of tensors safetensors; of all "
    "smdebug, as hooks save them.",
)
@click.option("--output", required=True, metavar="PATH", help="A new file or folder.")
@endpoint_option
@reporting
def trial_export(path: str, form: str, output: str) -> int:
    """Write the values of the trial at PATH, or s3://, in another format."""
    from rule_runner.commands.trial_export.command import export_trial

    configure(-1)
    return export_trial(path, form, output)


@main.command()
@click.argument("path", required=False)
@endpoint_option
@reporting
def doctor(path: str | None) -> int:
    """Diagnose problems of the installation and of the trial at PATH, and suggest remedies.

    PATH may be an address, s3://bucket/prefix: then credentials and permissions are checked too.
    """
    from rule_runner.commands.doctor.command import run_doctor

    configure(-1)
    return run_doctor(path)


_COMMANDS: Final = (
    *(check, evaluate, train, docker_group, images, events, measure, profile, record, test),
    *(fleet, watch, serve, serve_token),
)
for command in _COMMANDS:
    main.add_command(command)
