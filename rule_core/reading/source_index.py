"""SourceIndex: the outputs of a training run in other formats, as the index of a trial."""

import math
import time
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from rule_core.environment import number
from rule_core.format import paths
from rule_core.model.collection import Collection
from rule_core.model.parameter_names import parameter_collection
from rule_core.model.segments import (
    SEGMENT_STEPS,
    first_of_segment,
    segment_of,
    segments_of,
    step_in_segment,
)
from rule_core.modes import ModeKeys
from rule_core.reading.file_problems import TrialFileProblems
from rule_core.reading.source import DecidingSource, FinishingSource, Source
from rule_core.reading.source_record import (
    WORKER,
    Lane,
    SourceRecord,
    TensorName,
    position_in,
)
from rule_core.reading.source_tensors import SourceFiles, SourceTensors
from rule_core.storage.base import ObjectNotFoundError, TrialStore
from rule_core.storage.read_pool import read_pool

if TYPE_CHECKING:
    from rule_core.reading.saved_tensors import SavedTensors

WAIT_S: Final = 150.0  # for slower sources; writers of TensorBoard files flush after two minutes
QUIET_VARIABLE: Final = "RULE_RUNNER_SOURCE_QUIET_S"
QUIET_S: Final = 600.0  # without a write, after which a run counts as ended
PAUSES: Final = 3.0  # of the longest pause that was seen, after which a run counts as ended
SEARCH_EVERY_S: Final = 1.0  # for sources that appear later
SEARCH_SHARE: Final = 50.0  # ratio of a pause to the search before
_NO_STEPS: Final = np.empty(0, np.int64)
_NO_VALUES: Final = np.empty(0, np.float64)

Array = NDArray[Any]
KeyedSource = tuple[str, Source, ModeKeys | None]


