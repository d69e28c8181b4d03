"""ClusterEvaluations: tasks of Ray or Dask; they end with the controller that started them."""

import signal
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final

from rule_core.clock import Clock
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import EXIT_SIGNAL, raised
from rule_runner.executors import StoppableExecutor, WorkerLostError
from rule_runner.watch.evaluations.call import evaluate_here
from rule_runner.watch.evaluations.connection import ClusterConnection
from rule_runner.watch.evaluations.protocol import EndedEvaluation, Evaluations

# An evaluation has this time to stop: its cluster forgets it at once.
STOP_S: Final = 10.0


@dataclass(slots=True, eq=False)
class _Task:
    """A task of a cluster.

    Attributes
    ----------
    losses
        Those of the connection when the task was sent.
    future
        Of its end; None before it was sent.
    stopped_at
        When it was asked to stop; None: it was not.
    """

    request: str
    losses: int = 0
    future: Future[tuple[int, str]] | None = None
    stopped_at: float | None = None

    def send(self, executor: StoppableExecutor) -> None:
        """Send it to a cluster, unless it is to stop already."""
        if self.stopped_at is None:
            self.future = executor.submit(evaluate_here, self.request)

    def cancel(self, executor: StoppableExecutor) -> None:
        """Cancel it, running or not."""
        del executor
        if self.future is not None:
            self.future.cancel()


class ClusterEvaluations(Evaluations):
    """Runs each evaluation as a task of a cluster.

    The cluster ends tasks whose controller is gone. So that no evaluation begins while an earlier
    one of its trial still writes, it begins `orphans_s` later.
    """

    def __init__(self, connection: ClusterConnection, clock: Clock, orphans_s: float) -> None:
        self._connection = connection
        self._clock = clock
        self._orphans_s = orphans_s
        self._tasks: dict[str, _Task] = {}

    @property
    def problem(self) -> str:
        """Why none can be started now; "" if nothing is known to be wrong."""
        return self._connection.problem

    @property
    def is_ready(self) -> bool:
        """Whether evaluations can be started now."""
        return self._connection.is_open

    @property
    def outputs(self) -> list[str]:
        """The outputs of the running evaluations."""
        return [*self._tasks]

    def start(self, output: str, request: EvaluationRequest) -> None:
        """Start an evaluation, unless the one that writes to this output runs."""
        if output not in self._tasks:
            task = self._tasks[output] = _Task(request.to_json())
            task.losses = self._connection.do(task.send)

    def adopt(self, output: str) -> EndedEvaluation | None:
        """Return that the evaluation of an earlier controller has ended, or is about to."""
        return None if output in self._tasks else self._interrupted(output)

    def ended(self) -> Iterator[EndedEvaluation]:
        """Yield the evaluations that have ended since the last call; forget each afterwards."""
        for output, task in [*self._tasks.items()]:
            end = self._end(output, task)
            if end is not None:
                yield end
                del self._tasks[output]

    def _end(self, output: str, task: _Task) -> EndedEvaluation | None:
        """Return how a task ended; None if it runs."""
        future = task.future
        if future is not None and future.done() and not future.cancelled():
            err = future.exception()
            return self._failed(output, err) if err else EndedEvaluation(output, *future.result())
        if task.losses != self._connection.losses:
            return self._interrupted(output)
        if task.stopped_at is not None:
            is_over = self._clock.monotonic() - task.stopped_at >= STOP_S
            return EndedEvaluation(output, EXIT_SIGNAL + signal.SIGTERM, "") if is_over else None
        return None if future is None or not future.cancelled() else self._interrupted(output)

    def _failed(self, output: str, err: BaseException) -> EndedEvaluation:
        """Return the end of an evaluation whose worker, or whose cluster, has failed."""
        if isinstance(err, ConnectionError):
            return self._interrupted(output)
        if isinstance(err, WorkerLostError):
            return EndedEvaluation(output, None, "The worker process was lost.")
        return EndedEvaluation(output, None, raised("The executor", err, "here"))

    def _interrupted(self, output: str) -> EndedEvaluation:
        return EndedEvaluation(output, None, "", self._orphans_s)

    def terminate_one(self, output: str) -> None:
        """Ask a running evaluation to stop; it writes its results so far."""
        task = self._tasks[output]
        if task.stopped_at is None:
            task.stopped_at = self._clock.monotonic()
            self._connection.do(task.cancel)

    def close(self) -> None:
        """Disconnect; the cluster ends what still runs."""
        self._connection.close()
