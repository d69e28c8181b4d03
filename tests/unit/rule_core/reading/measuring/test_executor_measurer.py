"""ExecutorMeasurer: what does not come in time, or at all, is not waited for again."""

from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import pytest
from measuring_elsewhere import InlineExecutor, saved_trial, small_blocks

from rule_core.model.reductions import Reduction
from rule_core.reading.measuring import executor_measurer
from rule_core.reading.measuring.executor_measurer import ExecutorMeasurer
from rule_core.reading.native_index import NativeIndex
from rule_core.rules.requirements import TensorInput
from rule_core.rules.wants import DeclaredWants, WantedMeasure
from rule_core.storage.local import LocalStore

L2 = Reduction("l2")


class Hanging(Executor):
    """Never runs a call."""

    def __init__(self) -> None:
        self.futures: list[Future[Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        del fn, args, kwargs
        self.futures.append(Future())
        return self.futures[-1]


class Closed(Executor):
    """Takes no calls."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        del fn, args, kwargs
        msg = "cannot schedule new futures after shutdown"
        raise RuntimeError(msg)


def begun(root: Path, executor: Executor, left: float = 60.0) -> ExecutorMeasurer:
    """Return a measurer of a trial of one worker and seven steps."""
    index = NativeIndex(LocalStore(saved_trial(root, 1)))
    index.refresh()
    declared = DeclaredWants([WantedMeasure(L2, TensorInput("weights", ("weights",)))])
    measurer = ExecutorMeasurer(executor, index.store, lambda: left)
    measurer.begin(index.files, index.steps, declared.wants, declared.chooser(index))
    return measurer


def test_measures_are_those_of_the_step(tmp_path: Path) -> None:
    with small_blocks():
        measurer = begun(tmp_path, InlineExecutor())
        measures = measurer.measures(10, "worker_0")
    assert measures is not None
    assert measures.shapes["weight/a"] == (8, 8)
    assert {"weight/a", "weight/whole"} <= measures.values[L2, None].keys()
    assert measurer.measured == 1


def test_few_parts_are_not_sent(tmp_path: Path) -> None:
    executor = InlineExecutor()
    assert begun(tmp_path, executor).measures(10, "worker_0") is None
    assert executor.calls == []


@pytest.mark.parametrize(("patience", "left"), [(0.0, 60.0), (60.0, -1.0)])
def test_a_result_that_does_not_come_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, patience: float, left: float
) -> None:
    monkeypatch.setattr(executor_measurer, "PATIENCE_S", patience)
    executor = Hanging()
    with small_blocks():
        measurer = begun(tmp_path, executor, left)
        assert measurer.measures(0, "worker_0") is None
        sent = len(executor.futures)
        assert measurer.measures(60, "worker_0") is None
    assert executor.futures[0].cancelled()
    assert len(executor.futures) == sent
    assert not measurer.is_usable


def test_an_executor_that_takes_nothing_is_left_alone(tmp_path: Path) -> None:
    with small_blocks():
        measurer = begun(tmp_path, Closed())
        assert measurer.measures(0, "worker_0") is None
        assert measurer.measures(10, "worker_0") is None
    assert (measurer.lost, measurer.blocks) == (1, 1)
    assert "cannot schedule new futures" in measurer.reason


def test_closing_cancels_what_nobody_waits_for(tmp_path: Path) -> None:
    executor = Hanging()
    with small_blocks(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(executor_measurer, "PATIENCE_S", 0.0)
        measurer = begun(tmp_path, executor)
        measurer.measures(0, "worker_0")
        measurer.close()
        assert measurer.measures(10, "worker_0") is None
    assert all(future.cancelled() for future in executor.futures)
