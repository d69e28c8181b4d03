from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

import pytest

from rule_runner.executors import WorkerLostError
from rule_runner.executors.remote import RemoteExecutor

T = TypeVar("T")


class LostError(Exception):
    """What the library raises if a worker is lost."""


class CancelError(Exception):
    """What the library raises if a call was cancelled."""


class ScriptedExecutor(RemoteExecutor):
    """Starts nothing: a test settles the futures of the library."""

    losses = (LostError,)
    cancellations = (CancelError,)

    def __init__(self) -> None:
        super().__init__()
        self.started: list[Future[int]] = []
        self.cancelled: list[int] = []
        self.closed = False

    def start(self, call: Callable[[], T]) -> tuple[Future[T], Callable[[], object]]:
        del call
        future: Future[T] = Future()
        number = len(self.started)
        self.started.append(future)  # type: ignore[arg-type]
        return future, lambda: self.cancelled.append(number)

    def close(self) -> None:
        self.closed = True


def test_result_and_errors_are_those_of_the_library() -> None:
    executor = ScriptedExecutor()
    good, bad, lost = (executor.submit(int) for _ in range(3))
    executor.started[0].set_result(7)
    executor.started[1].set_exception(KeyError("conv1"))
    executor.started[2].set_exception(LostError())
    assert good.result(0) == 7
    assert isinstance(bad.exception(0), KeyError)
    error = lost.exception(0)
    assert isinstance(error, WorkerLostError)
    assert isinstance(error.__cause__, LostError)


def test_cancelled_future_cancels_the_call_of_the_library() -> None:
    executor = ScriptedExecutor()
    future = executor.submit(int)
    executor.submit(int)
    assert future.cancel()
    assert executor.cancelled == [0]
    executor.started[0].set_result(1)  # it was too late
    assert future.cancelled()


def test_stop_cancels_all_calls_and_refuses_new_ones() -> None:
    executor = ScriptedExecutor()
    futures = [executor.submit(int) for _ in range(2)]
    executor.stop()
    assert executor.cancelled == [0, 1]
    executor.started[0].set_exception(CancelError())
    executor.started[1].set_result(3)  # it ended early, with a result
    assert futures[0].cancelled()
    assert futures[1].result(0) == 3
    with pytest.raises(RuntimeError, match="shut down"):
        executor.submit(int)


def test_shutdown_waits_for_the_calls_or_cancels_them() -> None:
    executor = ScriptedExecutor()
    future = executor.submit(int)
    executor.shutdown(cancel_futures=True)
    assert future.cancelled()
    assert executor.closed
