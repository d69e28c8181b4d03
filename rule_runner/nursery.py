"""Nursery: a process that has imported what rules need, and begins a process for each of them.

::

    runner --- nursery                   forks a keeper for each rule that the runner asks for
       |          `-- keeper --- rule    the keeper ends the rule, and all that it started,
       |__________/_______________/      when the rule or the runner is gone

The rule and its keeper have a socket to the runner each, so that no rule can keep its own end from
being seen. All that is left of a rule when the keeper leaves is what made a session of its own.
"""

import socket
import struct
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Final

from rule_runner.errors import ClientError

# The path is that of the runner: what it can import, rules can import.
_BOOT: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from rule_runner.keepers import raise_children; raise_children(int(sys.argv[1]))"
)
_STDERR: Final = 2  # where a rule's output goes: stdout carries results only
_LONGEST_ANSWER: Final = 64 << 20  # bytes
_ENDING_S: Final = 5.0  # for a process to be gone once it was killed
_PARTING_S: Final = 1.0  # for its exit code to come once its connection is closed
EXIT_CODE: Final = struct.Struct("i")  # as a keeper tells it


class GoneError(Exception):
    """A process has ended, or does not want to be talked to any more.

    Parameters
    ----------
    code
        What it ended with, negative for a signal; None if it was ended for its silence.
    """

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class Ward:
    """The runner's side of a rule's process: questions, answers, and its end."""

    def __init__(self, talk: Connection, control: socket.socket) -> None:
        self._talk = talk
        self._control = control

    def ask(self, question: object) -> None:
        """Send a question; that nobody hears it is seen when the answer is awaited."""
        with suppress(OSError):
            self._talk.send(question)

    def answer(self, limit: float | None) -> bytes:
        """Return the next answer.

        Parameters
        ----------
        limit
            Seconds to wait for it; None is for ever.

        Raises
        ------
        TimeoutError
            If it does not come in time.
        GoneError
            If it will not come.
        """
        ready = wait([self._talk, self._control], limit)
        if not ready:
            raise TimeoutError
        if self._talk in ready:
            with suppress(EOFError, OSError):
                return self._talk.recv_bytes(_LONGEST_ANSWER)
            wait([self._control], _PARTING_S)
        raise GoneError(self.close())

    def close(self) -> int | None:
        """End the process with all that it started; return its exit code if it had ended.

        Doing so twice does no more than once.
        """
        if self._control.fileno() < 0:
            return None
        ended = bool(wait([self._control], 0))
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        self._control.settimeout(_ENDING_S)
        code = b""
        with suppress(OSError):
            code = self._control.recv(EXIT_CODE.size)
        self._control.close()
        self._talk.close()
        return EXIT_CODE.unpack(code)[0] if ended and code else None


class Nursery:
    """Begins processes for rules; one of its own does the work, so that each begins at once.

    Parameters
    ----------
    limit
        Seconds that a rule may take for a step; None is for ever.
    environment
        What rules see of the environment; None is all.
    """

    def __init__(
        self, limit: float | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.limit = limit
        self._server, theirs = socket.socketpair()
        with theirs:
            fd = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603 - ourselves
                [sys.executable, "-c", _BOOT, str(fd), *sys.path],
                env=environment,
                pass_fds=(fd,),
                stdin=subprocess.DEVNULL,
                stdout=_STDERR,
                start_new_session=True,  # Ctrl-C is for the runner: a step in hand is finished
            )

    def begin(self) -> Ward:
        """Begin a process, which waits for its first question.

        Raises
        ------
        ClientError
            If there can be none.
        """
        talk, theirs = socket.socketpair()
        control, their_control = socket.socketpair()
        with theirs, their_control:
            try:
                socket.send_fds(self._server, [b"."], [theirs.fileno(), their_control.fileno()])
            except OSError as err:
                talk.close()
                control.close()
                code = self._process.poll()
                msg = f"No process can be had for rules: theirs has ended, exit code {code}."
                raise ClientError(msg) from err
        return Ward(Connection(talk.detach()), control)

    def close(self) -> None:
        """Begin no more processes; those that were begun are for others to end."""
        self._server.close()
        self._process.kill()
        self._process.wait()
