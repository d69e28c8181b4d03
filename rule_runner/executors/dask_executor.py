"""DaskExecutor: the workers of a Dask cluster, or of Dask on this machine."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TypeVar

import dask
from distributed import CancelledError, Client, KilledWorker, LocalCluster, get_worker

from rule_runner.executors.protocol import ATTEMPTS, watched
from rule_runner.executors.remote import RemoteExecutor

T = TypeVar("T")

_FAILURES = "distributed.scheduler.allowed-failures"
# A scheduler that is not started here has its own.
_SETTINGS = {
    "distributed.scheduler.worker-saturation": 1.0,  # a lost worker has no other calls in its queue
    # Dask restarts lost workers itself; by default it gives up those that take longer than 15 s.
    "distributed.deploy.lost-worker-timeout": "1 day",
    "distributed.nanny.pre-spawn-environ.DASK_LOGGING__DISTRIBUTED": "critical",
}


class DaskExecutor(RemoteExecutor):
    """Runs each call as a task of Dask.

    Parameters
    ----------
    address
        The scheduler of a cluster, such as ``tcp://host:8786``; None: Dask is started on this
        machine.
    workers
        The number of worker processes on this machine.
    attempts
        How often a call is tried whose worker is lost, if Dask is started here.
    """

    losses = (KilledWorker,)
    cancellations = (CancelledError,)

    def __init__(
        self, address: str | None = None, workers: int | None = None, attempts: int = ATTEMPTS
    ) -> None:
        super().__init__()
        logging.getLogger("distributed").setLevel(logging.CRITICAL)  # outcomes say what is wrong
        with ExitStack() as stack:
            stack.enter_context(dask.config.set({**_SETTINGS, _FAILURES: attempts - 1}))
            cluster = address or stack.enter_context(_local_cluster(workers))
            self._client = stack.enter_context(Client(cluster, set_as_default=False))
            self._futures = self._client.get_executor(pure=False)
            self._stack = stack.pop_all()

    @property
    def is_connected(self) -> bool:
        """Whether the scheduler answers."""
        return bool(self._client.status == "running")

    def start(self, call: Callable[[], T]) -> tuple[Future[T], Callable[[], object]]:
        """Start a task; see `RemoteExecutor.start`."""
        future: Future[T] = self._futures.submit(_run, call)
        return future, future.cancel

    def close(self) -> None:
        """Disconnect; workers that were started here end."""
        self._stack.close()


def _local_cluster(workers: int | None) -> LocalCluster:
    """Start Dask on this machine, without a limit of memory and without a dashboard."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        memory_limit=0,
        dashboard_address="127.0.0.1:0",  # a free port for health checks
        scheduler_kwargs={"dashboard": False},
        silence_logs=logging.CRITICAL,
    )


def _run(call: Callable[[], T]) -> T:
    """Run a call in a thread of a worker, and stop it if the task is cancelled."""
    worker = get_worker()
    key = worker.get_current_task()

    def is_cancelled() -> bool:
        task = worker.state.tasks.get(key)
        return task is None or task.state == "cancelled"

    with watched(is_cancelled):
        return call()
