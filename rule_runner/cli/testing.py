"""test and record: the commands for unit tests of rules."""

import click

from rule_runner.cli.options import endpoint_option, flag, text
from rule_runner.cli.reading import Sources, takes_reading
from rule_runner.cli.reporting import quiet_reporting


@click.command("test")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@flag("--update", "Write what the rules did as expectations.")
@text("--junit", "FILE", "Write the results as JUnit XML, too.")
@click.option(
    "--isolate",
    type=click.Choice(["none", "process"]),
    default="none",
    help="Where the rules run, as in evaluate.",
)
@quiet_reporting
def test(paths: tuple[str, ...], update: bool, junit: str | None, isolate: str) -> int:
    """Run the unit tests of rules at and below each PATH.

    A test file holds steps and expected findings, in YAML or Python. Folders are searched for
    *.rules.yaml, *.rules.yml and *.rules.py. The exit code is 1 if a case fails.
    """
    from rule_runner.commands.rule_tests import run_rule_tests
    from rule_runner.config.defaults import Isolation

    return run_rule_tests(paths, junit, Isolation(isolate), update=update)


@click.command()
@click.argument("path")
@text("--tensors", "REGEX", "Matches anywhere in the names.", required=True)
@click.option("--steps", default=":", metavar="A:B", help="Steps A <= step < B; all by default.")
@click.option("--output", "-o", required=True, metavar="FILE", help="A new .npz file.")
@endpoint_option
@quiet_reporting
@takes_reading
def record(path: str, tensors: str, steps: str, output: str, sources: Sources) -> None:
    """Record tensors of the trial at PATH for a rule test.

    PATH may be an address, s3://bucket/prefix. The file holds the values of the chosen tensors by
    worker, mode and step; numpy reads it. A test file names it with npz: FILE.
    """
    from rule_runner.commands.record_case import record as record_case

    record_case(path, tensors, steps, output, sources)
