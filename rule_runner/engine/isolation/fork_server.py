"""ForkServer: a process with the imports of rules, which forks a worker for each of them.

::

    runner --- fork server                       forks a supervisor for each requested rule
       |            `-- supervisor --- worker    kills the worker, and all that it started,
       |____________/_________________/          when the worker or the runner ends

The worker and its supervisor each have a socket to the runner, so that a rule cannot hide its own
end. The runner continues the others if a rule has stopped them. Only processes that a rule has
moved to a session of their own outlive the supervisor.
"""

import re
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Final

from rule_core.processes import signal_group, start
from rule_runner.errors import ClientError

# The import path is that of the runner: rules can import what the runner can.
_BOOT: Final = (
    "import sys; sys.path[:] = sys.argv[2:]; "
    "from rule_runner.engine.isolation.fork_server_main import serve; "
    "serve(int(sys.argv[1]))"
)
# Variables that programs need to run, and limits on the resources that they use.
_ALWAYS: Final = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|PWD|TERM|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TEMP|TMP"
    r"|LD_LIBRARY_PATH|DYLD_(FALLBACK_)?LIBRARY_PATH|VIRTUAL_ENV|CONDA_PREFIX"
    r"|(OMP|OPENBLAS|MKL|NUMEXPR|VECLIB_MAXIMUM)_NUM_THREADS|CUDA_VISIBLE_DEVICES"
    r"|PYTHON(PATH|HOME|HASHSEED|UTF8|IOENCODING|UNBUFFERED|DONTWRITEBYTECODE|NOUSERSITE"
    r"|WARNINGS|FAULTHANDLER|MALLOC)"
    r"|SMDEBUG_\w+|RULE_RUNNER_CACHE\w*"
)
# Variables for reading from S3, including credentials.
_FOR_S3: Final = re.compile(
    r"AWS_\w+|RULE_RUNNER_S3_\w+|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy"
    r"|SSL_CERT_(FILE|DIR)|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
)
_STDERR: Final = 2  # receives the output of rules: stdout carries results only
_MAX_ANSWER: Final = 64 << 20  # bytes
_KILL_S: Final = 5.0  # for a process to end once it is killed
_EXIT_CODE_S: Final = 1.0  # for the exit code to arrive once the connection is closed
EXIT_CODE: Final = struct.Struct("i")  # as a supervisor sends it


class GoneError(Exception):
    """A worker has ended or closed its connection.

    Parameters
    ----------
    code
        Its exit code, negative for a signal; None if it was killed because it stopped answering.
    """

    def __init__(self, code: int | None) -> None:
        super().__init__(code)
        self.code = code


class WorkerHandle:
    """The runner's end of a worker: sends requests, receives answers, and ends the process.

    Parameters
    ----------
    group
        The process group of its supervisor.
    """

    def __init__(self, connection: Connection, control: socket.socket, group: int) -> None:
        self._connection = connection
        self._control = control
        self._group = group

    def ask(self, request: object) -> None:
        """Send a request; `answer` reports a worker that has ended."""
        with suppress(OSError):
            self._connection.send(request)

    def answer(self, limit: float | None) -> bytes:
        """Return the next answer.

        Parameters
        ----------
        limit
            Seconds to wait; None waits without limit.

        Raises
        ------
        TimeoutError
            If no answer arrives in time.
        GoneError
            If the worker has ended or closed its connection.
        """
        ready = wait([self._connection, self._control], limit)
        if not ready:
            raise TimeoutError
        if self._connection in ready:
            with suppress(EOFError, OSError):
                return self._connection.recv_bytes(_MAX_ANSWER)
            _continue(self._group)
            wait([self._control], _EXIT_CODE_S)
        raise GoneError(self.close())

    def close(self) -> int | None:
        """Kill the process and all that it started; return its exit code if it had ended.

        A second call has no effect.
        """
        if self._control.fileno() < 0:
            return None
        ended = bool(wait([self._control], 0))
        _continue(self._group)
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        self._control.settimeout(_KILL_S)
        code = b""
        with suppress(OSError):
            code = self._control.recv(EXIT_CODE.size)
        self._control.close()
        self._connection.close()
        return EXIT_CODE.unpack(code)[0] if ended and code else None


class ForkServer:
    """Starts worker processes by forking a process that has already imported what rules need.

    Parameters
    ----------
    limit
        Seconds that a rule may take for a step; None is no limit.
    environment
        Environment variables of the rules; None means all of this process.
    """

    def __init__(
        self, limit: float | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self.limit = limit
        self._server, server_end = socket.socketpair()
        with server_end:
            fd = server_end.fileno()
            command = [sys.executable, "-c", _BOOT, str(fd), *sys.path]
            # In a session of its own: Ctrl-C must not interrupt the current step.
            self._process = start(command, env=environment, pass_fds=(fd,), stdout=_STDERR)

    def begin(self) -> WorkerHandle:
        """Start a worker, which waits for its first request.

        Raises
        ------
        ClientError
            If the fork server has ended.
        """
        connection, worker_end = socket.socketpair()
        control, supervisor_end = socket.socketpair()
        _continue(self._process.pid)
        with worker_end, supervisor_end:
            try:
                fds = [worker_end.fileno(), supervisor_end.fileno()]
                socket.send_fds(self._server, [b"."], fds)
            except OSError as err:
                connection.close()
                control.close()
                code = self._process.poll()
                raise ClientError(
                    f"Cannot start a process for rules: the fork server ended, exit code {code}."
                ) from err
        return WorkerHandle(Connection(connection.detach()), control, self._process.pid)

    def close(self) -> None:
        """Stop forking. Running workers are stopped by their owners."""
        self._server.close()
        self._process.kill()
        self._process.wait()


def _continue(group: int) -> None:
    """Continue a fork server and its supervisors if a rule has stopped them."""
    signal_group(group, signal.SIGCONT)


def allowed_environment(environment: Mapping[str, str], *, remote: bool) -> dict[str, str]:
    """Return the variables that a process needs to read trials, `remote` ones or not.

    >>> environment = {"PATH": "/bin", "AWS_PROFILE": "me", "API_TOKEN": "x"}
    >>> allowed_environment(environment, remote=False)
    {'PATH': '/bin'}
    >>> allowed_environment(environment, remote=True)
    {'PATH': '/bin', 'AWS_PROFILE': 'me'}
    """
    return {
        name: value
        for name, value in environment.items()
        if _ALWAYS.fullmatch(name) or (remote and _FOR_S3.fullmatch(name))
    }
