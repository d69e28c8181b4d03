"""watch: the command that judges trials as they appear."""

from typing import Literal

import click

from rule_runner.cli.endpoint import endpoint_option
from rule_runner.cli.evaluation import FAIL_ON, takes
from rule_runner.cli.reporting import reporting
from rule_runner.cli.standard_output import results_alone
from rule_runner.errors import UsageError
from rule_runner.logs import configure


@click.command()
@click.argument("roots", nargs=-1, metavar="[ROOT]...")
@click.option("--config", metavar="FILE", help="What to watch and how to judge it: fleet.yaml.")
@click.option(
    "--database",
    metavar="FILE",
    help="Index of the trials; by default watch.sqlite beside the output folders.",
)
@click.option("--rebuild", is_flag=True, help="Make the index again from the results.")
@click.option("--once", is_flag=True, help="Judge what is there now, and end.")
@takes(FAIL_ON)
@endpoint_option
@reporting
@results_alone()
def watch(
    roots: tuple[str, ...],
    config: str | None,
    database: str | None,
    rebuild: bool,
    once: bool,
    fail_on: Literal["error", "warning"] | None,
    fail_on_issues: bool,
) -> int:
    """Judge the trials at and below each ROOT as they appear, until a signal arrives.

    A ROOT is a folder or s3://bucket/prefix; '*' stands for any part of a name. Each trial is
    judged in a process of its own, which follows it until it ends. One line is logged for each
    change.
    """
    from rule_runner.commands import watch as command
    from rule_runner.config.request import EvaluationRequest

    configure(1)
    fails_on = EvaluationRequest(fail_on=fail_on, fail_on_issues=fail_on_issues).fails_on
    if fails_on is not None and not once:
        msg = "Options --fail-on and --fail-on-issues require --once."
        raise UsageError(msg)
    return command.watch(roots, config, database, rebuild=rebuild, once=once, fails_on=fails_on)
