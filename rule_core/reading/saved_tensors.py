"""TrialIndex: the index of a trial's files and tensors, shared by all rules."""

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Any, ClassVar, Final

from numpy.typing import NDArray

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.format.index_file import Span
from rule_core.format.paths import has_several_modes, worker_of
from rule_core.model.reductions import Reduction, compute, is_in_pieces
from rule_core.model.segments import step_text
from rule_core.model.streaming_statistics import StreamingStatistic, measure
from rule_core.modes import ModeKeys
from rule_core.reading.event_reader import EventReader
from rule_core.reading.file_problems import UNREADABLE
from rule_core.reading.local_prefetch import Files, LocalPrefetch
from rule_core.reading.measuring.arrived import ArrivedMeasures
from rule_core.reading.measuring.large_tensors import LARGE, LargeTensor, LargeTensors
from rule_core.reading.measuring.measurer import Measurer
from rule_core.reading.native_index import TrialFiles
from rule_core.reading.prefetching_reader import PrefetchingReader
from rule_core.reading.remote_prefetch import WALL_TIME, RemotePrefetch, beginning
from rule_core.storage.base import (
    ByteRange,
    FileStore,
    ObjectNotFoundError,
    StorageUnavailableError,
    TrialStore,
)

CACHED_RESULTS: Final = 1 << 16
CACHED_NAMES: Final = 64  # lists of names
_NOTHING: Final = ByteRange(0, 0)

Array = NDArray[Any]


