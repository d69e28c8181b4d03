"""SavedTensors: the tensors of a trial's steps, and their values, shared by all rules."""

import math
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.format.index_file import Files, Span, shared_names
from rule_core.format.paths import has_several_modes, worker_of
from rule_core.model.reductions import Reduction, compute, is_in_pieces
from rule_core.model.segments import step_text
from rule_core.model.streaming_statistics import Array, StreamingStatistic, measure
from rule_core.modes import ModeKeys
from rule_core.reading.event_reader import EventReader
from rule_core.reading.file_problems import UNREADABLE, FailedReads
from rule_core.reading.measuring.arrived import ArrivedMeasures
from rule_core.reading.measuring.large_tensors import LARGE, LargeTensor, LargeTensors
from rule_core.reading.measuring.local_prefetch import LocalPrefetch
from rule_core.reading.measuring.measurer import Measurer
from rule_core.reading.prefetching_reader import PrefetchingReader
from rule_core.reading.remote_prefetch import WALL_TIME, RemotePrefetch, beginning
from rule_core.storage.base import (
    ByteRange,
    FileStore,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)
from rule_core.storage.read_pool import ReadPool

CACHED_RESULTS: Final = 1 << 16
CACHED_NAMES: Final = 64  # lists of names
_NOTHING: Final = ByteRange(0, 0)


