"""RemoteExecutor: what executors of other libraries share."""

from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from threading import Condition
from typing import Any, ClassVar, ParamSpec, TypeVar

from rule_runner.executors.protocol import StoppableExecutor, WorkerLostError

P = ParamSpec("P")
T = TypeVar("T")


class RemoteExecutor(StoppableExecutor):
    """Runs calls with another library, and gives its errors the names of this package.

    Attributes
    ----------
    losses, cancellations
        The errors that mean that the workers of a call were lost, or that it was cancelled.
    """

    losses: ClassVar[tuple[type[BaseException], ...]]
    cancellations: ClassVar[tuple[type[BaseException], ...]]

    def __init__(self) -> None:
        self._lock = Condition()
        self._cancels: dict[Future[Any], Callable[[], object]] = {}
        self._is_open = True

    @abstractmethod
    def start(self, call: Callable[[], T]) -> tuple[Future[T], Callable[[], object]]:
        """Start a call; return its future, and a function that cancels it, running or not."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect, and end the workers that this executor started."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Schedule a call; see `concurrent.futures.Executor.submit`."""
        outer: Future[T] = Future()
        with self._lock:
            if not self._is_open:
                raise RuntimeError("The executor was shut down.")
            inner, cancel = self.start(partial(fn, *args, **kwargs))
            self._cancels[outer] = cancel
        outer.add_done_callback(self._forget)
        inner.add_done_callback(partial(self._settle, outer))
        return outer

    def _forget(self, outer: Future[Any]) -> None:
        with self._lock:
            cancel = self._cancels.pop(outer)
            self._lock.notify_all()
        if outer.cancelled():
            cancel()

    def _settle(self, outer: Future[T], inner: Future[T]) -> None:
        """Give the future of a call the result of the library's own."""
        error = CancelledError() if inner.cancelled() else inner.exception()
        if error is not None and (inner.cancelled() or isinstance(error, self.cancellations)):
            outer.cancel()
        elif not outer.set_running_or_notify_cancel():
            return
        elif error is None:
            outer.set_result(inner.result())
        else:
            outer.set_exception(self._renamed(error))

    def _renamed(self, error: BaseException) -> BaseException:
        if not isinstance(error, self.losses):
            return error
        lost = WorkerLostError("Every worker process that ran the call was lost.")
        lost.__cause__ = error
        return lost

    def stop(self) -> None:
        """Cancel all calls; see `StoppableExecutor.stop`."""
        with self._lock:
            self._is_open = False
            cancels = [*self._cancels.values()]
        for cancel in cancels:
            cancel()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect when the calls have ended; see `concurrent.futures.Executor.shutdown`.

        Without `wait`, this disconnects at once, which cancels the calls.
        """
        with self._lock:
            self._is_open = False
            pending = [*self._cancels]
        if cancel_futures:
            for future in pending:
                future.cancel()
        if wait:  # `concurrent.futures.wait` would wait for cancelled futures too
            with self._lock:
                self._lock.wait_for(lambda: not self._cancels)
        self.close()
