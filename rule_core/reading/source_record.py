"""SourceRecord: the steps, numbers and files that a `Source` has read, in columns.

A number takes 16 bytes: its step and its value. Nothing else is stored for each number.
"""

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from rule_core.format.index_file import Entry, IndexFile, Layout, Span
from rule_core.model.parameter_names import parameter_collection
from rule_core.model.sampled_times import SampledTimes
from rule_core.model.segments import MAX_SEGMENTS, SEGMENT_STEPS
from rule_core.modes import ModeKeys

WORKER: Final = "worker_0"
SCALARS: Final = "scalars"  # the collection of numbers that have no other
LOSSES_AND_METRICS: Final = frozenset({"losses", "metrics"})  # collections
NUMBER: Final = Entry(raw=Span(0, 0))  # of a tensor that is a column
POINTS_AT_ONCE: Final = 8192
FEW_POINTS: Final = 64  # fewer are added one by one
EPOCHS: Final = -1  # the stream of names that count otherwise than others of their file
_SLOWER: Final = 2  # times; an evaluation that is merely late is not as far behind
NAMES_SHOWN: Final = 10  # in one sentence
NO_TENSORS: Final = Layout({}, (), {}, has_records=False, first_record=None, end=0)
_NO_STEPS: Final = np.empty(0, np.int64)
ReductionKey = tuple[str, bool]
Reductions = Mapping[ReductionKey, float]


class TensorName(NamedTuple):
    """What the written name of a series says.

    Attributes
    ----------
    mode
        The mode of the tensor.
    collection
        Its collection; "" for none.
    name
        What the tensor is called; "" if as written.
    mode_by, collection_by
        The option that decides the mode or the collection; "" if the name does.
    says_mode
        Whether a word of the name says the mode.
    """

    mode: ModeKeys
    collection: str
    name: str = ""
    mode_by: str = ""
    collection_by: str = ""
    says_mode: bool = False

    @property
    def is_metric(self) -> bool:
        """Whether it is a loss or a metric."""
        return self.collection in LOSSES_AND_METRICS


