"""CommandAction: runs a command with the finding on its standard input."""

import os
import subprocess
import threading
from dataclasses import dataclass
from typing import ClassVar, Final

from rule_core.processes import signal_group, start
from rule_core.rules.actions.base import Action, ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_runner.logs import get_logger
from rule_runner.results.json_text import dump_json

_log: Final = get_logger(__name__)
OUTPUT_LIMIT: Final = 4096  # bytes that are logged
_CHUNK: Final = 65536
_OUTPUT_WAIT_S: Final = 1.0  # for output held open by processes that left the group


@dataclass(frozen=True, repr=False)
class CommandAction(Action):
    """Run a command, without a shell, in a separate process group.

    It gets the environment of this process, and the finding as one line of JSON on its standard
    input. When it has ended, or its time is over, the rest of its process group is killed.

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
        return self.argv[0].rpartition("/")[2]

    def plan(self, trigger: ActionTrigger) -> str:
        """Describe the command."""
        return f"Command {self.target!r} would be run for rule {trigger.rule!r}."

    def carry_out(self, trigger: ActionTrigger, deadline: Deadline) -> ActionOutcome:
        """Run the command until it ends or its time is over."""
        reading, writing = os.pipe()
        output = _CommandOutput(reading)
        try:
            facts = dump_json(trigger.facts).encode() + b"\n"
            process = start(self.argv, facts, stdout=writing, stderr=subprocess.STDOUT)
        except (OSError, ValueError) as err:
            why = getattr(err, "strerror", None) or err
            text = f"Command {self.target!r} could not be run: {why}."
            return ActionOutcome(ActionState.FAILED, text)
        finally:
            os.close(writing)
        return self._ended(process, output, deadline.remaining_s())

    def _ended(
        self, process: "subprocess.Popen[bytes]", output: "_CommandOutput", seconds: float
    ) -> ActionOutcome:
        """Wait for the end of a command, and return its outcome."""
        timed_out = threading.Event()

        def time_out() -> None:
            timed_out.set()
            signal_group(process.pid)

        timer = threading.Timer(seconds, time_out)
        timer.daemon = True
        timer.start()
        # Not reaped yet, so that the process group keeps its number.
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        timer.cancel()
        signal_group(process.pid)
        code = process.wait()
        _log.debug("command_ended", command=self.target, code=code, output=output.text())
        if timed_out.is_set():
            text = f"Command {self.target!r} took longer than {seconds:.3g} s and was killed."
            return ActionOutcome(ActionState.FAILED, text)
        state = ActionState.FAILED if code else ActionState.DONE
        return ActionOutcome(state, f"Command {self.target!r} ended with exit code {code}.")


class _CommandOutput:
    """Reads the whole output of a command, and keeps its beginning."""

    def __init__(self, fd: int) -> None:
        self._head = bytearray()
        self._thread = threading.Thread(target=self._read, args=(fd,), daemon=True)
        self._thread.start()

    def _read(self, fd: int) -> None:
        with open(fd, "rb", buffering=0) as stream:
            while chunk := stream.read(_CHUNK):
                self._head += chunk[: max(0, OUTPUT_LIMIT - len(self._head))]

    def text(self) -> str:
        """Return the output so far, without waiting for processes outside the group."""
        self._thread.join(_OUTPUT_WAIT_S)
        return bytes(self._head).decode("utf-8", "replace")
