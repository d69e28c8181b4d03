"""profile: what a profiler saved, recorded, shown, reported on, merged into one timeline."""

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from rule_runner.cli.options import (
    Command,
    Option,
    endpoint_option,
    flag,
    output,
    takes,
    text,
)
from rule_runner.cli.program.help_pages import HelpedGroup
from rule_runner.cli.reporting import quiet_reporting, reporting

if TYPE_CHECKING:
    from rule_runner.commands.profile.recording_options import RecordingOptions

_FOLDER = click.argument("folder", metavar="DIR")
_MODE = click.Choice(["train", "eval", "predict", "global"], case_sensitive=False)
_RECORDING: Final = (
    ("interval", "TIME", "Pause between two samples of the system; by default 500ms."),
    ("operators", "FIRST:LAST", "Steps, without the last, whose operators are profiled."),
    ("data-loaders", "FIRST:LAST", "Steps whose data loading is profiled."),
    ("python", "FIRST:LAST", "Steps whose Python functions are profiled."),
)


def takes_recording(prefix: str = "") -> Option:
    """Return a decorator that gives a command the options of a recording.

    Parameters
    ----------
    prefix
        Beginning of their names. The command gets them as argument `recording`, which is None if
        there are none of them.
    """

    def decorate(command: Command) -> Command:
        names = {f"recording_{name.replace('-', '_')}": name for name, *_ in _RECORDING}

        @wraps(command)
        def run(*args: Any, recording_file: Path | None, **values: Any) -> Any:
            texts = {name.replace("-", "_"): values.pop(key) for key, name in names.items()}
            recording = _options(recording_file, f"--{prefix}", **texts)
            return command(*args, recording=recording, **values)

        config = text(
            f"--{prefix}config",
            "FILE",
            "What to record: a ProfilerConfig as JSON, or a Python file that defines one.",
            "recording_file",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
        )
        options = [
            text(f"--{prefix}{name}", metavar, meaning, key)
            for (name, metavar, meaning), key in zip(_RECORDING, names, strict=True)
        ]
        return takes((config, *options))(run)

    return decorate


def _options(file: Path | None, prefix: str, **texts: str | None) -> "RecordingOptions | None":
    """Return the options of a recording; None if there are none."""
    if file is None and not any(text is not None for text in texts.values()):
        return None
    from rule_runner.commands.profile.recording_options import RecordingOptions

    return RecordingOptions(file, **texts, prefix=prefix)


@click.group(cls=HelpedGroup)
def profile() -> None:
    """Record, inspect and judge profiler data of training jobs.

    DIR is the folder that holds 'system' and 'framework', or its address: s3://bucket/prefix.
    """


@profile.command(epilog="rule-runner profile show runs/profile")
@_FOLDER
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table")
@flag("--check", "Read all data, and report what is damaged.")
@endpoint_option
@quiet_reporting
def show(folder: str, form: str, check: bool) -> None:
    """Show nodes, times and files of the profiler data in DIR."""
    from rule_runner.commands.profile.command import show_profile

    show_profile(folder, form, check=check)


@profile.command(
    context_settings={"allow_interspersed_args": False},
    epilog="rule-runner profile record -o runs/profile -- python train.py",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@output("Folder of the profile, or s3://bucket/prefix.")
@takes_recording()
@endpoint_option
@reporting
def record(
    command: tuple[str, ...], output: str | None, recording: "RecordingOptions | None"
) -> int:
    """Run COMMAND and record its profile.

    COMMAND may be an unchanged training script. The system is sampled while it runs. PyTorch,
    XGBoost and Keras 3 are hooked when one of its Python processes imports them, and the steps of
    their trainings become a timeline. The exit code is that of COMMAND.
    """
    from rule_runner.commands.profile.record import record as run_record
    from rule_runner.commands.profile.recording_options import RecordingOptions

    return run_record(command, output, recording or RecordingOptions())


@profile.command(epilog="rule-runner profile report runs/profile -o out")
@_FOLDER
@output("Output folder.")
@click.option("-p", "--param", multiple=True, metavar="RULE_KEY=VALUE", help="Parameter of a rule.")
@flag("--overwrite", "Replace an evaluation in the output folder.")
@endpoint_option
@reporting
def report(folder: str, output: str | None, param: tuple[str, ...], overwrite: bool) -> int:
    """Evaluate all profiler rules over DIR and write a report."""
    from rule_runner.commands.profile import command as commands

    return commands.report(folder, output, param, overwrite=overwrite)


@profile.command(
    epilog="rule-runner profile timeline runs/profile --unit step --start 10 --end 20 -o trace.json"
)
@_FOLDER
@text("--start", "T", "Start: epoch seconds, a time in ISO format, or a step.")
@text("--end", "T", "End in the same notation; a step is not included.")
@click.option("--unit", type=click.Choice(["time", "step"]), default="time", show_default=True)
@click.option("--mode", type=_MODE, help="Mode of the steps.")
@output("File of the trace.", "FILE", default="trace.json", show_default=True)
@endpoint_option
@quiet_reporting
def timeline(
    folder: str, start: str | None, end: str | None, unit: str, mode: str | None, output: str
) -> None:
    """Merge timelines and metrics in DIR into a Perfetto trace."""
    from rule_runner.commands.profile import command as commands

    commands.timeline(folder, start, end, unit, mode, output)


@profile.command(epilog="rule-runner profile python runs/profile --sort cumtime -n 10")
@_FOLDER
@text("--step", "FIRST:LAST", "Range of steps, without the last.")
@text("--mode", "MODE", "train, eval, predict, prestepzero, ...")
@text("--node", "NAME", "One node; by default the sum of all.")
@click.option("-n", "count", type=click.IntRange(0), default=20, show_default=True)
@click.option(
    "--sort",
    type=click.Choice(["tottime", "cumtime", "ncalls", "pcalls", "memory"]),
    default="tottime",
    show_default=True,
    help="memory: of scalene.",
)
@flag("--lines", "Lines in place of functions: speedscope, scalene.")
@endpoint_option
@quiet_reporting
def python(
    folder: str,
    step: str | None,
    mode: str | None,
    node: str | None,
    count: int,
    sort: str,
    *,
    lines: bool,
) -> None:
    """Show the Python functions in DIR that took the most time.

    DIR has profiles of cProfile, or is a file or a folder of py-spy's speedscope or of scalene.
    """
    from rule_runner.commands.profile import command as commands

    commands.python(folder, step, mode, node, count, sort, lines=lines)
