"""open_executor: the executor that a text such as ``local:4`` describes."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rule_runner.errors import UsageError
from rule_runner.fleet.executors.local import LocalExecutor
from rule_runner.fleet.executors.protocol import StoppableExecutor

_LOCAL: Final = re.compile("([a-z]+)(?::([1-9][0-9]{0,3}))?")
FORMS: Final = "local[:N]"


@contextmanager
def open_executor(spec: str) -> Iterator[StoppableExecutor]:
    """Open an executor, and shut it down after the block.

    The end of the block waits for all calls; an exception stops them.

    Parameters
    ----------
    spec
        ``local[:N]``: N worker processes on this machine; by default one for each CPU.

    Raises
    ------
    UsageError
        If `spec` has another form.
    """
    executor = _opener(spec)()
    try:
        yield executor
    except BaseException:
        executor.stop()
        raise
    finally:
        executor.shutdown(wait=True)


def _opener(spec: str) -> Callable[[], StoppableExecutor]:
    """Return a function that opens the executor `spec`."""
    match = _LOCAL.fullmatch(spec)
    kind, count = match.groups() if match else ("", None)
    workers = int(count) if count else len(os.sched_getaffinity(0))
    if kind == "local":
        return lambda: LocalExecutor(workers)
    msg = f"An executor is {FORMS}, got {spec!r}."
    raise UsageError(msg)
