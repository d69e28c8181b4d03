"""Connections to executors that refuse, are wrong, go away and come back: all of them scripted."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import fleets
import pytest

from rule_core.clock import SystemClock
from rule_runner.errors import TemporaryError
from rule_runner.executors import StoppableExecutor
from rule_runner.results.versions import versions
from rule_runner.watch.evaluations import connection as connection_
from rule_runner.watch.evaluations.call import WorkerView, look_around
from rule_runner.watch.evaluations.connection import ClusterConnection

OWN = versions()["rule-runner"]


class ScriptedExecutor(StoppableExecutor):
    """Answers each call by a function of the test."""

    def __init__(self, answer: Callable[..., Any]) -> None:
        self.answer = answer
        self.there = True
        self.closed = False

    @property
    def is_connected(self) -> bool:
        return self.there

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        answer = self.answer(fn, *args, **kwargs)
        if answer is not None:
            future.set_result(answer)
        return future

    def stop(self) -> None:
        pass

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        del wait, cancel_futures
        self.closed = True


def call(fn: Callable[..., Any], *args: Any) -> Any:
    return fn(*args)


@pytest.fixture
def opened() -> Iterator[Callable[..., ClusterConnection]]:
    connections: list[ClusterConnection] = []

    def open_connection(
        open_executor: Callable[[], StoppableExecutor], shared: Path | None = None
    ) -> ClusterConnection:
        connections.append(ClusterConnection("ray://h:1", open_executor, shared, SystemClock(), 0))
        return connections[-1]

    yield open_connection
    for connection in connections:
        connection.close()


def test_lost_executor_is_opened_again(opened: Callable[..., ClusterConnection]) -> None:
    executors = [ScriptedExecutor(call) for _ in range(2)]
    waiting = iter(executors)
    connection = opened(lambda: next(waiting))
    used: list[object] = []
    fleets.wait_until(lambda: connection.is_open)
    connection.do(used.append)
    fleets.wait_until(lambda: used == executors[:1])
    executors[0].there = False
    fleets.wait_until(lambda: executors[0].closed)
    stale: list[object] = []
    connection._work.put((0, stale.append))
    fleets.wait_until(lambda: connection.losses == 1 and connection.is_open)
    connection.do(used.append)
    fleets.wait_until(lambda: used == executors)
    assert (connection.problem, stale) == ("", [])
    connection.close()
    assert executors[1].closed


def test_executor_that_cannot_be_opened_is_tried_again(
    opened: Callable[..., ClusterConnection],
) -> None:
    sentence = "Executor 'ray://h:1' cannot be reached: no answer."
    connections: list[ClusterConnection] = []
    problems: list[str] = []

    def open_executor() -> StoppableExecutor:
        if connections and len(problems) < 3:
            problems.append(connections[0].problem)
        if len(problems) < 3:
            raise TemporaryError(sentence)
        return ScriptedExecutor(call)

    connections.append(opened(open_executor))
    fleets.wait_until(lambda: connections[0].is_open)
    assert problems[1:] == [sentence] * 2


@pytest.mark.parametrize(
    ("view", "problem"),
    [
        (WorkerView("0.0.1", True), f"has workers with rule-runner 0.0.1, and this is {OWN}."),
        (WorkerView(OWN, False), "has workers that do not see '{}', or cannot write to it. Set"),
        (None, "has no worker that has answered yet."),
    ],
)
def test_worker_that_cannot_judge_is_refused(
    view: WorkerView | None,
    problem: str,
    opened: Callable[..., ClusterConnection],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(connection_, "_LOOK_S", 0.01)
    shared = tmp_path / "out"
    connection = opened(lambda: ScriptedExecutor(lambda *_: view), shared)
    fleets.wait_until(lambda: connection.problem)
    assert connection.problem.startswith(f"Executor 'ray://h:1' {problem.format(shared)}")
    assert not connection.is_open


def test_worker_that_raises_is_refused(opened: Callable[..., ClusterConnection]) -> None:
    failed: Future[Any] = Future()
    failed.set_exception(TimeoutError("No module named 'rule_runner'"))
    executor = ScriptedExecutor(call)
    executor.submit = lambda *_, **__: failed  # type: ignore[method-assign]
    connection = opened(lambda: executor)
    fleets.wait_until(lambda: connection.problem)
    assert "raised TimeoutError here: No module named 'rule_runner'." in connection.problem


def test_worker_that_sees_the_outputs_is_used(
    opened: Callable[..., ClusterConnection], tmp_path: Path
) -> None:
    files: list[str | None] = []

    def look(fn: Callable[..., Any], file: str | None) -> WorkerView:
        files.append(file)
        view: WorkerView = fn(file)
        return view

    shared = tmp_path / "out"
    connection = opened(lambda: ScriptedExecutor(look), shared)
    fleets.wait_until(lambda: connection.is_open)
    assert files[0] is not None
    assert Path(files[0]).parent == shared
    assert [*shared.iterdir()] == []
    assert look_around(files[0]) == WorkerView(OWN, False)
