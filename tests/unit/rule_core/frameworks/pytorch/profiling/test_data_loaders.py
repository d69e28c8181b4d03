"""Events of data loaders: in their range, by pattern, of worker processes and of errors."""

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed.")

from recorded_profiles import args_of, events
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, dataloader
from torch_profiles import model, profiled, steps

ITER, INITIALIZE, WORKER = "DataLoaderIter", "DataLoaderIterInitialize", "DataLoaderWorker"
METHODS = [
    (cls, name)
    for cls in vars(dataloader).values()
    if isinstance(cls, type) and cls.__name__.endswith("Iter")
    for name in ("__next__", "__init__", "_shutdown_workers")
]


def metrics(start: int, count: int, pattern: str = ".*") -> dict[str, Any]:
    config = {"StartStep": start, "NumSteps": count, "MetricsRegex": pattern}
    return {"DataloaderProfilingConfig": config}


def data(count: int = 6) -> Any:
    return TensorDataset(torch.ones(count, 4))


def train(module: Any, loader: Any) -> None:
    batches = iter(loader)
    steps(module, len(loader), lambda _: next(batches))


class Numbers(IterableDataset):  # type: ignore[misc,type-arg,unused-ignore]
    """A stream that only the first worker reads."""

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        return iter([torch.ones(4)] * 3 if info is None or info.id == 0 else [])


class Broken(Dataset):  # type: ignore[misc,type-arg,unused-ignore]
    """Data of which the second batch cannot be read."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        if index == 1:
            msg = "This batch cannot be read."
            raise RuntimeError(msg)
        return torch.ones(4)


def test_the_batch_of_a_step_is_fetched_in_the_step_before(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **metrics(2, 2))
    train(module, DataLoader(data(), batch_size=1))
    hook.close()
    # Steps count from 0: the batches of steps 2 and 3.
    names = "step_num", "bytes_fetched", "worker_id"
    assert args_of(tmp_path, ITER, *names) == [("1", 16, None), ("2", 16, None)]
    assert not events(tmp_path, INITIALIZE, WORKER)


def test_workers_and_the_creation_of_iterators(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **metrics(0, 9))
    train(module, DataLoader(data(4), num_workers=2, prefetch_factor=3))
    children = {child.pid for child in multiprocessing.active_children()}
    hook.close()
    assert args_of(tmp_path, ITER, "worker_id") == [(0,), (1,), (0,), (1,)]
    creation = events(tmp_path, INITIALIZE)
    assert [event.event_name for event in creation] == ["_MultiProcessingDataLoaderIter.__init__"]
    names = "num_workers", "pin_memory", "prefetch_factor"
    assert args_of(tmp_path, INITIALIZE, *names) == [(2, False, 3)]
    assert args_of(tmp_path, WORKER, "worker_id") == [(0,), (1,)]
    pids = {event.pid for event in events(tmp_path, WORKER)}
    assert len(pids) == 2
    assert os.getpid() not in pids
    assert children <= pids


def test_persistent_workers_have_one_life(tmp_path: Path) -> None:
    module = model()
    hook = profiled(tmp_path, module, **metrics(3, 1))
    loader = DataLoader(data(2), num_workers=1, persistent_workers=True)
    for _ in range(3):
        train(module, loader)
    hook.close()
    counts = Counter(event.event_phase for event in events(tmp_path, ITER, WORKER))
    assert counts == {ITER: 1, WORKER: 1}
    worker, batch = events(tmp_path, WORKER)[0], events(tmp_path, ITER)[0]
    assert worker.start_time < batch.start_time < batch.end_time <= worker.end_time


def test_streams_end_as_without_a_profile(tmp_path: Path) -> None:
    hook = profiled(tmp_path, model(), **metrics(0, 1))
    assert len(list(DataLoader(Numbers(), batch_size=None, num_workers=2))) == 3
    hook.close()
    assert args_of(tmp_path, ITER, "worker_id") == [(0,)] * 3


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_of_the_data_reach_the_training(tmp_path: Path, workers: int) -> None:
    hook = profiled(tmp_path, model(), **metrics(0, 1))
    batches = iter(DataLoader(Broken(), batch_size=None, num_workers=workers))
    next(batches)
    with pytest.raises(RuntimeError, match="This batch cannot be read"):
        next(batches)
    next(batches)
    with pytest.raises(StopIteration):
        next(batches)
    hook.close()
    assert len(events(tmp_path, ITER)) == 2


@pytest.mark.parametrize(
    ("pattern", "phases"),
    [
        (".*GetNext", {ITER}),
        ("dataloaderiterinit", {INITIALIZE}),
        ("_Single", {INITIALIZE}),
        ("Worker", set()),
    ],
)
def test_a_pattern_selects_events(tmp_path: Path, pattern: str, phases: set[str]) -> None:
    hook = profiled(tmp_path, model(), **metrics(0, 1, pattern))
    list(DataLoader(data(1)))
    hook.close()
    assert {event.event_phase for event in events(tmp_path)} == phases


def test_pytorch_is_restored(tmp_path: Path) -> None:
    before = [getattr(cls, name, None) for cls, name in METHODS]
    hook = profiled(tmp_path, model())
    assert [getattr(cls, name, None) for cls, name in METHODS] != before
    hook.close()
    assert [getattr(cls, name, None) for cls, name in METHODS] == before


def test_without_a_configuration_nothing_is_recorded(tmp_path: Path) -> None:
    hook = profiled(tmp_path, model())
    list(DataLoader(data(2), num_workers=1))
    hook.close()
    assert not (tmp_path / "profile" / "framework" / "pevents").exists()


def test_workers_that_are_spawned_are_recorded_too(tmp_path: Path) -> None:
    hook = profiled(tmp_path, model(), **metrics(0, 1))
    list(DataLoader(data(2), num_workers=1, multiprocessing_context="spawn"))
    hook.close()
    assert args_of(tmp_path, WORKER, "worker_id") == [(0,)]