class SourceIndex:
    """The index of a trial that consists of sources; implements `TrialIndex`.

    The order between the files of a run is unknown, so that the steps and their contents must not
    depend on which file is read first. A step is therefore settled once every source has passed it.
    A source that falls behind is waited for: until the step has been known for some time
    (``RULE_RUNNER_SOURCE_WAIT_S``, by default 150), or `window` later ones are known. The last step
    of the source that leads is settled at the end of the run only.

    Parameters
    ----------
    store, range_steps, window
        As for `NativeIndex`.
    sources
        The sources, each with the key of its file or folder.
    name
        Returns what the written name of a series says.
    parameter
        Returns the collection of a tensor in a checkpoint; "" for none.
    find_more
        Returns sources of the same run that appeared later, such as its first checkpoint.
    unused
        Returns a sentence for each option that fits nothing in the sources.

    Attributes
    ----------
    sources
        The sources, for messages.
    set_aside
        Sentences on files of the same run that are not read.
    """

    may_resume: bool = True
    damaged_collections: int = 0

    def __init__(
        self,
        store: TrialStore,
        sources: Sequence[KeyedSource],
        name: Callable[[str], TensorName],
        range_steps: tuple[int | None, int | None] | None = None,
        window: int = 1000,
        parameter: Callable[[str], str] = parameter_collection,
        find_more: Callable[[], Sequence[KeyedSource]] = tuple,
        unused: Callable[[Sequence[SourceRecord]], Iterable[str]] = lambda _: (),
    ) -> None:
        self.store = store
        self.range_steps = range_steps
        self.window = window
        pool = read_pool(store)
        self.is_remote = pool is not None
        self.sources: list[Source] = []
        self.set_aside: Sequence[str] = ()
        self.file_problems = TrialFileProblems(store.uri)
        self._records: list[SourceRecord] = []
        self._name = name
        self._parameter = parameter
        self._find_more = find_more
        self._unused = unused
        self._search_due = time.monotonic() + SEARCH_EVERY_S
        self._steps = array("q")
        self.steps: Sequence[int] = self._steps
        self._members: dict[str, set[str]] = {}  # tensors of each collection
        self._add(sources)
        self._merged: dict[str, int] = {}  # number of steps of each lane that `steps` has
        self._counts: tuple[int, ...] = ()
        self._step_times: deque[tuple[float, int]] = deque()  # when which step was the last known
        self._last_write = self._longest_pause = 0.0
        self._passed = -1  # the last step that the other sources were waited for
        self._searched = -1  # the last step that was known at the last search
        self._names = 0
        self._members_collected = 0  # number of them in `collections`
        self.mode_steps: Mapping[ModeKeys, Mapping[int, int]] = {}
        self.names: Mapping[str, Sequence[int]] = {}
        self.names_by_mode: Mapping[ModeKeys, Mapping[str, Sequence[int]]] = {}
        self.collections: dict[str, Collection] = {}
        self.collections_version = 0
        self.num_workers = 1
        self.workers = self.described = [WORKER]
        self.last_complete_step = self.settled_step = -1
        self.loaded_all_steps = self.unrecognized = False
        self.looked_at = -math.inf
        self.late_parts: dict[int, None] = {}
        self._changes = 0
        self._step_files: dict[int, SourceFiles] = {}
        self._steps_with_files: list[int] = []
        ahead = self._step_files, self._steps_with_files
        self._tensors = SourceTensors(store, pool, ahead, self._lanes)
        self.tensors: SavedTensors = self._tensors
        self.files: Mapping[int, SourceFiles] = self._tensors.files

    def _add(self, sources: Sequence[KeyedSource]) -> None:
        for key, source, mode in sources:
            prefix = f"{len(self.sources)}." if self.sources else ""
            self.sources.append(source)
            shared = self._steps if not self._records and self.range_steps is None else None
            report = self.file_problems.report
            record = SourceRecord(key, prefix, self._name, report, mode, self._parameter, shared)
            record.members, record.peers = self._members, self._records
            for other in self._records:
                other.own_steps()
            self._records.append(record)

    def _search(self) -> None:
        """Add sources that have appeared, if a search is due."""
        began = time.monotonic()
        if began < self._search_due:
            return
        self._add(self._find_more())
        self._searched = max(self._lasts())
        now = time.monotonic()
        self._search_due = now + max(SEARCH_EVERY_S, SEARCH_SHARE * (now - began))

    def _lanes(self) -> Iterator[Lane]:
        for record in self._records:
            yield from record.lanes.values()

    def has_files(self) -> bool:
        """Return whether the store has any file of the trial."""
        return bool(self.steps or next(iter(self.store.list_keys("")), ""))

    def has_ended(self) -> bool:
        """Return whether the run has ended; see `why_ended`."""
        return bool(self.why_ended())

    def why_ended(self) -> str:
        """Return why the run counts as ended, as the end of a sentence; "" if it does not.

        It does if a source says it, if the end mark of a trial is beside the files, or if nothing
        was written for some time: ``RULE_RUNNER_SOURCE_QUIET_S``, by default ten minutes, and more
        for a run that was seen to pause for longer between two writes.
        """
        answers = [source.has_ended() for source in self.sources]
        if True in answers:
            return f"its files say so ({self.sources[answers.index(True)].kind})"
        if paths.END_OF_JOB in self.store.list_keys(paths.END_OF_JOB):
            return f"{paths.END_OF_JOB!r} is beside its files"
        if False in answers:
            return ""
        before = self._last_write
        self._last_write = max((source.last_write() for source in self.sources), default=0.0)
        if 0 < before < self._last_write:
            self._longest_pause = max(self._longest_pause, self._last_write - before)
        quiet = max(number(QUIET_VARIABLE, QUIET_S, "seconds"), PAUSES * self._longest_pause)
        if 0 < self._last_write < time.time() - quiet:
            return f"nothing was written for {quiet:.0f} s"
        return ""

    def is_running(self) -> bool:
        """Return whether a source says that the run goes on; most formats do not say it."""
        return False in [source.has_ended() for source in self.sources]

    def caveats(self) -> Iterator[str]:
        """Yield a sentence for each source that may hide something, and each unused option."""
        for record in self._records:
            if record.caveat:
                yield f"{record.key}: {record.caveat}"
        yield from self._unused(self._records)

    def lacks_collections(self) -> bool:
        """Return False: sources have no collections files."""
        return False

    def lost_files(self) -> int:
        """Return 0: sources are read up to their ends."""
        return 0

    def missing_collections(self) -> list[str]:
        """Return no texts: sources have no collections files."""
        return []

    def read_again(self, step: int) -> bool:
        """Return False: sources have no index files."""
        del step
        return False

    def refresh(self, whole: bool = False, *, ended: bool = False) -> bool:
        """Read what is new; see `TrialIndex`."""
        del whole, ended
        self._search()
        self.tensors.failures.turn_to(None)
        self._each_source(_read)
        if self._update():
            return True
        settled = self.settled_step
        self._settle()
        return self.settled_step > settled

    def _each_source(self, read: Callable[[Source, SourceRecord], None]) -> None:
        for source, record in zip(self.sources, self._records, strict=True):
            try:
                read(source, record)
            except ObjectNotFoundError as err:
                record.problem(str(err), err.key)

    def _update(self) -> bool:
        """Take over what the sources have read; return whether there are new steps or names."""
        self._tensors.forget_steps()
        self._update_files()
        counts = tuple(len(lane.steps) + len(lane.columns) + lane.changes for lane in self._lanes())
        if counts == self._counts:
            return False
        self._counts = counts
        self._update_steps()
        self._update_names()
        self._settle()
        return True

    def _update_files(self) -> None:
        """Pass the files of tensors to the prefetch."""
        lanes = [lane for lane in self._lanes() if lane.files]
        changes = sum(lane.changes for lane in lanes)
        if changes == self._changes:
            return
        self._changes = changes
        before = self._keys_by_step()
        self._step_files.clear()
        for lane in lanes:
            for step, parts in lane.files.items():
                self._step_files[step] = {**self._step_files.get(step, {}), **parts}
        self._steps_with_files[:] = sorted(self._step_files)
        for _, key in before - self._keys_by_step():
            self.tensors.forget(key)

    def _keys_by_step(self) -> set[tuple[int, str]]:
        return {
            (step, file.event_key)
            for step, parts in self._step_files.items()
            for file in parts.values()
            if file.event_key is not None
        }

    def _update_steps(self) -> None:
        """Add the new steps of the lanes, in place: others hold the same array."""
        lanes = list(self._lanes())
        if any(lane.steps is self._steps for lane in lanes):  # the only lane
            return
        new = self._in_range([lane.steps[self._merged.get(lane.part, 0) :] for lane in lanes])
        if len(new) and self.steps and new[0] <= self.steps[-1]:
            position = bisect_left(self.steps, new[0])
            new = self._in_range([self._steps[position:], new])
            del self._steps[position:]
        self._steps.frombytes(new.tobytes())
        self._merged = {lane.part: len(lane.steps) for lane in lanes}

    def _in_range(self, series: Sequence["array[int] | NDArray[np.int64]"]) -> NDArray[np.int64]:
        """Return the distinct steps of several series that are in `range_steps`, ascending."""
        steps = np.concatenate([np.asarray(steps, np.int64) for steps in series])
        steps.sort(kind="stable")  # merges ascending series, which np.unique would hash
        steps = steps[np.diff(steps, prepend=-1) > 0]
        if self.range_steps is None:
            return steps
        begin, end = self.range_steps
        own = steps % SEGMENT_STEPS
        return steps[(own >= (begin or 0)) & (own < (SEGMENT_STEPS if end is None else end))]

    def _update_names(self) -> None:
        """Update names, modes and collections after new ones have appeared."""
        lanes = list(self._lanes())
        count = sum(len(lane.columns) + lane.changes for lane in lanes)
        if count == self._names:
            return
        self._names = count
        modes = dict.fromkeys(lane.mode for lane in lanes)
        self.mode_steps = {mode: _StepsByModeStep(self._lanes, mode) for mode in modes}
        self.names = _StepsByName(lanes)
        self.names_by_mode = {
            mode: _StepsByName([lane for lane in lanes if lane.mode is mode]) for mode in modes
        }
        members = self._members
        size = sum(map(len, members.values()))
        if size != self._members_collected:
            self._members_collected = size
            self.collections = {
                name: Collection(name, (), names) for name, names in sorted(members.items())
            }
            self.collections_version += 1

    def _lasts(self) -> list[int]:
        """Return the last step of each series of the sources; -1 before there is one."""
        return [last for record in self._records for last in record.lasts or [-1]]

    def _settle(self) -> None:
        """Determine up to which step no source can add anything."""
        if not self.steps:
            return
        lasts = self._lasts()
        now = time.monotonic()
        self._step_times.append((now, max(lasts)))
        patience = number("RULE_RUNNER_SOURCE_WAIT_S", WAIT_S, "seconds")
        while self._step_times and self._step_times[0][0] <= now - patience:
            self._passed = self._step_times.popleft()[1]
        first_open = max(min(lasts), min(self._passed + 1, max(lasts)))
        if all(lane.files for lane in self._lanes()):  # the log of checkpoints may come after them
            first_open = min(first_open, self._searched)
        position = max(bisect_left(self.steps, first_open), len(self.steps) - 1 - self.window)
        if position > 0:
            settled = self.steps[position - 1]
            self.last_complete_step = self.settled_step = max(settled, self.settled_step)

    def finish(self) -> None:
        """Consider everything read complete, since the run has ended."""
        self._each_source(_finish)
        self._update()
        self.settle_all()

    def settle_all(self) -> None:
        """Settle the steps that are known, though the run may go on.

        A last line without its end stays unread: a number may be cut off.
        """
        self.loaded_all_steps = True
        self.last_complete_step = self.settled_step = self.steps[-1] if self.steps else -1

    def decisions(self) -> Iterator[list[str]]:
        """Yield what was decided about each source, with the reasons."""
        for source, record in zip(self.sources, self._records, strict=True):
            own = source.decisions() if isinstance(source, DecidingSource) else []
            yield [*own, *record.decisions()]

    def settled(self, steps: Sequence[int]) -> list[int]:
        """Return the settled ones of known steps, ascending."""
        last = self.last_complete_step
        return list(steps if self.loaded_all_steps else steps[: bisect_right(steps, last)])

    def mode_step_pairs(
        self, mode: ModeKeys, horizon: int | None = None
    ) -> Iterable[tuple[int, int]]:
        """Return the mode step and global step of the steps of a mode; see `TrialIndex`."""
        positions = self._positions(mode)
        if horizon is None:
            return {step_in_segment(step): step for step in positions}.items()
        first = bisect_left(positions, first_of_segment(horizon))
        end = bisect_right(positions, horizon)
        return [(step_in_segment(step), step) for step in positions[first:end]]

    def global_step_of(
        self, mode: ModeKeys, mode_step: int, horizon: int | None = None
    ) -> int | None:
        """Return the global step of a mode step; see `TrialIndex`."""
        if horizon is None:
            return self.mode_steps.get(mode, {}).get(mode_step)
        step = first_of_segment(horizon) + mode_step
        if step == horizon:  # as nearly always
            return step if mode in self.tensors.modes_at(step) else None
        return step if position_in(self._positions(mode), step) >= 0 else None

    def mode_step_at(self, step: int, mode: ModeKeys) -> int:
        """Return the mode step of a global step: that of the training itself, in every mode."""
        return step if mode is ModeKeys.GLOBAL else step_in_segment(step)

    def first_of_mode(self, mode: ModeKeys, horizon: int | None = None) -> int | None:
        """Return the first global step of a mode; see `TrialIndex`."""
        positions = self._positions(mode)
        position = 0 if horizon is None else bisect_left(positions, first_of_segment(horizon))
        return positions[position] if position < len(positions) else None

    def _positions(self, mode: ModeKeys) -> "array[int]":
        """Return the global steps of a mode, ascending."""
        steps = self.mode_steps.get(mode)
        return steps.positions() if isinstance(steps, _StepsByModeStep) else array("q")

    def numbers(self, name: str, mode: ModeKeys) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the global steps of a tensor that is a number, ascending, and its values."""
        lanes = [lane for lane in self._lanes() if lane.mode is mode and name in lane.columns]
        columns = [lane.columns[name] for lane in lanes]
        columns = [column for column in columns if column.reductions is None]
        steps = np.concatenate([np.asarray(column.steps) for column in columns] or [_NO_STEPS])
        values = np.concatenate([np.asarray(column.values) for column in columns] or [_NO_VALUES])
        if len(columns) > 1:
            steps, first = np.unique(steps, return_index=True)
            values = values[first]
        return steps, values

    def kinds(self, steps: NDArray[np.int64]) -> dict[str, int]:
        """Return how many of ascending global steps have which modes, such as ``EVAL+TRAIN``."""
        modes = sorted(self.mode_steps, key=lambda mode: mode.name)
        columns = [np.isin(steps, self._positions(mode), assume_unique=True) for mode in modes]
        weights = 1 << np.arange(len(modes))
        codes = np.asarray(columns).T @ weights if modes else np.zeros(len(steps), np.int64)
        counts = np.bincount(codes, minlength=1 << len(modes)).tolist()
        return {
            "+".join(
                mode.name for mode, weight in zip(modes, weights, strict=True) if code & weight
            ): count
            for code, count in enumerate(counts)
        }

    @property
    def source_keys(self) -> list[str]:
        """The files or folders that are read, relative to the root of the store."""
        return [record.key for record in self._records]

    @property
    def source_files(self) -> list[str]:
        """The files or folders that are read, quoted, for messages."""
        root = self.store.uri.rstrip("/")
        return [repr(f"{root}/{key}".rstrip("/")) for key in self.source_keys]

    @property
    def segments(self) -> Sequence[int]:
        """The first global step of each segment; see `TrialIndex`."""
        if not self.steps or self.steps[-1] < SEGMENT_STEPS:
            return []
        return [first for first, _ in segments_of(self.steps)]


def _read(source: Source, record: SourceRecord) -> None:
    while source.read_new(record):
        pass


def _finish(source: Source, record: SourceRecord) -> None:
    if isinstance(source, FinishingSource):
        source.finish(record)


class _StepsByName(Mapping[str, Sequence[int]]):
    """Tensor name -> the global steps that have it, ascending."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._merged: dict[str, tuple[int, Sequence[int]]] = {}

    def __getitem__(self, name: str) -> Sequence[int]:
        series: list[Sequence[int]]
        series = [lane.columns[name].steps for lane in self._lanes if name in lane.columns]
        if name in self._in_files:
            series.append(self._in_files[name])
        if not series:
            raise KeyError(name)
        if len(series) == 1:
            return series[0]
        size = sum(map(len, series))
        cached = self._merged.get(name)
        if cached is None or cached[0] != size:
            cached = self._merged[name] = size, array("q", sorted(set().union(*series)))
        return cached[1]

    @cached_property
    def _in_files(self) -> dict[str, list[int]]:
        """The steps of tensors in files; they are found anew for each change of the lanes."""
        steps: dict[str, set[int]] = {}
        for lane in self._lanes:
            for step, parts in lane.files.items():
                for name in chain.from_iterable(file.entries for file in parts.values()):
                    steps.setdefault(name, set()).add(step)
        return {name: sorted(its_steps) for name, its_steps in steps.items()}

    @cached_property
    def _names(self) -> list[str]:
        columns = chain.from_iterable(lane.columns for lane in self._lanes)
        return [*dict.fromkeys(chain(columns, self._in_files))]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class _StepsByModeStep(Mapping[int, int]):
    """Mode step -> global step of one mode; of several segments, the last that has the step."""

    def __init__(self, lanes: Any, mode: ModeKeys) -> None:
        self._lanes = lanes
        self._mode = mode
        self._merged: tuple[int, array[int]] = 0, array("q")

    def positions(self) -> "array[int]":
        """Return the global steps of the mode, ascending."""
        lanes = [lane.steps for lane in self._lanes() if lane.mode is self._mode]
        if len(lanes) == 1:
            steps: array[int] = lanes[0]
            return steps
        size = sum(map(len, lanes))
        if size != self._merged[0]:
            self._merged = size, array("q", sorted(set().union(*lanes)))
        return self._merged[1]

    def __getitem__(self, mode_step: int) -> int:
        positions = self.positions()
        segments = segment_of(positions[-1]) if positions else -1
        for segment in range(segments, -1, -1):
            step = segment * SEGMENT_STEPS + mode_step
            if position_in(positions, step) >= 0:
                return step
        raise KeyError(mode_step)

    def __iter__(self) -> Iterator[int]:
        return iter(dict.fromkeys(map(step_in_segment, self.positions())))

    def __len__(self) -> int:
        return sum(1 for _ in self)
