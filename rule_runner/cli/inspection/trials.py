"""trial, doctor and demo: what a trial holds, what is wrong with it, and trials to try."""

from pathlib import Path

import click

from rule_runner.cli.options import endpoint_option, flag, output
from rule_runner.cli.program.help_pages import HelpedCommand, HelpedGroup
from rule_runner.cli.reading import Sources, takes_reading
from rule_runner.cli.reporting import quiet_reporting, reporting


@click.group(cls=HelpedGroup)
def trial() -> None:
    """Inspect a trial."""


@trial.command("show", epilog="rule-runner trial show runs/mine")
@click.argument("path")
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@flag("--all", "Show every row of each table.", "everything")
@endpoint_option
@quiet_reporting
@takes_reading
def trial_show(path: str, form: str, everything: bool, sources: Sources) -> None:
    """Show what the trial at PATH holds.

    These are steps, workers, collections, tensors and sizes; of outputs of other writers also
    each decision of the reader and its reason. PATH may be an address,
    s3://bucket/prefix.
    """
    from rule_runner.commands.trial.show import show_trial

    show_trial(path, form, everything=everything, sources=sources)


@trial.command("export", epilog="rule-runner trial export runs/mine --to csv -o losses.csv")
@click.argument("path")
@click.option(
    "--to",
    "form",
    type=click.Choice(["tensorboard", "csv", "jsonl", "safetensors", "smdebug"]),
    required=True,
    help="The format: of numbers tensorboard, csv and jsonl; of tensors safetensors; of all "
    "smdebug, as hooks save them.",
)
@output("A new file or folder.", "PATH", "target", required=True)
@endpoint_option
@quiet_reporting
@takes_reading
def trial_export(path: str, form: str, target: str, sources: Sources) -> None:
    """Write the values of a trial in another format.

    PATH may be an address, s3://bucket/prefix.
    """
    from rule_runner.commands.trial.export import export_trial

    export_trial(path, form, target, sources)


@click.command(
    cls=HelpedCommand, epilog="rule-runner doctor\nrule-runner doctor s3://my-bucket/runs/mine"
)
@click.argument("path", required=False)
@endpoint_option
@quiet_reporting
@takes_reading
def doctor(path: str | None, sources: Sources) -> int:
    """Diagnose the installation and the trial at PATH.

    Each problem comes with a remedy. PATH may be an address, s3://bucket/prefix: then credentials
    and permissions are checked too.
    """
    from rule_runner.commands.doctor.command import run_doctor

    return run_doctor(path, sources)


@click.command(cls=HelpedCommand, epilog="rule-runner demo")
@output("Output folder.", "DIR", "target", type=click.Path(path_type=Path))
@reporting
def demo(target: Path | None) -> int:
    """Judge three real trainings while they run.

    One is healthy, in one the gradients vanish, and one diverges.
    """
    from rule_runner.commands.demo.command import run_demo
    from rule_runner.config.model import check_is_local, default_output

    folder = target or default_output("demo")
    check_is_local(folder, "--output of demo")
    return run_demo(folder)
