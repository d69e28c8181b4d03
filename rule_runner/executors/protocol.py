"""StoppableExecutor: an executor whose running calls can be stopped."""

from abc import abstractmethod
from concurrent.futures import Executor
from typing import Final

ATTEMPTS: Final = 3  # to run a call whose worker is lost


class StoppableExecutor(Executor):
    """An executor of `concurrent.futures` that can stop what runs.

    Functions, arguments and results are pickled. A call whose worker process is lost is attempted
    again, `ATTEMPTS` times in all; other calls are not affected.
    """

    @property
    def is_connected(self) -> bool:
        """Whether the workers can be reached, as far as that is known."""
        return True

    @abstractmethod
    def stop(self) -> None:
        """Cancel calls that have not started, and have running ones end early.

        A running call receives SIGTERM or SIGINT, or its process is ended. New calls are refused.
        """


class WorkerLostError(Exception):
    """Every worker process that ran a call ended before the call did."""