class TrialIndex(TrialFiles):
    """The files of one trial, and reads of its tensors; see `TrialFiles`.

    Attributes
    ----------
    may_resume
        Whether steps may be repeated in another segment.
    local_prefetch
        Measures in advance what rules will query; None for remote stores without a measurer.
    """

    may_resume: ClassVar[bool] = False

    def __init__(
        self,
        store: TrialStore,
        range_steps: tuple[int | None, int | None] | None = None,
        window: int = 1000,
    ) -> None:
        super().__init__(store, range_steps, window)
        self._results: OrderedDict[tuple[str, int, str, StreamingStatistic, int | None], Any] = (
            OrderedDict()
        )
        self._shared_names: dict[tuple[str, ...], tuple[str, ...]] = {}
        # By the identities of the entries of a step: the entries, and their names.
        self._names_of: dict[tuple[int, ...], tuple[list[Any], tuple[str, ...]]] = {}
        self._reader = EventReader(store)
        self._plan: RemotePrefetch | None = None
        self._arrived: ArrivedMeasures | None = None
        self.local_prefetch: LocalPrefetch | None = None
        self._large = LargeTensors(store, self._pool)
        self._prefetch(self.files, self.steps)

    def _prefetch(self, files: Files, steps: Sequence[int]) -> None:
        """Read and measure in advance what rules will query of growing collections of files."""
        if self._pool is not None:
            self._reader = prefetching = PrefetchingReader(self.store, self._pool)
            self._plan = RemotePrefetch(prefetching, self.store.costs.gap, files, steps)
            self._arrived = ArrivedMeasures(prefetching, files, steps)
        elif isinstance(self.store, FileStore):
            self.local_prefetch = LocalPrefetch(self.store, files, steps, self._reader.layouts)

    def measure_with(self, measurer: Measurer) -> None:
        """Let a measurer answer first; what it does not know is measured here."""
        if self.local_prefetch is None:
            self.local_prefetch = LocalPrefetch(None, self.files, self.steps, self._reader.layouts)
        self.local_prefetch.measurer = measurer

    def mode_of(self, step: int) -> tuple[ModeKeys, int] | None:
        """Return the mode and mode step of a global step, as the first worker saved it.

        If it saved the step in several modes, TRAIN comes first, then EVAL.
        """
        parts = self.files.get(step)
        if not parts:
            return None
        file = parts[min(parts)]
        if len(parts) > 1 and has_several_modes(parts):
            return next(iter(self.modes_at(step).items()))
        return file.mode, file.mode_step

    def modes_at(self, step: int) -> dict[ModeKeys, int]:
        """Return the mode step of a global step in each of its modes, TRAIN first.

        Modes differ only between the parts of one worker; of several workers the first counts.
        """
        parts = self.files.get(step, {})
        if len(parts) == 1:
            (file,) = parts.values()
            return {file.mode: file.mode_step}
        if not has_several_modes(parts):
            first = self.mode_of(step)
            return {} if first is None else {first[0]: first[1]}
        steps = {file.mode: file.mode_step for _, file in sorted(parts.items(), reverse=True)}
        return {mode: steps[mode] for mode in ModeKeys if mode in steps}

    def mode_step_at(self, step: int, mode: ModeKeys) -> int:
        """Return the mode step of a global step."""
        if mode is ModeKeys.GLOBAL:
            return step
        return min(file.mode_step for file in self.files[step].values() if file.mode is mode)

    @property
    def segments(self) -> list[int]:
        """The first global step of each segment, ascending; empty if there is no second one."""
        return []

    def mode_step_pairs(
        self, mode: ModeKeys, horizon: int | None = None
    ) -> Iterable[tuple[int, int]]:
        """Return the mode step and global step of the steps of a mode.

        Parameters
        ----------
        horizon
            Only steps up to this global step, and of its segment. None: all mode steps; the last
            segment that has one counts.
        """
        pairs = self.mode_steps.get(mode, {}).items()
        return pairs if horizon is None else [pair for pair in pairs if pair[1] <= horizon]

    def global_step_of(
        self, mode: ModeKeys, mode_step: int, horizon: int | None = None
    ) -> int | None:
        """Return the global step of a mode step; for `horizon` see `mode_step_pairs`."""
        del horizon
        return self.mode_steps.get(mode, {}).get(mode_step)

    def first_of_mode(self, mode: ModeKeys, horizon: int | None = None) -> int | None:
        """Return the first global step of a known mode, not before the segment of a horizon."""
        del horizon
        return min(self.mode_steps[mode].values())

    def places(self, name: str, mode: ModeKeys) -> Sequence[int]:
        """Return the global steps at which a tensor was saved in a mode; do not modify them."""
        steps_by_name = self.names if mode is ModeKeys.GLOBAL else self.names_by_mode.get(mode, {})
        return steps_by_name.get(name, [])

    def clear_cached_bytes(self) -> None:
        """Drop the bytes of event files that have been read; they are read again on use."""
        self._reader.clear()

    def names_at(self, step: int, mode: ModeKeys) -> tuple[str, ...]:
        """Return the sorted names saved at a global step in a mode; see `shared_names`."""
        files = self.files.get(step, {}).values()
        entries = [file.entries for file in files if mode in {ModeKeys.GLOBAL, file.mode}]
        key = tuple(map(id, entries))
        cached = self._names_of.get(key)
        # In a copy of this object, identities of other entries may be among the keys.
        if cached is None or not all(map(is_, cached[0], entries)):
            names = self.shared_names(
                sorted(entries[0] if len(entries) == 1 else set().union(*entries))
            )
            if len(self._names_of) >= CACHED_NAMES:
                self._names_of.clear()
            cached = self._names_of[key] = entries, names
        return cached[1]

    def shared_names(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return names as a tuple; usually the same one for the same names."""
        names = tuple(names)
        if len(self._shared_names) >= CACHED_NAMES:
            self._shared_names.clear()
        return self._shared_names.setdefault(names, names)

    def missing_workers(self, step: int) -> list[str]:
        """Return the known workers that have not written a step, sorted."""
        return sorted(set(self.workers).difference(map(worker_of, self.files.get(step, ()))))

    def parts_with(self, name: str, step: int, mode: ModeKeys) -> list[str]:
        """Return the parts of a global step with anything of a tensor.

        They are ordered by worker, and those of one worker by mode, TRAIN first.
        """
        files = self.files.get(step, {})
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
                original_name = self.files[step][part].entries[name].original_name
                if original_name:
                    return original_name
        return None

    def is_settled(self, step: int) -> bool:
        """Return whether no more files are expected for a known global step."""
        return (
            self.loaded_all_steps or step <= self.last_complete_step or self._has_all_workers(step)
        )

    def event_file_exists(self, step: int, worker: str) -> bool:
        """Return whether the event file of an index file exists.

        Returns True if the store fails; reading the file then raises the reason.
        """
        key = self.files[step][worker].event_key
        try:
            if key is not None and not (self._plan and self._plan.exists(step, worker)):
                self.store.read(key, _NOTHING)
        except ObjectNotFoundError:
            return False
        except StorageUnavailableError:
            return True
        return True

    def tensor(
        self, name: str, step: int, worker: str, reduction: tuple[str, bool] | None = None
    ) -> Array:
        """Return a read-only view of a saved value or reduction; see `EventReader.tensor`."""
        file = self.files[step][worker]
        entry = file.entries[name]
        span = (entry.raw if reduction is None else entry.reductions[reduction]) or Span(0, 0)
        known_layout = entry.layout if reduction is None else None
        if file.event_key is None:  # the index reader refuses records without an event file
            raise ObjectNotFoundError(file.key)
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
        """Read what a query about a value of a remote trial needs; raises what `tensor` does."""
        file = self.files[step][worker]
        span = file.entries[name].raw
        if self._plan is None or file.event_key is None or span is None:
            return
        content = name, None
        self.failures.check(file.event_key, content)
        try:
            self._plan.before(step, worker, content, span)
            self._plan.load(file.event_key, span)
        except UNREADABLE as err:
            self.failures.add(file.event_key, content, err)
            raise

    def wall_time(self, step: int, worker: str, span: Span) -> float:
        """Return the time of a record, in seconds since the epoch; NaN without a time."""
        file = self.files[step][worker]
        if file.event_key is None:
            raise ObjectNotFoundError(file.key)
        self.failures.check(file.event_key, WALL_TIME)
        try:
            if self._plan is not None:
                self._plan.before(step, worker, WALL_TIME, beginning(span))
            return self._reader.wall_time(file.event_key, span)
        except UNREADABLE as err:
            self.failures.add(file.event_key, WALL_TIME, err)
            raise

    def row_time(self, step: int, worker: str) -> float:
        """Return the time of a step without an event file, in seconds since the epoch; or NaN."""
        del step, worker
        return math.nan

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
        file = self.files[step][worker]
        entry = file.entries[name]
        layout = entry.layout
        if layout is None or layout.length < LARGE or file.event_key is None:
            return None
        if layout.dtype.kind not in "biufV":
            return None
        if isinstance(statistic, Reduction) and not is_in_pieces(
            statistic, layout.dtype, layout.size
        ):
            return None
        earlier = None
        if before is not None:
            file_before = self.files[before][self._like_part(name, before, worker)]
            if file_before.event_key is None:
                return None
            earlier = file_before.event_key, file_before.entries[name]
        return LargeTensor(name, step, file.event_key, entry, earlier)

    def _measured(
        self, name: str, step: int, worker: str, statistic: StreamingStatistic, before: int | None
    ) -> Any:
        large = self._large_tensor(name, step, worker, statistic, before)
        if large is not None:
            self.failures.check(large.key, name)
            try:
                return self._large.measure(large, (statistic, before))
            except UNREADABLE as err:
                self.failures.add(large.key, name, err)
                raise
        if self._arrived is not None and before is None:
            self._load(name, step, worker)
            answer = self._arrived.get(step, worker, name, statistic)
            if answer is not None:
                return answer
        array = self.tensor(name, step, worker)
        if isinstance(statistic, Reduction):
            return compute(array, *statistic)
        earlier = None
        if before is not None:
            earlier = self.tensor(name, before, self._like_part(name, before, worker))
        if array.dtype.kind not in "biufV" or not array.size:
            msg = f"Tensor {name!r} holds no real numbers at step {step_text(step)}."
            raise SMDebugTypeError(msg)
        if earlier is not None and (earlier.shape, earlier.dtype) != (array.shape, array.dtype):
            where = "" if before is None else f" at step {step_text(before)}"
            msg = f"Tensor {name!r} is of another shape or type{where}."
            raise SMDebugValueError(msg)
        return measure(array, [statistic], earlier)[statistic]

    def _like_part(self, name: str, step: int, part: str) -> str:
        """Return the part of another step that holds a tensor of the same worker."""
        files = self.files[step]
        if part in files and name in files[part].entries:
            return part
        parts, worker = self.parts_with(name, step, ModeKeys.GLOBAL), worker_of(part)
        return next(other for other in parts if worker_of(other) == worker)
