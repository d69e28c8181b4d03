"""results_alone: keeps output of rules and their subprocesses out of standard output."""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, TextIO

_STDOUT: Final = 1
_STDERR: Final = 2


@contextmanager
def results_alone() -> Iterator[None]:
    """Reserve standard output for what is written to ``sys.stdout`` inside the block.

    File descriptor 1 is redirected to standard error for good: native code, subprocesses, threads
    and ``atexit`` functions of rules may outlive the block. After the block, ``sys.stdout`` leads
    there too. Has no effect if ``sys.stdout`` was replaced.
    """
    stream = _reserve_stdout()
    if stream is None:
        yield
        return
    redirected, sys.stdout = sys.stdout, stream
    try:
        yield
    finally:
        sys.stdout = redirected
        stream.close()


def _reserve_stdout() -> TextIO | None:
    """Redirect descriptor 1 to standard error; return a stream to the original standard output."""
    stdout = sys.stdout
    with suppress(AttributeError, OSError, ValueError):  # closed, or not a file
        if stdout.fileno() == _STDOUT:
            stdout.flush()
            descriptor = fcntl.fcntl(_STDOUT, fcntl.F_DUPFD_CLOEXEC, _STDERR + 1)
            os.dup2(_STDERR, _STDOUT)
            return os.fdopen(descriptor, "w", encoding=stdout.encoding, errors=stdout.errors)
    return None
