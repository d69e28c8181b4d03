"""DataLoaderEvents: times the data loaders of a PyTorch training."""

import os
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final

from torch.utils.data import dataloader

from rule_core.frameworks.pytorch import modules
from rule_core.frameworks.pytorch.patches import Patch
from rule_core.profiler.files.constants import (
    CONVERT_TO_MICROSECS,
    PT_DATALOADER_INITIALIZE,
    PT_DATALOADER_ITER,
    PT_DATALOADER_WORKER,
)
from rule_core.profiler.recording.recorder import ProfilerRecorder

GET_NEXT: Final = f"{PT_DATALOADER_ITER}::GetNext"
# Private in PyTorch: the iterators, and the methods that are timed.
_any_iterator, _single, _several = attrgetter(
    "_BaseDataLoaderIter", "_SingleProcessDataLoaderIter", "_MultiProcessingDataLoaderIter"
)(dataloader)


class DataLoaderEvents:
    """Passes the work of all data loaders to a recorder, in the range of their profiling.

    Events are the creation of iterators, each batch that a training gets, and the life of each
    worker process that was at work in the range. A batch is fetched in the step before the one that
    uses it, so the range begins a step earlier.

    Parameters
    ----------
    recorder
        Receives the events, and has the range.
    """

    def __init__(self, recorder: ProfilerRecorder) -> None:
        self._recorder = recorder
        # When workers were started, and their process IDs, by identity of the iterator.
        self._workers: dict[int, tuple[int, tuple[int, ...]]] = {}
        self._at_work: set[int] = set()  # iterators that were used in the range
        self._metrics: object = None  # of the last look-up, with its step
        self._step = -1
        self._has_range = False
        self._patches = (
            Patch(_any_iterator, "__next__", self._timing_next),
            Patch(_single, "__init__", self._timing_creation),
            Patch(_several, "__init__", self._timing_creation),
            Patch(_several, "_shutdown_workers", self._watching_shutdown),
        )

    def close(self) -> None:
        """Record the workers that are still at work, and restore PyTorch's methods."""
        for iterator in list(self._workers):
            self._recorder.run(self._end_workers, iterator)
        for patch in self._patches:
            patch.restore()

    def _is_in_range(self) -> bool:
        """Return whether the next step is in the range; it is looked up once a step."""
        metrics, step = self._recorder.config.data_loader, self._recorder.point.step
        if metrics is None:
            return False
        if metrics is not self._metrics or step != self._step:
            self._metrics, self._step = metrics, step
            now_s = self._recorder.now_us() / CONVERT_TO_MICROSECS
            self._has_range = metrics.range.contains(step + 1, now_s)
        return self._has_range and self._recorder.is_recording

    def _timing_next(self, original: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def get_next(iterator: Any) -> Any:
            if not self._is_in_range():
                return original(iterator)
            # Who fetches each batch that was asked for, by number of the batch.
            tasks = getattr(iterator, "_task_info", {})
            workers = {batch_index: task[0] for batch_index, task in tasks.items()}
            start_us = self._recorder.now_us()
            batch = original(iterator)
            self._recorder.run(self._record_batch, iterator, batch, workers, start_us)
            return batch

        return get_next

    def _timing_creation(self, original: Callable[..., None]) -> Callable[..., None]:
        def create(iterator: Any, *args: Any, **kwargs: Any) -> None:
            start_us = self._recorder.now_us()
            original(iterator, *args, **kwargs)
            self._recorder.run(self._record_creation, iterator, start_us)

        return create

    def _watching_shutdown(self, original: Callable[[Any], None]) -> Callable[[Any], None]:
        def shut_down(iterator: Any) -> None:
            original(iterator)
            if id(iterator) in self._workers:
                self._recorder.run(self._end_workers, id(iterator))

        return shut_down

    def _record_batch(
        self, iterator: Any, batch: Any, workers: Mapping[int, int], start_us: int
    ) -> None:
        self._at_work.add(id(iterator))
        tensors = [tensor for _, tensor in modules.tensors_in(batch)]
        args = {"bytes_fetched": sum(tensor.nbytes for tensor in tensors)}
        worker = workers.get(getattr(iterator, "_rcvd_idx", 0) - 1)
        if worker is not None:
            args["worker_id"] = worker
        self._record(PT_DATALOADER_ITER, GET_NEXT, start_us, args)

    def _record_creation(self, iterator: Any, start_us: int) -> None:
        processes = getattr(iterator, "_workers", ())
        pids = tuple(process.pid for process in processes)
        if pids and self._recorder.config.data_loader is not None:
            self._workers[id(iterator)] = start_us, pids
        if self._is_in_range():
            self._at_work.add(id(iterator))
            args = {
                "num_workers": len(pids),
                "pin_memory": bool(getattr(iterator, "_pin_memory", False)),
                "prefetch_factor": getattr(iterator, "_prefetch_factor", None) or 0,
            }
            name = f"{type(iterator).__name__}.__init__"
            self._record(PT_DATALOADER_INITIALIZE, name, start_us, args)

    def _end_workers(self, iterator: int) -> None:
        """Record the life of the workers of an iterator that was used in the range."""
        start_us, pids = self._workers.pop(iterator)
        if iterator not in self._at_work:
            return
        self._at_work.remove(iterator)
        for worker, pid in enumerate(pids):
            args = {"worker_id": worker, "pid": pid}
            self._record(PT_DATALOADER_WORKER, PT_DATALOADER_WORKER, start_us, args)

    def _record(self, phase: str, name: str, start_us: int, args: dict[str, Any]) -> None:
        metrics = self._recorder.config.data_loader
        if metrics is not None and any(map(metrics.pattern.match, (name, phase))):
            self._recorder.add_event(phase, name, start_us, {"pid": os.getpid(), **args})
