"""open_executor: the executor that a text such as ``local:4`` describes."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NoReturn

from rule_core.failures import OnError, attempt
from rule_runner.errors import TemporaryError, UsageError, restated
from rule_runner.executors.local import LocalExecutor
from rule_runner.executors.protocol import ATTEMPTS, StoppableExecutor

_STARTED_HERE: Final = re.compile("(local|ray|dask)(?::([1-9][0-9]{0,3}))?")
_CLUSTER: Final = re.compile(r"(ray|tcp|tls)://[^\s/]+:[0-9]+")
_REASON: Final = 300  # characters
FORMS: Final = "local[:N], ray[:N], ray://HOST:PORT, dask[:N] or tcp://HOST:PORT"


@contextmanager
def open_executor(spec: str) -> Iterator[StoppableExecutor]:
    """Open an executor, and shut it down after the block.

    The end of the block waits for all calls; an exception stops them.

    Parameters
    ----------
    spec
        ``local[:N]``, ``ray[:N]`` or ``dask[:N]``: N worker processes on this machine, by default
        one for each CPU; ``ray`` alone means the cluster of ``RAY_ADDRESS`` if that is set.
        ``ray://HOST:PORT``, ``tcp://HOST:PORT``: a cluster of Ray or Dask.

    Raises
    ------
    UsageError
        If `spec` has another form, or its library is not installed.
    TemporaryError
        If the cluster cannot be reached.
    """
    executor = opener(spec)()
    try:
        with OnError(executor.stop):
            yield executor
    finally:
        executor.shutdown(wait=True)


def check_form(spec: str) -> None:
    """Check the form of an executor.

    Raises
    ------
    UsageError
        If it has none of `FORMS`.
    """
    if not (_STARTED_HERE.fullmatch(spec) or _CLUSTER.fullmatch(spec)):
        raise UsageError(f"An executor is {FORMS}, got {spec!r}.")


def opener(spec: str, attempts: int = ATTEMPTS) -> Callable[[], StoppableExecutor]:
    """Return a function that opens the executor `spec`; see `open_executor`.

    Parameters
    ----------
    attempts
        How often Ray and Dask try a call whose worker is lost.

    Raises
    ------
    UsageError
        If `spec` has another form, or its library is not installed.
    """
    check_form(spec)
    if match := _STARTED_HERE.fullmatch(spec):
        kind, count = match.groups()
        number = int(count) if count else None
        if kind == "local":
            return partial(LocalExecutor, number or len(os.sched_getaffinity(0)))
        return _library(spec, kind, workers=number, attempts=attempts)
    kind = "ray" if spec.startswith("ray:") else "dask"
    return _library(spec, kind, address=spec, attempts=attempts)


def _library(spec: str, kind: str, **options: Any) -> Callable[[], StoppableExecutor]:
    """Return a function that opens an executor of Ray or Dask."""
    problem = f"Executor {spec!r} needs a package: pip install 'rule-runner[{kind}]'."
    with restated(UsageError, ImportError, sentence=problem):
        executor_class = _class_of(kind)

    def fail(err: Exception) -> NoReturn:
        reason = " ".join(str(err).split()).rstrip(".") or type(err).__name__
        raise TemporaryError(f"Executor {spec!r} cannot be reached: {reason[:_REASON]}.") from err

    return lambda: attempt(lambda: executor_class(**options), fail)


def _class_of(kind: str) -> Callable[..., StoppableExecutor]:
    """Return the class of the executors of Ray or Dask."""
    if kind == "ray":
        from rule_runner.executors.ray_executor import RayExecutor

        return RayExecutor
    from rule_runner.executors.dask_executor import DaskExecutor

    return DaskExecutor
