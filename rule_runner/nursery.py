"""Nursery: a process that has imported what rules need, and begins a process for each of them.

::

    runner --- nursery                   forks a keeper for each rule that the runner asks for
       |          `-- keeper --- rule    the keeper ends the rule, and all that it started,
       |__________/_______________/      when the rule or the runner is gone

The rule and its keeper have a socket to the runner each, so that no rule can keep its own end from
being seen. All that is left of a rule when the keeper leaves is what made a session of its own.
"""

import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Final

from rule_runner.errors import ClientError

# The path is that of the runner: what it can import, rules can import.
_BOOT: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from rule_runner.nursery import raise_children; raise_children(int(sys.argv[1]))"
)
_STDERR: Final = 2  # where a rule's output goes: stdout carries results only
_LONGEST_ANSWER: Final = 64 << 20  # bytes
_ENDING_S: Final = 5.0  # for a process to be gone once it was killed
_PARTING_S: Final = 1.0  # for its exit code to come once its connection is closed
_CODE: Final = struct.Struct("i")
_WORST: Final = "1000"  # if memory is short, the kernel is to end the rule, not the runner


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
            code = self._control.recv(_CODE.size)
        self._control.close()
        self._talk.close()
        return _CODE.unpack(code)[0] if ended and code else None


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


def raise_children(fd: int) -> None:
    """Fork keepers until the runner is gone: what the nursery's process does."""
    import builtin_rules  # noqa: F401, PLC0415 - for its copies, not for the runner
    import rule_runner.openings  # noqa: F401, PLC0415 - likewise

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks what became of keepers
    with socket.socket(fileno=fd) as server:
        while True:
            asked, fds, _, _ = socket.recv_fds(server, 1, 2)
            if not asked:
                return
            talk, control = fds
            if not os.fork():
                server.close()
                _keep(talk, control)
            os.close(talk)
            os.close(control)


def _keep(talk: int, control: int) -> None:
    """Fork a rule's process, and see to its end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if not pid:
        os.close(control)
        _become_a_rule(talk)
    os.close(talk)
    runner = socket.socket(fileno=control)
    threading.Thread(target=_end_with_runner, args=(runner, pid), daemon=True).start()
    _, status = os.waitpid(pid, 0)
    _kill(pid)
    with suppress(OSError):
        runner.send(_CODE.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _become_a_rule(talk: int) -> None:
    """Answer what the runner asks, in a session of its own."""
    from rule_runner.child import serve  # noqa: PLC0415 - it imports this module

    os.setsid()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_WORST)
    code = 1
    try:
        serve(Connection(talk))
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, nothing of the nursery is to run here
        traceback.print_exc()
    finally:
        os._exit(code)


def _end_with_runner(runner: socket.socket, pid: int) -> None:
    """End a rule's process when the runner has closed its end, or is gone."""
    with suppress(OSError):
        runner.recv(1)
    _kill(pid)


def _kill(pid: int) -> None:
    """End a process, if it is there, and all of its session."""
    for kill in (os.kill, os.killpg):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
