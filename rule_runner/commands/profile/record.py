"""record: runs a script, and records its profile."""

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from rule_runner.commands.profile.recording import ProfileRecording, recorded
from rule_runner.commands.profile.recording_options import RecordingOptions
from rule_runner.commands.train.script import (
    ForwardedSignals,
    TrainingScript,
    say,
    script_name,
    write_hook,
)
from rule_runner.config.model import default_output

GRACE_S: Final = 30.0  # for the processes that remain after SIGTERM, as in `train`
# A hook that counts steps, and saves nothing.
_HOOK: Final = {"HookParameters": {"include_workers": "none"}, "CollectionConfigurations": ()}


def record(command: Sequence[str], folder: str | None, options: RecordingOptions) -> int:
    """Run a command, record its profile, and return the command's exit code.

    Raises
    ------
    ClientError, UsageError, OutputError
        If an option is wrong; then the command is not run.
    """
    output = folder or str(default_output(f"{script_name(command)}-profile"))
    with tempfile.TemporaryDirectory(prefix="rule-runner-") as name:
        control = Path(name)
        write_hook(control, {**_HOOK, "LocalPath": str(control / "trial")})
        return asyncio.run(_run(command, control, ProfileRecording(options, output, control, say)))


async def _run(command: Sequence[str], control: Path, recording: ProfileRecording) -> int:
    """Run the command, sample the system meanwhile, and say what was recorded."""
    signals = ForwardedSignals(lambda: None)
    recording.start()
    follower = asyncio.create_task(recording.follow())
    try:
        script = await TrainingScript.start(
            command, control, lambda _: None, recording.environment()
        )
        signals.script = script
        with closing(script):
            await signals.wait(script, GRACE_S)
    finally:
        follower.cancel()
        recording.end()
    say(f"The command ended with exit code {script.exit_code}.")
    for sentence in recorded(recording, script.frameworks, script.missed):
        say(sentence)
    return script.exit_code
