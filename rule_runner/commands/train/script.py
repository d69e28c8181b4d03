"""TrainingScript: a user's script in a session of its own, what it says, and how it is ended."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from rule_core.saving.auto_hook import FOLDER, HOOK, PIPE
from rule_runner.errors import EXIT_SIGNAL, UsageError

SITE: Final = Path(__file__).with_name("site")
HOOK_FILE: Final = "SMDEBUG_CONFIG_FILE_PATH"
_LOOK_S: Final = 0.05  # nothing tells that the last process of a group has ended


def environment(control: Path) -> dict[str, str]:
    """Return the environment that makes every Python below the script hook what it trains.

    A script that reads the hook's JSON file by itself, as on SageMaker, gets the same one.
    """
    paths = [str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        HOOK_FILE: str(control / HOOK),
        **os.environ,
        FOLDER: str(control),
        "PYTHONPATH": os.pathsep.join(paths),
    }


class TrainingScript:
    """A script that runs; its streams are those of this process.

    Parameters
    ----------
    process
        As `start` makes it.
    control
        Folder that holds the hook's configuration, and the pipe that the script's Pythons write to.
    heard
        Called with each object that they write.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        control: Path,
        heard: Callable[[Mapping[str, str]], None],
    ) -> None:
        self._process = process
        self._heard = heard
        self._rest = b""
        # Open for writing too: otherwise it would end whenever a writer closes.
        self._pipe = os.open(control / PIPE, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._pipe, self._listen)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        control: Path,
        heard: Callable[[Mapping[str, str]], None],
    ) -> "TrainingScript":
        """Start it.

        Raises
        ------
        UsageError
            If it cannot be started.
        """
        os.mkfifo(control / PIPE)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, env=environment(control), start_new_session=True
            )
        except OSError as err:
            python = f" Write: python {command[0]}." if command[0].endswith(".py") else ""
            msg = f"{command[0]!r} cannot be started: {os.strerror(err.errno or 0)}.{python}"
            raise UsageError(msg) from err
        return cls(process, control, heard)

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.returncode is None

    @property
    def exit_code(self) -> int:
        """Its exit code as a shell gives it: 128 and the number of the signal that killed it."""
        code = self._process.returncode or 0
        return code if code >= 0 else EXIT_SIGNAL - code

    async def wait(self) -> None:
        """Return when it has ended, and all that it said was heard."""
        await self._process.wait()
        self._listen()

    def close(self) -> None:
        """Listen no more."""
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)

    def _listen(self) -> None:
        with suppress(BlockingIOError):
            while part := os.read(self._pipe, 1 << 16):
                *lines, self._rest = (self._rest + part).split(b"\n")
                for line in lines:
                    with suppress(ValueError):  # whoever finds the pipe may write to it
                        self._heard(json.loads(line))

    def send(self, number: int) -> None:
        """Send a signal: as a terminal does to all its processes, SIGTERM to the first only.

        Workers that load data must not be ended under a script that writes its last checkpoint.
        """
        with suppress(ProcessLookupError):
            if number == signal.SIGTERM:
                self._process.send_signal(number)
            else:
                os.killpg(self._process.pid, number)

    async def stop(self, grace: float) -> None:
        """End it and all that it started: by SIGTERM, after `grace` seconds by SIGKILL."""
        self.send(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), grace)
            await self.clear(grace)
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def clear(self, grace: float) -> None:
        """Ask what it has left behind in its session to end, and give it `grace` seconds."""
        with suppress(ProcessLookupError, TimeoutError):
            os.killpg(self._process.pid, signal.SIGTERM)
            async with asyncio.timeout(grace):
                while True:
                    await asyncio.sleep(_LOOK_S)
                    os.killpg(self._process.pid, 0)
