"""What the nursery's process does: it forks keepers, and they fork rules and end them."""

import os
import signal
import socket
import threading
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import builtin_rules  # noqa: F401 - rules find it imported, as copies of this process
import rule_runner.rule_making  # noqa: F401 - likewise
from rule_runner.child import serve
from rule_runner.nursery import EXIT_CODE

_WORST: Final = "1000"  # if memory is short, the kernel is to end the rule, not the runner


def raise_children(fd: int) -> None:
    """Fork keepers until the runner is gone: what the nursery's process does."""
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
        runner.send(EXIT_CODE.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _become_a_rule(talk: int) -> None:
    """Answer what the runner asks, in a session of its own."""
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
