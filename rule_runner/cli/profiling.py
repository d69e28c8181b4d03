"""profile: what a profiler saved, shown, reported on, merged into one timeline."""

import click

from rule_runner.cli.endpoint import endpoint_option
from rule_runner.cli.reporting import reporting
from rule_runner.logs import configure

_FOLDER = click.argument("folder", metavar="DIR")
_MODE = click.Choice(["train", "eval", "predict", "global"], case_sensitive=False)


@click.group()
def profile() -> None:
    """Inspect the profiler data of a training job, and report on them.

    DIR is the folder that holds 'system' and 'framework', or its address: s3://bucket/prefix.
    """


@profile.command()
@_FOLDER
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@click.option("--check", is_flag=True, help="Read all data, and report what is damaged.")
@endpoint_option
@reporting
def show(folder: str, form: str, check: bool) -> int:
    """Show nodes, times and files of the profiler data in DIR."""
    from rule_runner.commands.profile.command import show_profile

    configure(-1)
    return show_profile(folder, form, check=check)


@profile.command()
@_FOLDER
@click.option("-o", "--output", metavar="FOLDER", help="Output folder.")
@click.option("-p", "--param", multiple=True, metavar="RULE_KEY=VALUE", help="Parameter of a rule.")
@click.option("--overwrite", is_flag=True, help="Replace an evaluation in the output folder.")
@endpoint_option
@reporting
def report(folder: str, output: str | None, param: tuple[str, ...], overwrite: bool) -> int:
    """Evaluate all profiler rules over the data in DIR, and write a page of their findings."""
    from rule_runner.commands.profile import command as commands

    return commands.report(folder, output, param, overwrite=overwrite)


@profile.command()
@_FOLDER
@click.option("--start", metavar="T", help="Start: epoch seconds, a time in ISO format, or a step.")
@click.option("--end", metavar="T", help="End in the same notation; a step is not included.")
@click.option("--unit", type=click.Choice(["time", "step"]), default="time", show_default=True)
@click.option("--mode", type=_MODE, help="Mode of the steps.")
@click.option("-o", "--output", default="trace.json", show_default=True, metavar="FILE")
@endpoint_option
@reporting
def timeline(
    folder: str, start: str | None, end: str | None, unit: str, mode: str | None, output: str
) -> int:
    """Merge all timelines and system metrics in DIR into one trace, for Perfetto."""
    from rule_runner.commands.profile import command as commands

    configure(-1)
    return commands.timeline(folder, start, end, unit, mode, output)


@profile.command()
@_FOLDER
@click.option("--step", metavar="FIRST:LAST", help="Range of steps, without the last.")
@click.option("--mode", metavar="MODE", help="train, eval, predict, prestepzero, ...")
@click.option("--node", metavar="NAME", help="One node; by default the sum of all.")
@click.option("-n", "count", type=click.IntRange(0), default=20, show_default=True)
@click.option(
    "--sort",
    type=click.Choice(["tottime", "cumtime", "ncalls", "pcalls", "memory"]),
    default="tottime",
    show_default=True,
    help="memory: of scalene.",
)
@click.option("--lines", is_flag=True, help="Lines in place of functions: speedscope, scalene.")
@endpoint_option
@reporting
def python(
    folder: str,
    step: str | None,
    mode: str | None,
    node: str | None,
    count: int,
    sort: str,
    *,
    lines: bool,
) -> int:
    """Show the Python functions in DIR that took the most time.

    DIR has profiles of cProfile, or is a file or a folder of py-spy's speedscope or of scalene.
    """
    from rule_runner.commands.profile import command as commands

    configure(-1)
    return commands.python(folder, step, mode, node, count, sort, lines=lines)
