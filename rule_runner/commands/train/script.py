"""TrainingScript: runs a user's script in its own session, with its messages and signals."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from rule_core.processes import environment_with, signal_group
from rule_core.saving.auto_hook import FOLDER, HOOK, PIPE, print_line
from rule_runner.errors import EXIT_SIGNAL, UsageError, reason_of, translated
from rule_runner.escape import printable

SITE: Final = Path(__file__).with_name("site")
FORWARDED: Final = (
    *(signal.SIGINT, signal.SIGTERM, signal.SIGHUP),
    *(signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2),
)
_ENDING: Final = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP})
_POLL_S: Final = 0.05  # no event reports the end of the last process of a group


def script_name(command: Sequence[str]) -> str:
    """Return the name of a script: a Python file, module or other file, or its program."""
    program, *words = command
    files = [word for word in words if word.endswith(".py")]
    modules = [word.rpartition(".")[2] for option, word in pairwise(command) if option == "-m"]
    paths = [word for word in words if Path(word).is_file()]
    return Path((*files, *modules, *paths, program)[0]).stem


class TrainingScript:
    """A running script; it shares the standard streams of this process.

    Parameters
    ----------
    process
        The process that `start` creates.
    control
        Folder with the hook's configuration, and the pipe that the script's Pythons write to.
    on_trial
        Called with the path of each trial that they name.

    Attributes
    ----------
    frameworks
        The frameworks that they have imported.
    missed
        Why trainings of theirs are not evaluated.
    """

    def __init__(
        self, process: asyncio.subprocess.Process, control: Path, on_trial: Callable[[str], None]
    ) -> None:
        self.frameworks: list[str] = []
        self.missed: list[str] = []
        self._process = process
        self._on_trial = on_trial
        self._rest = b""
        # Also open for writing: otherwise the pipe would end when its last writer closes it.
        self._pipe = os.open(control / PIPE, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._pipe, self._listen)

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        control: Path,
        on_trial: Callable[[str], None],
        variables: Mapping[str, str],
    ) -> "TrainingScript":
        """Start a script with further variables in its environment.

        Raises
        ------
        UsageError
            If it cannot be started.
        """
        os.mkfifo(control / PIPE)
        # This makes every Python of the script hook its trainings.
        hooked = environment_with(SITE, {**os.environ, **variables, FOLDER: str(control)})
        python = f" Write: python {command[0]}." if command[0].endswith(".py") else ""
        problem, remedy = f"{command[0]!r} cannot be started: ", f".{python}"
        with translated(UsageError, OSError, before=problem, after=remedy, words=reason_of):
            process = await asyncio.create_subprocess_exec(
                *command, env=hooked, start_new_session=True
            )
        return cls(process, control, on_trial)

    @property
    def runs(self) -> bool:
        """Whether the script has not ended."""
        return self._process.returncode is None

    @property
    def exit_code(self) -> int:
        """Its exit code as a shell gives it: 128 and the number of the signal that killed it."""
        code = self._process.returncode or 0
        return code if code >= 0 else EXIT_SIGNAL - code

    async def wait(self) -> None:
        """Wait until the script has ended and all its messages are received."""
        await self._process.wait()
        self._listen()

    def close(self) -> None:
        """Close the pipe."""
        asyncio.get_running_loop().remove_reader(self._pipe)
        os.close(self._pipe)

    def _listen(self) -> None:
        with suppress(BlockingIOError):
            while part := os.read(self._pipe, 1 << 16):
                *lines, self._rest = (self._rest + part).split(b"\n")
                for line in lines:
                    with suppress(ValueError):  # any process may write to the pipe
                        self._hear(json.loads(line))

    def _hear(self, message: Mapping[str, str]) -> None:
        match message:
            case {"framework": str(name)} if name not in self.frameworks:
                self.frameworks.append(name)
            case {"missed": str(text)} if text not in self.missed:
                self.missed.append(text)
            case {"trial": str(path)}:
                self._on_trial(path)
            case _:  # nothing of ours
                pass

    def send(self, number: int) -> None:
        """Send a signal to all processes, as a terminal does, but SIGTERM only to the first.

        A script may need its data workers to write the last checkpoint.
        """
        if number != signal.SIGTERM:
            signal_group(self._process.pid, number)
            return
        with suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def stop(self, grace: float) -> None:
        """End the script and its children: by SIGTERM, after `grace` seconds by SIGKILL."""
        self.send(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), grace)
            await self.clear(grace)
        signal_group(self._process.pid)

    async def clear(self, grace: float) -> None:
        """Send SIGTERM to the processes that remain in the session; wait up to `grace` seconds."""
        with suppress(ProcessLookupError, TimeoutError):
            os.killpg(self._process.pid, signal.SIGTERM)
            async with asyncio.timeout(grace):
                while True:
                    await asyncio.sleep(_POLL_S)
                    os.killpg(self._process.pid, 0)


def write_hook(control: Path, document: Mapping[str, Any]) -> None:
    """Write the configuration of the hooks that the script's Pythons create."""
    (control / HOOK).write_text(json.dumps(document), "utf-8")


def unseen(frameworks: Sequence[str]) -> str:
    """Return why no training was seen in a script that imported frameworks."""
    if frameworks:
        return f"It imported {' and '.join(frameworks)}, and no training of a model was seen."
    return (
        "No Python of it that has rule-runner imported PyTorch, XGBoost or Keras "
        "(with -I, -E or -S Python ignores who starts it)."
    )


def say(text: str) -> None:
    """Print a sentence between the lines that the script writes to stderr."""
    print_line(f"rule-runner: {printable(text)}")


class ForwardedSignals:
    """Passes the signals of this process to a script while it runs.

    Parameters
    ----------
    on_end
        Called if this process is asked to end after the script has.

    Attributes
    ----------
    script
        The script, once it runs.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        self.script: TrainingScript | None = None
        self._on_end = on_end
        self._asked_to_end = False
        loop = asyncio.get_running_loop()
        for number in FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup ignores SIGHUP
                loop.add_signal_handler(number, self._forward, number)

    def _forward(self, number: int) -> None:
        if self.script is not None and self.script.runs:
            self._asked_to_end = self._asked_to_end or number == signal.SIGTERM
            self.script.send(number)
        elif number in _ENDING:
            self._on_end()

    async def wait(self, script: TrainingScript, grace: float) -> None:
        """Wait until a script has ended; after SIGTERM, for its other processes too.

        Parameters
        ----------
        grace
            Seconds in which these may end.
        """
        await script.wait()
        if self._asked_to_end:
            await script.clear(grace)
