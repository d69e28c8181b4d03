"""Evaluations: the processes that judge trials; they outlive the controller that started them."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from rule_runner.config.request import EvaluationRequest
from rule_runner.escape import printable
from rule_runner.fleet.output_names import digest
from rule_runner.fleet.watch.leases import Lease, holder, is_held
from rule_runner.results.durable_files import output_errors

_PACKAGES: Final = Path(__file__).parents[3]
_LONGEST_LOG: Final = 1 << 20  # bytes
_READ: Final = 1 << 14  # bytes at the end of a log
_LONGEST_LINE: Final = 500  # characters


class EndedEvaluation(NamedTuple):
    """An evaluation that has ended.

    Attributes
    ----------
    output
        Its output folder or address.
    exit_code
        Negative: the signal that ended it; None if an earlier controller started it.
    last_line
        The last line that it logged; "" if there is none.
    """

    output: str
    exit_code: int | None
    last_line: str


class Evaluations:
    """The running evaluations, by their output.

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

    def __len__(self) -> int:
        return len(self._running)

    def __contains__(self, output: object) -> bool:
        return output in self._running

    @property
    def outputs(self) -> list[str]:
        """The outputs of the running evaluations."""
        return [*self._running]

    def start(self, output: str, request: EvaluationRequest) -> None:
        """Start an evaluation, or adopt the one that already writes to this output.

        Raises
        ------
        OutputError
            If the process cannot be started.
        """
        if output in self._running:
            return
        lease = Lease.take(self._path(output, "lock"))
        if lease is None:
            self._running[output] = None
            return
        with lease, output_errors(self._path(output, "log")):
            process = self._popen(output, request, lease)
            self._running[output] = process
            lease.name_holder(process.pid)

    def _popen(
        self, output: str, request: EvaluationRequest, lease: Lease
    ) -> "subprocess.Popen[bytes]":
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(self._path(output, "log"), flags, 0o600)
        try:
            with tempfile.TemporaryFile() as text:
                text.write(request.to_json().encode())
                text.seek(0)
                return subprocess.Popen(
                    (sys.executable, "-P", "-m", "rule_runner", "evaluate", "--request", "-"),
                    stdin=text,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    env=_environment(),
                    pass_fds=[lease.fd],
                    # Signals of the terminal are for the controller.
                    start_new_session=True,
                )
        finally:
            os.close(log)

    def adopt(self, output: str) -> bool:
        """Follow an evaluation that another controller started; return whether it still runs."""
        if output not in self._running and is_held(self._path(output, "lock")):
            self._running[output] = None
        return output in self._running

    def ended(self) -> Iterator[EndedEvaluation]:
        """Yield the evaluations that have ended since the last call; forget each afterwards.

        One whose result the caller could not record is yielded again.
        """
        for output, process in [*self._running.items()]:
            code = None if process is None else process.poll()
            if process is not None and code is None:
                self._limit_log(output)
                continue
            if process is None and is_held(self._path(output, "lock")):
                continue
            yield EndedEvaluation(output, code, self._last_line(output))
            del self._running[output]
            for suffix in ("log", "lock"):
                with suppress(OSError):
                    self._path(output, suffix).unlink()

    def terminate(self) -> None:
        """Ask all evaluations to stop; they write their results so far."""
        for output in self._running:
            self.terminate_one(output)

    def terminate_one(self, output: str) -> None:
        """Ask a running evaluation to stop."""
        process = self._running[output]
        pid = holder(self._path(output, "lock")) if process is None else process.pid
        if pid is not None and (process is None or process.poll() is None):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)

    def _path(self, output: str, suffix: str) -> Path:
        return self._folder / f"{digest(output)}.{suffix}"

    def _limit_log(self, output: str) -> None:
        """Empty a log that a rule fills."""
        path = self._path(output, "log")
        with suppress(OSError):
            if path.stat().st_size > _LONGEST_LOG:
                os.truncate(path, 0)

    def _last_line(self, output: str) -> str:
        try:
            with self._path(output, "log").open("rb") as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _READ))
                lines = stream.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        line = next((text for text in map(str.strip, reversed(lines)) if text), "")
        return printable(line.removeprefix("Error: "))[:_LONGEST_LINE]


def _environment() -> Mapping[str, str]:
    """Return the environment of evaluations, in which this program is found."""
    paths = [str(_PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
