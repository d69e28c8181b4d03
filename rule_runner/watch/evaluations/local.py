"""LocalEvaluations: processes on this machine; they outlive the controller that started them."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rule_core.processes import start_module
from rule_runner.config.output_names import digest
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import EXIT_TEMPORARY
from rule_runner.index.leases import Lease, holder, is_held
from rule_runner.results.durable_files import output_errors
from rule_runner.watch.evaluations.process import last_line, limit_log, new_log
from rule_runner.watch.evaluations.protocol import EndedEvaluation, Evaluations

if TYPE_CHECKING:
    import subprocess


class LocalEvaluations(Evaluations):
    """Runs each evaluation as a process on this machine.

    Each holds a lease, so that a later controller knows which ones still run.

    Parameters
    ----------
    folder
        For leases and logs; on a local disk. Created if missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._running: dict[str, subprocess.Popen[bytes] | None] = {}
        with output_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def outputs(self) -> list[str]:
        """The outputs of the running evaluations."""
        return [*self._running]

    def start(self, output: str, request: EvaluationRequest) -> None:
        """Start an evaluation, or adopt the one that already writes to this output."""
        if output in self._running:
            return
        lease = Lease.take(self._path(output, "lock"))
        if lease is None:
            self._running[output] = None
            return
        pause_file = self._path(output, "pause")
        text = replace(request, pause_file=str(pause_file)).to_json().encode()
        command = ("evaluate", "--request", "-")
        log = self._path(output, "log")
        with lease, output_errors(log):
            pause_file.unlink(missing_ok=True)
            with new_log(log) as errors:
                process = start_module(
                    "rule_runner", *command, stdin=text, stderr=errors, pass_fds=[lease.fd]
                )
            self._running[output] = process
            lease.name_holder(process.pid)

    def adopt(self, output: str) -> EndedEvaluation | None:
        """Follow an evaluation that another controller started; return how it ended, if it did."""
        if output not in self._running:
            if not is_held(self._path(output, "lock")):
                return EndedEvaluation(output, None, "")
            self._running[output] = None
        return None

    def ended(self) -> Iterator[EndedEvaluation]:
        """Yield the evaluations that have ended since the last call; forget each afterwards."""
        for output, process in [*self._running.items()]:
            code = None if process is None else process.poll()
            if process is not None and code is None:
                limit_log(self._path(output, "log"))
                continue
            if process is None and is_held(self._path(output, "lock")):
                continue
            is_paused = code in {None, EXIT_TEMPORARY} and self._path(output, "pause").exists()
            pause = 0.0 if is_paused else None
            yield EndedEvaluation(output, code, last_line(self._path(output, "log")), pause)
            del self._running[output]
            for suffix in ("log", "lock", "pause"):
                with suppress(OSError):
                    self._path(output, suffix).unlink()

    def terminate_one(self, output: str) -> None:
        """Ask a running evaluation to stop; it writes its results so far."""
        process = self._running[output]
        pid = holder(self._path(output, "lock")) if process is None else process.pid
        if pid is not None and (process is None or process.poll() is None):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    def pause_one(self, output: str) -> None:
        """Ask a running evaluation to make room once it waits for data; see `Evaluations`."""
        with suppress(OSError):  # of a full disk: it is asked again
            self._path(output, "pause").touch()

    def close(self) -> None:
        """Leave running evaluations to the next controller."""

    def _path(self, output: str, suffix: str) -> Path:
        return self._folder / f"{digest(output)}.{suffix}"
