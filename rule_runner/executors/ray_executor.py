"""RayExecutor: the workers of a Ray cluster, or of Ray on this machine."""

import logging
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

import ray
from ray.exceptions import (
    NodeDiedError,
    ObjectLostError,
    OutOfMemoryError,
    TaskCancelledError,
    WorkerCrashedError,
)

from rule_runner.executors.protocol import ATTEMPTS
from rule_runner.executors.remote import RemoteExecutor

T = TypeVar("T")


class RayExecutor(RemoteExecutor):
    """Runs each call as a task of Ray, which needs one CPU.

    Parameters
    ----------
    address
        A cluster, such as ``ray://host:10001``; None: that of ``RAY_ADDRESS``, else this machine.
    workers
        With a number, Ray is started on this machine with so many CPUs.
    attempts
        How often a call is tried whose worker is lost.
    """

    losses = (WorkerCrashedError, NodeDiedError, OutOfMemoryError, ObjectLostError)
    cancellations = (TaskCancelledError,)

    def __init__(
        self, address: str | None = None, workers: int | None = None, attempts: int = ATTEMPTS
    ) -> None:
        super().__init__()
        logging.getLogger("ray").setLevel(logging.CRITICAL)  # outcomes say what is wrong
        settings = {} if address else {"include_dashboard": False}
        ray.init(
            "local" if workers else address,
            num_cpus=workers,
            log_to_driver=False,
            configure_logging=False,
            **settings,
        )
        # The interrupt of a cancelled task is handled by the call, so Ray does not run it again.
        self._task = ray.remote(_run).options(max_retries=attempts - 1)

    @property
    def is_connected(self) -> bool:
        """Whether Ray answers; a cluster that does not is noticed after half a minute."""
        return bool(ray.is_initialized())

    def start(self, call: Callable[[], T]) -> tuple[Future[T], Callable[[], object]]:
        """Start a task; see `RemoteExecutor.start`."""
        reference = self._task.remote(call)
        return reference.future(), partial(ray.cancel, reference)

    def close(self) -> None:
        """Disconnect from Ray; if it was started here, it ends."""
        ray.shutdown()


def _run(call: Callable[[], T]) -> T:
    return call()
