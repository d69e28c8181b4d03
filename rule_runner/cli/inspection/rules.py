"""rules: shows the built-in rules and the schemas of files."""

import click

from rule_runner.cli import completion
from rule_runner.cli.program.help_pages import HelpedGroup
from rule_runner.cli.reporting import reporting


@click.group(cls=HelpedGroup)
def rules() -> None:
    """Show the built-in rules, and those of installed packages."""


@rules.command("list", epilog="rule-runner rules list")
@reporting
def rules_list() -> None:
    """List the built-in rules, and those of installed packages."""
    from rule_runner.commands.rules import listing

    click.echo("\n".join(listing()))


@rules.command("show", epilog="rule-runner rules show VanishingGradient")
@click.argument("name", shell_complete=completion.rule_names)
@reporting
def rules_show(name: str) -> None:
    """Show the page of a rule.

    It describes the inputs and parameters of the rule, what it finds, and what to do about it.
    """
    from rule_runner.commands.rules import show

    show(name)


@rules.command("job-schema", epilog="rule-runner rules job-schema > job.schema.json")
@reporting
def rules_job_schema() -> None:
    """Print the JSON schema of job files, for editors."""
    from rule_runner.config.job_file.definition import JOB_FILE_SCHEMA

    click.echo(JOB_FILE_SCHEMA.read_text("utf-8"), nl=False)


@rules.command("fleet-schema", epilog="rule-runner rules fleet-schema > fleet.schema.json")
@reporting
def rules_fleet_schema() -> None:
    """Print the JSON schema of fleet.yaml, for editors."""
    from rule_runner.watch.config_schema import config_schema

    click.echo(config_schema(), nl=False)
