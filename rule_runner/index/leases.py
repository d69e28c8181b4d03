"""Lease: a lock file that shows whether the process holding it is alive.

The kernel holds the lock for as long as a process has the file open. It needs no clock, it cannot
expire while its holder lives, and it ends at the moment when the holder is killed. The controller
takes the lease and passes the open file to the evaluation that it starts, so that the lease
outlives the controller but not the evaluation.
"""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from rule_core.failures import OnError
from rule_runner.results.durable_files import Closing, open_regular, output_errors, write_all

_LONGEST_PID: Final = 20
_CLOSED: Final = -1


class Lease(Closing):
    """A lease that this process holds; `take` returns one.

    Attributes
    ----------
    fd
        The open file. A process that inherits it holds the lease, too.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self.fd = fd

    @classmethod
    def take(cls, path: Path) -> Self | None:
        """Take the lease at `path`, which is created if missing; None if it is held.

        Raises
        ------
        OutputError
            If the file cannot be used.
        """
        with output_errors(path):
            fd = open_regular(path, os.O_RDWR | os.O_CREAT)
            with OnError(os.close, fd):
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(fd)
                    return None
        return cls(path, fd)

    def name_holder(self, pid: int) -> None:
        """Write the number of the process that holds the lease into its file."""
        with output_errors(self.path):
            os.ftruncate(self.fd, 0)
            os.lseek(self.fd, 0, os.SEEK_SET)
            write_all(self.fd, f"{pid}\n".encode())

    def close(self) -> None:
        """Close the file, once; this ends the lease unless another process has it open."""
        if self.fd != _CLOSED:
            os.close(self.fd)
            self.fd = _CLOSED


def is_held(path: Path) -> bool:
    """Return whether a process holds the lease at `path`."""
    try:
        fd = open_regular(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def holder(path: Path) -> int | None:
    """Return the number of the process that holds a lease; None if it is free or unknown."""
    if is_held(path):
        with suppress(OSError, ValueError):
            return int(path.read_text()[:_LONGEST_PID]) or None
    return None
