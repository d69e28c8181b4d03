"""train: runs a training script and evaluates rules over what it saves."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rule_runner.cli.evaluation import TRAIN, with_request
from rule_runner.cli.options import count, flag, heading, number, output, takes, text
from rule_runner.cli.profiling import takes_recording
from rule_runner.cli.program.help_pages import Heading, HelpedCommand
from rule_runner.cli.reporting import reporting

if TYPE_CHECKING:
    from rule_runner.commands.profile.recording_options import RecordingOptions
    from rule_runner.config.request import EvaluationRequest


@click.command(
    cls=HelpedCommand,
    context_settings={"allow_interspersed_args": False},
    epilog="rule-runner train -- python train.py\n"
    "rule-runner train --fail-on error -o out/run -- python train.py --epochs 3",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@heading(Heading.RESULTS)
@output("Output folder.")
@heading(Heading.TRIAL)
@text(
    "--trial", "DIR", "Folder to save to; by default 'trial' in the output folder.", "trial_folder"
)
@text(
    "--hook-config",
    "FILE",
    "Hook configuration in JSON: what to save, and when.",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
)
@text("--collections", "A,B", "Collections to save; by default those that the rules read.")
@count("--save-interval", "Save every Nth step; by default as --hook-config says, else every 10th.")
@click.option(
    "--preset",
    type=click.Choice(["none", "llm"]),
    help="What to measure besides the collections; by default as the model requires.",
)
@heading(Heading.EVENTS)
@flag("--stop-on-finding", "Stop the training at the first error of a rule in mode enforce.")
@number("--grace", "Time between SIGTERM and SIGKILL when the training is stopped.", 30.0)
@heading(Heading.PROFILE)
@flag("--profile", "Record a profile too, with a report.")
@takes_recording("profile-")
@takes(TRAIN)
@reporting
@with_request
def train(
    request: "EvaluationRequest",
    command: tuple[str, ...],
    trial_folder: str | None,
    hook_config: Path | None,
    collections: str | None,
    save_interval: int | None,
    preset: str | None,
    stop_on_finding: bool,
    grace: float,
    profile: bool,
    recording: "RecordingOptions | None",
) -> int:
    """Run a training script and judge its tensors meanwhile.

    COMMAND starts the script, which needs no change. PyTorch, XGBoost and Keras 3 are hooked when
    it imports them. The exit code is the script's, or 10 if a rule stopped it or --fail-on-issues
    applies. With --format json, junit or sarif, the results of each training follow on standard
    output when the script has ended.
    """
    from rule_runner.commands.profile.recording_options import RecordingOptions
    from rule_runner.commands.train.command import train as run_train

    return run_train(
        request,
        command,
        trial_folder=trial_folder,
        hook_config=hook_config,
        collections=collections,
        save_interval=save_interval,
        preset=preset,
        stop_on_finding=stop_on_finding,
        grace=grace,
        profile=recording or (RecordingOptions() if profile else None),
    )
