"""evaluate_here: the call that evaluates a trial on a worker of a cluster."""

import os
import tempfile
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from subprocess import PIPE, TimeoutExpired
from typing import Final, NamedTuple

from rule_core.processes import start_module
from rule_runner.engine.stop_requests import signals_to
from rule_runner.executors.protocol import on_stop
from rule_runner.results.versions import versions
from rule_runner.watch.evaluations.process import last_line, limit_log, new_log

_LOOK_S: Final = 0.5
_MODULE: Final = "rule_runner.watch.evaluations.tethered"  # ends with this process
_COMMAND: Final = ("evaluate", "--request", "request.json")


class WorkerView(NamedTuple):
    """What a worker sees.

    Attributes
    ----------
    version
        Of its rule-runner.
    sees_file
        Whether the file of the controller is there for it, in a folder that it can write to.
    """

    version: str
    sees_file: bool


def evaluate_here(request: str) -> tuple[int, str]:
    """Evaluate a request, which is JSON, in a separate process; return its exit code and last line.

    A signal, or the executor where that sends none, stops the evaluation. The process ends with
    the worker, even if that is killed.
    """
    with tempfile.TemporaryDirectory(prefix="rule-runner-") as folder:
        Path(folder, "request.json").write_text(request, "utf-8")
        log = Path(folder, "log")
        with new_log(log) as errors:
            process = start_module(_MODULE, *_COMMAND, stdin=PIPE, stderr=errors, cwd=folder)
        with process, _stopping(process.terminate):
            while process.poll() is None:
                with suppress(TimeoutExpired):
                    process.wait(_LOOK_S)
                limit_log(log)
        return process.returncode, last_line(log)


def _stopping(stop: Callable[[], None]) -> AbstractContextManager[None]:
    """Call `stop` inside the block when the call is to stop."""
    if threading.current_thread() is threading.main_thread():
        return signals_to(lambda _: stop())
    on_stop(stop)
    return nullcontext()


def look_around(file: str | None) -> WorkerView:
    """Return what this worker sees of a file of the controller; None: there is none."""
    sees_file = file is None or (Path(file).exists() and os.access(Path(file).parent, os.W_OK))
    return WorkerView(versions()["rule-runner"], sees_file)
