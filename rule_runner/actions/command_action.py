"""CommandAction: runs a command of the operator's with the finding on its standard input."""

import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final

import structlog

from rule_runner.results import dump_json
from smdebug.rules.action.base import Action, ActionState, Fired, Limits, Outcome

_log: Final = structlog.get_logger()
OUTPUT_LIMIT: Final = 4096  # bytes that are logged
_CHUNK: Final = 65536
_LAST_WORDS_S: Final = 1.0  # for output that is held open by what left the group


@dataclass(frozen=True, repr=False)
class CommandAction(Action):
    """Run a command, without a shell, in a process group of its own.

    It has the environment of this process, and the finding as one line of JSON on its standard
    input. When it has ended, or its time is over, whatever is left of its group is killed.

    Parameters
    ----------
    argv
        The program and its arguments.
    """

    argv: tuple[str, ...]
    rule_name: str = ""
    name: ClassVar[str] = "command"

    @property
    def target(self) -> str:
        """The program: its arguments may hold secrets."""
        return os.path.basename(self.argv[0])  # noqa: PTH119 - no path is meant

    def plan(self, fired: Fired) -> str:
        """Return what would be run."""
        return f"Command {self.target!r} would be run for rule {fired.rule!r}."

    def carry_out(self, fired: Fired, limits: Limits) -> Outcome:
        """Run it to its end, or to the end of its time."""
        reading, writing = os.pipe()
        output = _Output(reading)
        try:
            with tempfile.TemporaryFile() as given:  # a pipe that nobody reads would hold us up
                given.write(dump_json(fired.facts).encode() + b"\n")
                given.seek(0)
                process = subprocess.Popen(  # noqa: S603 - the operator's own command line
                    self.argv,
                    stdin=given,
                    stdout=writing,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
        except (OSError, ValueError) as err:
            why = getattr(err, "strerror", None) or err
            text = f"Command {self.target!r} could not be run: {why}."
            return Outcome(ActionState.FAILED, text)
        finally:
            os.close(writing)
        return self._ended(process, output, limits.left())

    def _ended(
        self, process: "subprocess.Popen[bytes]", output: "_Output", seconds: float
    ) -> Outcome:
        """Wait for the end of a command, and return what it came to."""
        late = threading.Event()

        def too_late() -> None:
            late.set()
            _kill(process.pid)

        timer = threading.Timer(seconds, too_late)
        timer.daemon = True
        timer.start()
        # Not reaped yet, so that the number stays that of its group.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        timer.cancel()
        _kill(process.pid)
        code = process.wait()
        _log.debug("command_ended", command=self.target, code=code, output=output.text())
        if late.is_set():
            text = f"Command {self.target!r} took longer than {seconds:.3g} s and was killed."
            return Outcome(ActionState.FAILED, text)
        state = ActionState.FAILED if code else ActionState.DONE
        return Outcome(state, f"Command {self.target!r} ended with exit code {code}.")


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


class _Output:
    """Reads all that a command writes, and keeps its beginning."""

    def __init__(self, fd: int) -> None:
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, args=(fd,), daemon=True)
        self._thread.start()

    def _read(self, fd: int) -> None:
        with open(fd, "rb", buffering=0) as stream:
            while chunk := stream.read(_CHUNK):
                self._kept += chunk[: max(0, OUTPUT_LIMIT - len(self._kept))]

    def text(self) -> str:
        """Return what was written; what a process outside the group writes yet is not awaited."""
        self._thread.join(_LAST_WORDS_S)
        return bytes(self._kept).decode("utf-8", "replace")
