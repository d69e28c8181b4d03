"""Checks the limit of open files, and explains errors when it is exceeded."""

import errno
import resource
import sys
from contextlib import suppress
from typing import Final

from rule_runner.errors import ClientError

BASE: Final = 32
A_RULE: Final = 3  # for its lock and its files
A_PROCESS: Final = 4  # sockets to a worker process
CONNECTIONS: Final = 32  # to storage
FULL: Final = (errno.EMFILE, errno.ENFILE)
REMEDY: Final = "Raise the limit with 'ulimit -n 1024'"


def require(rules: int, *, processes: bool, remote: bool) -> None:
    """Check that an evaluation may open as many files as it needs; raise the soft limit if not.

    Parameters
    ----------
    rules
        Number of its rules.
    processes
        Whether each rule has a worker process.
    remote
        Whether any trial is in remote storage.

    Raises
    ------
    ClientError
        If the hard limit is too low.
    """
    needed = BASE + (A_RULE + A_PROCESS * processes) * rules + CONNECTIONS * remote
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < needed:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
            return
        raise ClientError(
            f"The evaluation needs up to {needed} open files, got a limit of {soft}. {REMEDY}."
        )


def raise_limit() -> int:
    """Raise the soft limit of open files as far as the hard one allows, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # some systems allow fewer than the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def exhausted(err: BaseException) -> str | None:
    """Return a message if an error was caused by too many open files; None otherwise."""
    cause: BaseException | None = err
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in FULL:
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            return f"More files are open than the limit of {soft} allows. {REMEDY}."
        cause = cause.__cause__ or cause.__context__
    return None
