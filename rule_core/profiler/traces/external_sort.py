"""SortedLines: sorts more lines than fit in memory."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from tempfile import TemporaryFile
from typing import IO, Final, Self

# Memory that Python needs for a line in addition to its text.
_OVERHEAD: Final = 41
RUN_BYTES: Final = 48 << 20
MOST_RUNS: Final = 64  # open at once
_BUFFER: Final = 1 << 18


class SortedLines:
    """Sorts lines by their bytes.

    Lines that do not fit in memory are written to unnamed temporary files, so nothing is left
    behind even if the process is killed.

    Parameters
    ----------
    run_bytes
        Memory limit in bytes.
    most_runs
        Number of files to merge at once.
    folder
        Folder of the temporary files; ``TMPDIR`` by default.

    Raises
    ------
    OSError
        By `add`, if the disk is full.
    """

    def __init__(
        self, run_bytes: int = RUN_BYTES, most_runs: int = MOST_RUNS, folder: str | None = None
    ) -> None:
        self._run_bytes = run_bytes
        self._most_runs = most_runs
        self._folder = folder
        self._run: list[bytes] = []
        self._bytes = 0
        self._runs: list[IO[bytes]] = []
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        with suppress(OSError):  # the disk is full, which `add` has reported
            self._files.close()

    def add(self, line: bytes) -> None:
        """Add a line that ends with its only line feed."""
        self._run.append(line)
        self._bytes += len(line) + _OVERHEAD
        if self._bytes > self._run_bytes:
            try:
                self._spill()
            except OSError as err:
                raise OSError(
                    f"Events cannot be sorted in temporary files: {err.strerror}. "
                    "Set TMPDIR to a folder with enough free space."
                ) from err

    def _spill(self) -> None:
        self._run.sort()
        self._runs.append(self._write_run(self._run))
        self._run, self._bytes = [], 0
        if len(self._runs) >= self._most_runs:
            merged = self._write_run(heapq.merge(*_from_start(self._runs)))
            for run in self._runs:
                run.close()
            self._runs = [merged]

    def _write_run(self, lines: Iterable[bytes]) -> IO[bytes]:
        file = TemporaryFile(buffering=_BUFFER, dir=self._folder)  # noqa: SIM115 - `_files` closes it
        self._files.enter_context(file)
        file.writelines(lines)
        file.flush()
        return file

    def __iter__(self) -> Iterator[bytes]:
        self._run.sort()
        yield from heapq.merge(*_from_start(self._runs), self._run)


def _from_start(runs: Sequence[IO[bytes]]) -> Sequence[IO[bytes]]:
    for run in runs:
        run.seek(0)
    return runs
