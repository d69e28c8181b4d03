"""demo: judges three trainings while they run."""

from pathlib import Path

import click

from rule_runner.cli.reporting import reporting
from rule_runner.config.model import check_is_local, default_output


@click.command()
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="Output folder.")
@reporting
def demo(output: Path | None) -> int:
    """Judge three real trainings while they run.

    One is healthy, in one the gradients vanish, and one diverges.
    """
    from rule_runner.commands.demo.command import run_demo

    place = output or default_output("demo")
    check_is_local(place, "--output of demo")
    return run_demo(place)
