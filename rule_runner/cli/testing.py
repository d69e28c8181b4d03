"""test and record: the commands for unit tests of rules."""

import click

from rule_runner.cli.options import endpoint_option, flag, output, text
from rule_runner.cli.program.help_pages import HelpedCommand
from rule_runner.cli.reading import Sources, takes_reading
from rule_runner.cli.reporting import quiet_reporting


@click.command("test", cls=HelpedCommand, epilog="rule-runner test rules/ --junit tests.xml")
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


@click.command(
    cls=HelpedCommand,
    epilog="rule-runner record runs/mine --tensors '^loss' --steps 0:50 -o case.npz",
)
@click.argument("path")
@text("--tensors", "REGEX", "Matches anywhere in the names.", required=True)
@click.option("--steps", default=":", metavar="A:B", help="Steps A <= step < B; all by default.")
@output("A new .npz file.", "FILE", "target", required=True)
@endpoint_option
@quiet_reporting
@takes_reading
def record(path: str, tensors: str, steps: str, target: str, sources: Sources) -> None:
    """Record tensors of the trial at PATH for a rule test.

    PATH may be an address, s3://bucket/prefix. The file holds the values of the chosen tensors by
    worker, mode and step; numpy reads it. A test file names it with npz: FILE.
    """
    from rule_runner.commands.record_case import record as record_case

    record_case(path, tensors, steps, target, sources)