class SavedTensors:
    """The tensors of the steps of a trial: where they are, their values and their measures.

    A part of a step is what a worker saved in one mode; see `worker_of`.

    Parameters
    ----------
    store
        The store with the event files.
    pool
        The threads that read from a remote store.
    files
        Global step -> part -> index file; it may grow.
    ahead
        The growing files and steps to read in advance.

    Attributes
    ----------
    failures
        The failed reads of the current step since the last refresh.
    local_prefetch
        Measures in advance what rules will query; None for remote stores without a measurer.
    """

    def __init__(
        self,
        store: TrialStore,
        pool: ReadPool[memoryview] | None,
        files: Files,
        ahead: tuple[Files, Sequence[int]],
    ) -> None:
        self._store = store
        self._files = files
        self._ahead = ahead
        self.failures = FailedReads()
        self._results: OrderedDict[tuple[str, int, str, StreamingStatistic, int | None], Any] = (
            OrderedDict()
        )
        # By the identities of the entries of a step: the entries, and their names.
        self._names_of: dict[tuple[int, ...], tuple[list[Any], tuple[str, ...]]] = {}
        self._reader = EventReader(store)
        self._plan: RemotePrefetch | None = None
        self._arrived: ArrivedMeasures | None = None
        self.local_prefetch: LocalPrefetch | None = None
        self._large = LargeTensors(store, pool)
        if pool is not None:
            self._reader = prefetching = PrefetchingReader(store, pool)
            self._plan = RemotePrefetch(prefetching, store.costs.gap, *ahead)
            self._arrived = ArrivedMeasures(prefetching, *ahead)
        elif isinstance(store, FileStore):
            self.local_prefetch = LocalPrefetch(store, *ahead, self._reader.layouts)

    def measure_with(self, measurer: Measurer) -> None:
        """Let a measurer answer first; what it does not know is measured here."""
        if self.local_prefetch is None:
            self.local_prefetch = LocalPrefetch(None, *self._ahead, self._reader.layouts)
        self.local_prefetch.measurer = measurer

    def forget(self, key: str) -> None:
        """Drop the cached bytes of an event file, which has changed."""
        self._reader.forget(key)

    def modes_at(self, step: int) -> dict[ModeKeys, int]:
        """Return the mode step of a global step in each of its modes, TRAIN first.

        Modes differ only between the parts of one worker; of several workers the first counts.
        """
        parts = self._files.get(step, {})
        if parts and (len(parts) == 1 or not has_several_modes(parts)):
            file = parts[min(parts)]
            return {file.mode: file.mode_step}
        steps = {file.mode: file.mode_step for _, file in sorted(parts.items(), reverse=True)}
        return {mode: steps[mode] for mode in ModeKeys if mode in steps}

    def clear_cached_bytes(self) -> None:
        """Drop the bytes of event files that have been read; they are read again on use."""
        self._reader.clear()

    def names_at(self, step: int, mode: ModeKeys) -> tuple[str, ...]:
        """Return the sorted names saved at a global step in a mode; see `shared_names`."""
        files = self._files.get(step, {}).values()
        entries = [file.entries for file in files if mode in {ModeKeys.GLOBAL, file.mode}]
        key = tuple(map(id, entries))
        cached = self._names_of.get(key)
        # In a copy of this object, identities of other entries may be among the keys.
        if cached is None or not all(map(is_, cached[0], entries)):
            names = shared_names(tuple(sorted(set().union(*entries))))
            if len(self._names_of) >= CACHED_NAMES:
                self._names_of.clear()
            cached = self._names_of[key] = entries, names
        return cached[1]

    def parts_with(self, name: str, step: int, mode: ModeKeys) -> list[str]:
        """Return the parts of a global step with anything of a tensor.

        They are ordered by worker, and those of one worker by mode, TRAIN first.
        """
        files = self._files.get(step, {})
        if len(files) == 1:  # as in most trials
            ((part, file),) = files.items()
            is_there = name in file.entries and (mode is ModeKeys.GLOBAL or file.mode is mode)
            return [part] if is_there else []
        parts = [
            part
            for part, file in files.items()
            if name in file.entries and (mode is ModeKeys.GLOBAL or file.mode is mode)
        ]
        if len(parts) > 1:
            parts.sort()
            if has_several_modes(parts):
                parts.sort(key=lambda part: (worker_of(part), files[part].mode.value))
        return parts

    def original_name(self, name: str, steps: Iterable[int]) -> str | None:
        """Return the framework's own name of a tensor, from the first shape saved at `steps`."""
        for step in steps:
            for part in self.parts_with(name, step, ModeKeys.GLOBAL):
                original_name = self._files[step][part].entries[name].original_name
                if original_name:
                    return original_name
        return None

    def scalar(self, name: str, step: int, mode: ModeKeys, worker: str | None) -> float | None:
        """Return a number in a row of a source; see `TrialView.scalar`."""
        del name, step, mode, worker
        return None

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return the numbers in the rows of a source, by name; see `TrialView.scalars`."""
        del step
        return {}

    def row_value(
        self, name: str, step: int, part: str, reduction: tuple[str, bool] | None = None
    ) -> Array:
        """Raise ObjectNotFoundError: a part without an event file has no values."""
        del name, reduction
        raise ObjectNotFoundError(self._files[step][part].key)

    def row_time(self, step: int, part: str) -> float:
        """Return NaN: a part without an event file has no time."""
        del step, part
        return math.nan

    def value(
        self, name: str, step: int, worker: str, reduction: tuple[str, bool] | None = None
    ) -> Array:
        """Return a read-only view of a saved value or reduction; see `EventReader.tensor`."""
        file = self._files[step][worker]
        if file.event_key is None:
            return self.row_value(name, step, worker, reduction)
        entry = file.entries[name]
        span = (entry.raw if reduction is None else entry.reductions[reduction]) or Span(0, 0)
        known_layout = entry.layout if reduction is None else None
        content = name, reduction
        self.failures.check(file.event_key, content)
        try:
            if self._plan is not None:
                self._plan.before(step, worker, content, span)
            return self._reader.tensor(file.event_key, span, content, known_layout)
        except UNREADABLE as err:
            self.failures.add(file.event_key, content, err)
            raise

    def _load(self, name: str, step: int, worker: str) -> None:
        """Read what a query about a value of a remote trial needs; raises what `value` does."""
        file = self._files[step][worker]
        span = file.entries[name].raw
        if self._plan is None or file.event_key is None or span is None:
            return
        content = name, None
        with self.failures.remembered(file.event_key, content):
            self._plan.before(step, worker, content, span)
            self._plan.load(file.event_key, span)

    def lacks_event_file(self, step: int, worker: str) -> bool:
        """Return whether the event file of an index file does not exist yet.

        It does exist if the store fails: reading the file then raises the reason.
        """
        key = self._files[step][worker].event_key
        if key is None:
            return False
        try:
            if not (self._plan and self._plan.exists(step, worker)):
                self._store.read(key, _NOTHING)
        except ObjectNotFoundError:
            return True
        except StorageUnavailableError:
            return False
        return False

    def wall_time(self, step: int, worker: str, span: Span | None) -> float:
        """Return the time of a record, or of a step without one; NaN without a time.

        Times are in seconds since the epoch.
        """
        file = self._files[step][worker]
        if span is None or file.event_key is None:
            return self.row_time(step, worker)
        with self.failures.remembered(file.event_key, WALL_TIME):
            if self._plan is not None:
                self._plan.before(step, worker, WALL_TIME, beginning(span))
            return self._reader.wall_time(file.event_key, span)

    def measure(
        self,
        name: str,
        step: int,
        worker: str,
        statistic: StreamingStatistic,
        before: int | None = None,
    ) -> Any:
        """Return a statistic of a saved value, and cache it for other rules.

        Parameters
        ----------
        before
            The global step of the value to compare with.

        Raises
        ------
        SMDebugTypeError, SMDebugValueError
            If the value is not of real numbers, or differs in shape or type from the one to compare
            with; for a reduction see `compute_all`.
        """
        key = (name, step, worker, statistic, before)
        result = self._results.get(key)
        if result is None:
            result = self._measured(name, step, worker, statistic, before)
            if len(self._results) >= CACHED_RESULTS:
                self._results.popitem(last=False)
            self._results[key] = result
        if self.local_prefetch is not None:
            self.local_prefetch.missed(step, worker, name, (statistic, before))
        return result

    def _large_tensor(
        self, name: str, step: int, worker: str, statistic: StreamingStatistic, before: int | None
    ) -> LargeTensor | None:
        """Return a tensor that is measured piece by piece, or None if it is read whole."""
        file = self._files[step][worker]
        entry = file.entries[name]
        layout = entry.layout
        if layout is None or layout.length < LARGE or file.event_key is None:
            return None
        is_whole = isinstance(statistic, Reduction) and not is_in_pieces(
            statistic, layout.dtype, layout.size
        )
        if layout.dtype.kind not in "biufV" or is_whole:
            return None
        earlier = None
        if before is not None:
            file_before = self._files[before][self._like_part(name, before, worker)]
            if file_before.event_key is None:
                return None
            earlier = file_before.event_key, file_before.entries[name]
        return LargeTensor(name, step, file.event_key, entry, earlier)

    def _measured(
        self, name: str, step: int, worker: str, statistic: StreamingStatistic, before: int | None
    ) -> Any:
        large = self._large_tensor(name, step, worker, statistic, before)
        if large is not None:
            with self.failures.remembered(large.key, name):
                return self._large.measure(large, (statistic, before))
        if self._arrived is not None and before is None:
            self._load(name, step, worker)
            answer = self._arrived.get(step, worker, name, statistic)
            if answer is not None:
                return answer
        array = self.value(name, step, worker)
        if isinstance(statistic, Reduction):
            return compute(array, *statistic)
        earlier = None
        if before is not None:
            earlier = self.value(name, before, self._like_part(name, before, worker))
        if array.dtype.kind not in "biufV" or not array.size:
            raise SMDebugTypeError(
                f"Tensor {name!r} holds no real numbers at step {step_text(step)}."
            )
        if earlier is not None and (earlier.shape, earlier.dtype) != (array.shape, array.dtype):
            where = "" if before is None else f" at step {step_text(before)}"
            raise SMDebugValueError(f"Tensor {name!r} is of another shape or type{where}.")
        return measure(array, [statistic], earlier)[statistic]

    def _like_part(self, name: str, step: int, part: str) -> str:
        """Return the part of another step that holds a tensor of the same worker."""
        files = self._files[step]
        if part in files and name in files[part].entries:
            return part
        parts, worker = self.parts_with(name, step, ModeKeys.GLOBAL), worker_of(part)
        return next(other for other in parts if worker_of(other) == worker)