class Column:
    """The values of one tensor in one mode: global steps, ascending, and a value for each.

    Attributes
    ----------
    reductions
        The reductions that the columns of `values` hold; None if there is one value a step.
    is_moved
        Whether its steps are those of other names, since it counts in another unit.
    """

    __slots__ = ("is_moved", "lane", "last", "name", "reductions", "steps", "values")

    def __init__(self, name: str, lane: "Lane") -> None:
        self.name = name
        self.lane = lane
        self.last = -1
        self.is_moved = False
        self.steps = array("q")
        self.values = array("d")
        self.reductions: tuple[ReductionKey, ...] | None = None

    def repeats(self, position: int, value: float) -> bool:
        """Return whether a number is the last one again."""
        if position != self.last or self.reductions is not None or not self.values:
            return False
        last = self.values[-1]
        return last == value or (math.isnan(last) and math.isnan(value))

    def extend(self, steps: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Add values; their steps are larger than any before."""
        if self.lane.leader is not self:
            self.steps.frombytes(steps.tobytes())
        self.values.frombytes(values.tobytes())
        self.last = int(steps[-1])


class Lane:
    """The steps of one source in one mode.

    Attributes
    ----------
    part
        The key of the lane in ``SourceIndex.files``.
    key
        The key of the source's file.
    stream
        The number of the stream; see `SourceRecord`.
    steps
        The global steps, ascending.
    times
        When each was written, as far as it is kept.
    leader
        The column that has every step and therefore shares `steps`, to save memory; None if there
        is none.
    files
        The files of tensors by global step and part, such as those of a checkpoint.
    changes
        The number of changes of `files`.
    """

    def __init__(
        self, part: str, key: str, mode: ModeKeys, stream: int, steps: "array[int]"
    ) -> None:
        self.part = part
        self.key = key
        self.stream = stream
        self.mode = mode
        self.last = -1
        self.steps = steps
        self.times = SampledTimes()
        self.leader: Column | None = None
        self.columns: dict[str, Column] = {}
        self.files: dict[int, dict[str, IndexFile]] = {}
        self.changes = 0

    def append(self, step: int, time: float) -> None:
        """Add a step, which is larger than any before."""
        self.last = step
        self.steps.append(step)
        self.times.append(time)

    def extend(self, steps: NDArray[np.int64], times: NDArray[np.float64]) -> None:
        """Add steps, which are larger than any before."""
        if len(steps):
            self.last = int(steps[-1])
            self.steps.frombytes(steps.tobytes())
            self.times.extend(times)

    def own_steps(self) -> None:
        """Stop sharing the steps with the index of the trial."""
        steps = self.steps[:]
        if self.leader is not None:
            self.leader.steps = steps
        self.steps = steps

    def has_no_leader(self) -> None:
        """Stop sharing the steps with a column, which will lack the next one."""
        if self.leader is not None:
            self.leader.steps = self.steps[:]
            self.leader = None


class SourceRecord:
    """What was read of one source.

    A row whose step does not grow within its mode begins a new segment, for all modes. Rows of one
    step without a common name are one row: some writers use a line for each name.

    Parameters
    ----------
    key
        The key of the source's file or folder, for messages.
    prefix
        Distinguishes the lanes of this source from those of others.
    name
        Returns what the written name of a series says.
    mode
        The mode of everything in this source, unless an option or a word of the name decides it;
        None: that of each name.
    report
        Called with a key and a sentence for each problem.
    parameter
        Returns the collection of a tensor in a file; "" for none.
    steps
        Where the global steps go as long as there is only one lane; None if they are not shared.

    Attributes
    ----------
    lanes
        By stream and mode.
    columns
        Those of the current worker, by written name. Such a name has one mode.
    members
        The tensors of each collection.
    segment
        The current segment; the first is 0.
    stream
        The number of what is being read, such as a file. A name belongs to the stream in which it
        first occurs. The order between streams is unknown: a step of one is never moved because
        another stream is ahead.
    caveat
        A sentence on what the format may hide, for the results; "" for nothing.
    steps_from
        The column that counts the steps, or ``row``; "" unless the source sets it.
    is_ordered
        Whether the numbers of a stream come in the order written, those of all modes.
    peers
        The records of the same run, this one among them.
    """

    def __init__(
        self,
        key: str,
        prefix: str,
        name: Callable[[str], TensorName],
        report: Callable[[str, str], None],
        mode: ModeKeys | None = None,
        parameter: Callable[[str], str] = parameter_collection,
        steps: "array[int] | None" = None,
    ) -> None:
        self.key = key
        self.lanes: dict[tuple[int, ModeKeys], Lane] = {}
        self._columns_of: dict[int, dict[str, Column]] = {}
        self.members: dict[str, set[str]] = {}
        self.segment = 0
        self.turn_to(0)
        self.caveat = ""
        self.steps_from = ""
        self.is_ordered = False
        self.peers: Sequence[SourceRecord] = ()
        self._prefix = prefix
        self._name = name
        self._parameter = parameter
        self._mode = mode
        self._report = report
        self._base = 0
        self._shared = steps

    def turn_to(self, stream: int) -> None:
        """Read what a worker writes to a stream of its own, in which it has every name."""
        self.stream = stream
        self.columns = self._columns_of.setdefault(stream, {})

    def point(self, name: str, step: int, value: float, time: float = 0.0) -> None:
        """Add one number.

        If the step did not grow for this name, a new segment begins, unless the number repeats the
        last one: a Trainer logs the epoch with the loss and again with the evaluation. If the step
        is merely smaller than that of other names, the number belongs to their latest step. So does
        one of an evaluation that counts more slowly than the training, if both are in order.

        Parameters
        ----------
        step
            ``0 <= step < 2**48``; see `is_step`.
        time
            When it was written, in seconds since the epoch; 0 if unknown.
        """
        column = self.columns.get(name) or self._add_column(name)
        if column.reductions is None:
            self._add(column, step, value, time)
        else:
            self._refuse(column)

    def _add(self, column: Column, step: int, value: float, time: float) -> None:
        position = self._base + step
        if column.repeats(position, value):
            return
        if position <= column.last and not self.begin_segment():
            return
        position = self._base + step
        column.last = position
        lane = column.lane
        latest = self._latest(lane, position)
        if position <= lane.last and not column.values and self._has_twin(column):
            lane = column.lane = self._lane_of_epochs(column)
        elif position <= latest:
            column.is_moved |= position < latest
            position = latest  # a name that counts epochs, say, where others count batches
            position += bool(column.steps) and column.steps[-1] == position
        if lane.leader is not column:
            if position > lane.last:
                lane.has_no_leader()
            column.steps.append(position)
        if position > lane.last:
            lane.append(position, time)
        column.values.append(value)

    def _latest(self, lane: Lane, position: int) -> int:
        """Return the latest step that a number of a lane may belong to, if its own is smaller."""
        train = self._training_of(lane)
        latest, step = train.last - self._base if train else -1, position - self._base
        is_slower = latest >= _SLOWER * step and latest > step + 1
        return max(lane.last, self._base + latest) if is_slower else lane.last

    def _training_of(self, lane: Lane) -> Lane | None:
        """Return the lane of the training beside an evaluation, if their numbers are in order."""
        is_evaluation = self.is_ordered and lane.mode is ModeKeys.EVAL
        return self.lanes.get((lane.stream, ModeKeys.TRAIN)) if is_evaluation else None

    def _has_twin(self, column: Column) -> bool:
        """Return whether another source counts the same name in its own unit."""
        twins = (peer.columns.get(column.name) for peer in self.peers if peer is not self)
        return any(twin is not None and twin.values and not twin.is_moved for twin in twins)

    def _lane_of_epochs(self, column: Column) -> Lane:
        """Return the lane of names that count as their twins do, and let a column change to it."""
        del column.lane.columns[column.name]
        lane = self._lane(column.lane.mode, EPOCHS)
        lane.columns[column.name] = column
        return lane

    def points(
        self,
        names: Sequence[str],
        which: NDArray[np.int64],
        steps: NDArray[np.int64],
        values: NDArray[np.float64],
        times: NDArray[np.float64],
    ) -> None:
        """Add many numbers, as `point` does one after the other, but faster.

        Parameters
        ----------
        names
            Names, each once.
        which
            The name of each number, as a position in `names`.
        steps, values, times
            Of each number; see `point`.
        """
        for start in range(0, len(which), POINTS_AT_ONCE):
            part = slice(start, start + POINTS_AT_ONCE)
            columns = which[part], steps[part], values[part], times[part]
            if len(columns[0]) < FEW_POINTS or not self._extend(names, *columns):
                rows = zip(*(column.tolist() for column in columns), strict=True)
                for place, step, value, time in rows:
                    self.point(names[place], step, value, time)

    def _extend(
        self,
        names: Sequence[str],
        which: NDArray[np.int64],
        steps: NDArray[np.int64],
        values: NDArray[np.float64],
        times: NDArray[np.float64],
    ) -> bool:
        """Add numbers whose steps grow; return whether they do."""
        order = np.argsort(which, kind="stable")
        sorted_names, positions = which[order], steps[order] + self._base
        starts = np.flatnonzero(np.diff(sorted_names, prepend=-1))
        columns = [self._column(names[place]) for place in sorted_names[starts].tolist()]
        grows = np.diff(positions) > 0
        grows[starts[1:] - 1] = True  # where another name begins
        lasts = np.array([max([column.last, *column.steps[-1:]]) for column in columns])
        has_histograms = any(column.reductions for column in columns)
        if has_histograms or not grows.all() or (positions[starts] <= lasts).any():
            return False
        added = self._new_steps(columns, order, starts, steps + self._base)
        if added is None:
            return False
        parts = (np.split(numbers, starts[1:]) for numbers in (positions, values[order]))
        by_column: dict[Column | None, tuple[NDArray[np.int64], NDArray[np.float64]]]
        by_column = dict(zip(columns, zip(*parts, strict=True), strict=True))
        for lane, chosen in added:
            new = steps[chosen] + self._base
            of_leader, _ = by_column.get(lane.leader, (_NO_STEPS, None))
            if not np.array_equal(new, of_leader):
                lane.has_no_leader()
            lane.extend(new, times[chosen])
        for column in columns:
            column.extend(*by_column[column])
        return True

    def _new_steps(
        self,
        columns: Sequence[Column],
        order: NDArray[np.int64],
        starts: NDArray[np.int64],
        positions: NDArray[np.int64],
    ) -> list[tuple[Lane, NDArray[np.int64]]] | None:
        """Return which numbers have a new step of each lane; None if the steps of one go back."""
        lanes = list(dict.fromkeys(column.lane for column in columns))
        sizes = np.diff(starts, append=len(order))
        lane_of = np.empty(len(order), np.int64)
        lane_of[order] = np.repeat([lanes.index(column.lane) for column in columns], sizes)
        added = []
        for number, lane in enumerate(lanes):
            own = np.flatnonzero(lane_of == number)
            growth = np.diff(positions[own], prepend=lane.last)
            if (growth < 0).any() or self._is_slower(lane, lanes, lane_of, positions):
                return None
            added.append((lane, own[growth > 0]))
        return added

    def _is_slower(
        self,
        lane: Lane,
        lanes: Sequence[Lane],
        lane_of: NDArray[np.int64],
        positions: NDArray[np.int64],
    ) -> bool:
        """Return whether a number of an evaluation is far behind the training that writes it."""
        train = self._training_of(lane)
        if train is None:
            return False
        is_train = lane_of == (lanes.index(train) if train in lanes else -1)
        latest = np.maximum.accumulate(np.where(is_train, positions, train.last)) - self._base
        own = lane_of == lanes.index(lane)
        latest, steps = latest[own], positions[own] - self._base
        return bool(((latest >= _SLOWER * steps) & (latest > steps + 1)).any())

    def row(self, step: int, values: Mapping[str, float], time: float = 0.0) -> None:
        """Add the numbers of one line; its step must not be smaller than any before in its mode.

        Otherwise a new segment begins; see `point`.
        """
        position = self._base + step
        columns = [self._column(name) for name in values]
        goes_back = any(
            position < column.lane.last
            or (position <= column.last and not column.repeats(position, value))
            for column, value in zip(columns, values.values(), strict=True)
        )
        if goes_back and not self.begin_segment():
            return
        for name, value in values.items():
            self.point(name, step, value, time)

    def summary(self, name: str, step: int, reductions: Reductions, time: float = 0.0) -> None:
        """Add the reductions of a tensor whose elements are unknown, such as a histogram.

        Parameters
        ----------
        reductions
            By name and whether of the magnitudes; the same ones at each step.
        """
        column = self._column(name)
        if not column.values:
            column.reductions = tuple(reductions)
        if column.reductions is None:
            self._refuse(column)
            return
        before = len(column.values)
        first, *others = (reductions.get(key, math.nan) for key in column.reductions)
        self._add(column, step, first, time)
        if len(column.values) > before:
            column.values.extend(others)

    def _refuse(self, column: Column) -> None:
        kind = "numbers" if column.reductions is None else "histograms"
        self.problem(f"{column.name!r} names numbers and histograms; only {kind} are read.")

    def files(self, step: int, layouts: Mapping[str, Layout], time: float = 0.0) -> int | None:
        """Add files that hold tensors of a step, such as a checkpoint.

        Parameters
        ----------
        layouts
            The entries of each file, by its key.

        Returns
        -------
        int or None
            The global step; None if there are too many segments.
        """
        lane = self._lane(self._mode or ModeKeys.TRAIN)
        if self._base + step <= lane.last and not self.begin_segment():
            return None
        position = self._base + step
        lane.has_no_leader()
        lane.append(position, time)
        lane.changes += 1
        lane.files[position] = {
            f"{lane.part}.{number}": IndexFile(
                position, WORKER, key, lane.mode, step, key, layout, layout.entries
            )
            for number, (key, layout) in enumerate(layouts.items())
        }
        for layout in layouts.values():
            for name in layout.names:
                if collection := self._parameter(name):
                    self.members.setdefault(collection, set()).add(name)
        return position

    def lose_files(self, position: int) -> None:
        """Consider the files of a global step deleted: it holds no tensors any more."""
        for lane in self.lanes.values():
            parts = lane.files.get(position)
            if parts:
                lane.changes += 1
                empty = {"event_file": None, "layout": NO_TENSORS, "entries": NO_TENSORS.entries}
                lane.files[position] = {
                    part: replace(file, **empty) for part, file in parts.items()
                }

    def begin_segment(self) -> bool:
        """Begin a new segment: steps may start again.

        A reader calls it if a file was begun anew with other content. Returns False, after a
        report, if there are too many segments.
        """
        if self.last < self._base:  # the current one is empty
            return True
        if self.segment + 1 >= MAX_SEGMENTS:
            self.problem(
                f"Its steps go back more than {MAX_SEGMENTS - 1} times; later ones are skipped."
            )
            return False
        self.segment += 1
        self._base = self.segment * SEGMENT_STEPS
        return True

    def own_steps(self) -> None:
        """Stop sharing steps with the index of the trial, which gets those of other lanes too."""
        for lane in self.lanes.values():
            if lane.steps is self._shared:
                lane.own_steps()
        self._shared = None

    def problem(self, text: str, key: str | None = None) -> None:
        """Report what is wrong with a file, as a sentence; each is logged once."""
        self._report(self.key if key is None else key, text)

    @property
    def last(self) -> int:
        """The last global step; -1 before the first."""
        return max((lane.last for lane in self.lanes.values()), default=-1)

    @property
    def lasts(self) -> list[int]:
        """The last global step of each stream."""
        lasts: dict[int, int] = {}
        for (stream, _), lane in self.lanes.items():
            lasts[stream] = max(lane.last, lasts.get(stream, -1))
        return [*lasts.values()]

    def _lane(self, mode: ModeKeys, stream: int | None = None) -> Lane:
        stream = self.stream if stream is None else stream
        lane = self.lanes.get((stream, mode))
        if lane is None:
            title = f"s{stream}." if stream else ""
            part = f"{WORKER}@{self._prefix}{title}{mode.name}"
            lane = Lane(part, self.key, mode, stream, self._first_steps())
            self.lanes[stream, mode] = lane
        return lane

    def _first_steps(self) -> "array[int]":
        """Return the steps of a new lane; the only one shares those of the index."""
        if self._shared is not None and not self.lanes:
            return self._shared
        self.own_steps()
        return array("q")

    def _column(self, name: str) -> Column:
        return self.columns.get(name) or self._add_column(name)

    def _add_column(self, written: str) -> Column:
        meaning = self._name(written)
        is_by_name = meaning.mode_by or meaning.says_mode
        lane = self._lane(meaning.mode if is_by_name else self._mode or meaning.mode)
        column = Column(meaning.name or written, lane)
        if not lane.columns and not lane.steps:
            lane.leader = column
            column.steps = lane.steps
        self.columns[written] = column
        other = lane.columns.get(column.name)
        if other is None or (meaning.name and self.columns.get(column.name) is other):
            if other is not None:
                self._keep_written_name(other, column.name)
            lane.columns[column.name] = column
            self.members.setdefault(meaning.collection or SCALARS, set()).add(column.name)
        else:
            if meaning.name:
                self.problem(f"{written!r} is not called {column.name!r}: another series is.")
            self._keep_written_name(column, written)
        return column

    def _keep_written_name(self, column: Column, written: str) -> None:
        """Call a column as it is written, since another one of its mode has its name."""
        column.name = written
        while column.name in column.lane.columns:
            column.name += " (as written)"
        column.lane.columns[column.name] = column
        self.members.setdefault(SCALARS, set()).add(column.name)

    def decisions(self) -> Iterator[str]:
        """Yield a sentence for each changed name, each mode and each collection of series."""
        groups: dict[tuple[bool, str, str], list[str]] = {}
        for written, column in self.columns.items():
            meaning, name = self._name(written), column.name
            is_by_file = self._mode is not None and not meaning.says_mode
            mode_by = meaning.mode_by or ("the file" if is_by_file else "")
            collection, collection_by = meaning.collection or SCALARS, meaning.collection_by
            if name != written:
                yield f"{written!r} is read as {name!r}, by --map"
            if name != (meaning.name or written):  # the name that it would have is another's
                collection, collection_by = SCALARS, "--map"
            groups.setdefault((False, column.lane.mode.name.lower(), mode_by), []).append(name)
            groups.setdefault((True, collection, collection_by), []).append(name)
        for (_, group, by), names in sorted(groups.items(), key=lambda item: item[0][0]):
            by_name = "its name" if len(names) == 1 else "their names"
            yield f"{group}: {quoted(names)}, by {by or by_name}"


def quoted(names: Sequence[str]) -> str:
    """Return the first names in quotation marks, and the number of the others."""
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(f"{name!r:.100}" for name in names[:NAMES_SHOWN]) + more


def is_step(number: float) -> bool:
    """Return whether a number can be a step.

    >>> is_step(3), is_step(3.0), is_step(3.5), is_step(-1), is_step(float("nan"))
    (True, True, False, False, False)
    """
    return 0 <= number < SEGMENT_STEPS and number == int(number)


def position_in(steps: "array[int]", step: int) -> int:
    """Return the position of a step in ascending steps; -1 if it is absent."""
    position = bisect_left(steps, step)
    return position if position < len(steps) and steps[position] == step else -1
