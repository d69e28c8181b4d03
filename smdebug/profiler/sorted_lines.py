"""SortedLines: lines in their order, more of them than fit into memory."""

import heapq
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

# Python needs about 41 bytes for a line besides its text.
_OVERHEAD: Final = 41
RUN_BYTES: Final = 48 << 20
MOST_RUNS: Final = 64  # open at once
_BUFFER: Final = 1 << 18


class SortedLines:
    """Takes lines in any order and gives them back in the order of their bytes.

    What does not fit into memory waits in files of a temporary folder, which is removed on the way
    out of the ``with`` statement however that is left.

    Parameters
    ----------
    run_bytes
        How much is kept in memory.
    most_runs
        How many files are read at once.
    folder
        Where the temporary folder is made; by default where ``TMPDIR`` says.

    Raises
    ------
    OSError
        By `add`: if there is no room for the files.
    """

    def __init__(
        self, run_bytes: int = RUN_BYTES, most_runs: int = MOST_RUNS, folder: str | None = None
    ) -> None:
        self._run_bytes = run_bytes
        self._most_runs = most_runs
        self._folder = folder
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._run: list[bytes] = []
        self._bytes = 0
        self._runs: list[Path] = []
        self._written = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()

    def add(self, line: bytes) -> None:
        """Take a line, which ends with its only line feed."""
        self._run.append(line)
        self._bytes += len(line) + _OVERHEAD
        if self._bytes > self._run_bytes:
            self._spill()

    def _spill(self) -> None:
        try:
            self._to_disk()
        except OSError as err:
            msg = (
                f"Events cannot be sorted in temporary files: {err.strerror}. "
                "Set TMPDIR to a folder with room for all of them."
            )
            raise OSError(msg) from err

    def _to_disk(self) -> None:
        self._run.sort()
        self._write(self._run)
        self._run, self._bytes = [], 0
        if len(self._runs) >= self._most_runs:
            merged, self._runs = self._runs, []
            with ExitStack() as opened:
                self._write(heapq.merge(*_opened(merged, opened)))
            for path in merged:
                path.unlink()

    def _write(self, lines: Iterable[bytes]) -> None:
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="rule-runner-", dir=self._folder)
        self._written += 1
        path = Path(self._temporary.name, str(self._written))
        with path.open("wb", _BUFFER) as file:
            file.writelines(lines)
        self._runs.append(path)

    def __iter__(self) -> Iterator[bytes]:
        self._run.sort()
        with ExitStack() as opened:
            yield from heapq.merge(*_opened(self._runs, opened), self._run)


def _opened(runs: Iterable[Path], opened: ExitStack) -> list[Iterable[bytes]]:
    return [opened.enter_context(path.open("rb", _BUFFER)) for path in runs]
