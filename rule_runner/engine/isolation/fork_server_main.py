"""Main function of the fork server: it forks supervisors, which fork and end workers."""

import os
import signal
import socket
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import builtin_rules.declared_rule  # noqa: F401 - workers inherit the import
import rule_runner.engine.invoker_factory  # noqa: F401 - likewise
from rule_runner.engine.isolation.fork_server import EXIT_CODE
from rule_runner.engine.isolation.worker import answer_requests

_OOM_SCORE: Final = "1000"  # if memory is short, the kernel kills the rule, not the runner


def serve(fd: int) -> None:
    """Fork a supervisor for each request until the runner has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # exit codes of supervisors are not needed
    with socket.socket(fileno=fd) as server:
        while True:
            request, fds, _, _ = socket.recv_fds(server, 1, 2)
            if not request:
                return
            connection, control = fds
            if not os.fork():
                server.close()
                _supervise(connection, control)
            os.close(connection)
            os.close(control)


def _supervise(connection: int, control: int) -> None:
    """Fork a worker, and kill it when it or the runner ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    pid = os.fork()
    if not pid:
        os.close(control)
        _run_worker(connection)
    os.close(connection)
    runner = socket.socket(fileno=control)
    threading.Thread(target=_end_with_runner, args=(runner, pid), daemon=True).start()
    _, status = os.waitpid(pid, 0)
    _kill(pid)
    with suppress(OSError):
        runner.send(EXIT_CODE.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _run_worker(connection: int) -> None:
    """Answer the requests of the runner, in a new session."""
    os.setsid()
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_OOM_SCORE)
    code = 1
    try:
        answer_requests(Connection(connection))
        code = 0
    except BaseException:  # noqa: BLE001 - whatever it is, nothing of the fork_server is to run here
        traceback.print_exc()
    finally:
        os._exit(code)


def _end_with_runner(runner: socket.socket, pid: int) -> None:
    """Kill a worker when the runner has closed its end of the socket, or has ended."""
    with suppress(OSError):
        runner.recv(1)
    os.killpg(0, signal.SIGCONT)  # a rule may have stopped the fork server, which must end too
    _kill(pid)


def _kill(pid: int) -> None:
    """Kill a process, if it exists, and its process group."""
    for kill in (os.kill, os.killpg):
        with suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)
