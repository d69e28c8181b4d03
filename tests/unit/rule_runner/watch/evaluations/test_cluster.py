"""Tasks of a cluster: a connection whose futures the test settles."""

import signal
from concurrent.futures import Future
from typing import Any

import pytest
from clocks import PatientClock

from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import EXIT_SIGNAL
from rule_runner.executors import WorkerLostError
from rule_runner.watch.evaluations import EndedEvaluation
from rule_runner.watch.evaluations.cluster import STOP_S, ClusterEvaluations

REQUEST = EvaluationRequest(trial="/runs/a")
ORPHANS_S = 60.0
INTERRUPTED = EndedEvaluation("/out/a", None, "", ORPHANS_S)


class InlineConnection:
    """Does at once what it is asked for; it is the executor, too."""

    def __init__(self) -> None:
        self.problem, self.is_open, self.losses = "", True, 0
        self.sent: list[tuple[Any, ...]] = []
        self.future: Future[tuple[int, str]] = Future()
        self.closed = False

    def do(self, work: Any) -> int:
        if self.is_open:
            work(self)
        return self.losses

    def submit(self, *call: Any) -> Future[tuple[int, str]]:
        self.sent.append(call)
        return self.future

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def connection() -> InlineConnection:
    return InlineConnection()


@pytest.fixture
def clock() -> PatientClock:
    return PatientClock()


@pytest.fixture
def evaluations(connection: InlineConnection, clock: PatientClock) -> ClusterEvaluations:
    evaluations = ClusterEvaluations(connection, clock, ORPHANS_S)  # type: ignore[arg-type]
    evaluations.start("/out/a", REQUEST)
    return evaluations


def test_task_gets_its_request_and_reports_its_end(
    connection: InlineConnection, evaluations: ClusterEvaluations
) -> None:
    evaluations.start("/out/a", REQUEST)
    ((_, request),) = connection.sent
    assert request == REQUEST.to_json()
    assert (evaluations.outputs, [*evaluations.ended()]) == (["/out/a"], [])
    connection.future.set_result((1, "It failed."))
    assert [*evaluations.ended()] == [EndedEvaluation("/out/a", 1, "It failed.")]
    assert (len(evaluations), [*evaluations.ended()]) == (0, [])


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (WorkerLostError(), EndedEvaluation("/out/a", None, "The worker process was lost.")),
        (ConnectionError("away"), INTERRUPTED),
        (
            KeyError("conv1"),
            EndedEvaluation("/out/a", None, "The executor raised KeyError here: 'conv1'."),
        ),
    ],
)
def test_lost_worker_counts_and_lost_cluster_does_not(
    connection: InlineConnection,
    evaluations: ClusterEvaluations,
    error: Exception,
    ended: EndedEvaluation,
) -> None:
    connection.future.set_exception(error)
    assert [*evaluations.ended()] == [ended]


def test_what_the_cluster_cancels_is_interrupted(
    connection: InlineConnection, evaluations: ClusterEvaluations
) -> None:
    connection.future.cancel()
    assert [*evaluations.ended()] == [INTERRUPTED]


def test_lost_connection_interrupts_all_and_keeps_what_has_ended(
    connection: InlineConnection, evaluations: ClusterEvaluations
) -> None:
    connection.future.set_result((0, ""))
    connection.future = Future()
    evaluations.start("/out/b", REQUEST)
    connection.losses += 1
    assert [ended.pause for ended in evaluations.ended()] == [None, ORPHANS_S]
    evaluations.start("/out/b", REQUEST)
    assert [*evaluations.ended()] == []


def test_stopped_task_has_time_to_write_its_results(
    connection: InlineConnection, evaluations: ClusterEvaluations, clock: PatientClock
) -> None:
    evaluations.terminate()
    assert connection.future.cancelled()
    assert [*evaluations.ended()] == []
    clock.now += STOP_S
    evaluations.terminate()
    assert [*evaluations.ended()] == [EndedEvaluation("/out/a", EXIT_SIGNAL + signal.SIGTERM, "")]


def test_task_that_was_not_sent_is_never_sent_after_a_stop(clock: PatientClock) -> None:
    connection = InlineConnection()
    waiting: list[Any] = []
    connection.do = lambda work: waiting.append(work) or 0  # type: ignore[method-assign, func-returns-value]
    evaluations = ClusterEvaluations(connection, clock, ORPHANS_S)  # type: ignore[arg-type]
    evaluations.start("/out/a", REQUEST)
    evaluations.terminate_one("/out/a")
    for work in waiting:
        work(connection)
    assert connection.sent == []


def test_earlier_controller_has_left_nothing_to_adopt(
    connection: InlineConnection, evaluations: ClusterEvaluations
) -> None:
    assert evaluations.adopt("/out/a") is None
    ended = evaluations.adopt("/out/b")
    assert ended is not None
    assert (ended.output, ended.pause) == ("/out/b", ORPHANS_S)
    connection.problem, connection.is_open = "Away.", False
    assert (evaluations.problem, evaluations.is_ready) == ("Away.", False)
    evaluations.close()
    assert connection.closed
