"""SourceTensors: the tensors of a trial that consists of sources: rows of numbers, and files."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from heapq import merge
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import numpy as np

from rule_core.exceptions import CorruptFileError
from rule_core.format.index_file import Entry, IndexFile, Layout, Span, shared_names
from rule_core.model.segments import step_in_segment
from rule_core.model.streaming_statistics import Array
from rule_core.modes import ModeKeys
from rule_core.reading.saved_tensors import SavedTensors
from rule_core.reading.source_record import NUMBER, WORKER, Lane, position_in
from rule_core.storage.base import ObjectNotFoundError, TrialStore
from rule_core.storage.read_pool import ReadPool

STEPS_CACHED: Final = 256

SourceFiles = Mapping[str, IndexFile]


class _Row(NamedTuple):
    """The numbers of one lane at one step, by name; None for those that are reductions."""

    part: str
    mode: ModeKeys
    scalars: dict[str, float | None]


class SourceTensors(SavedTensors):
    """The tensors of the steps of a trial that consists of sources.

    Parameters
    ----------
    store, pool, ahead
        As for `SavedTensors`.
    lanes
        Returns the lanes of all sources.
    """

    def __init__(
        self,
        store: TrialStore,
        pool: ReadPool[memoryview] | None,
        ahead: tuple[dict[int, SourceFiles], Sequence[int]],
        lanes: Callable[[], Iterable[Lane]],
    ) -> None:
        self.files = FilesByStep(lanes)
        super().__init__(store, pool, self.files, ahead)
        self._lanes = lanes
        self._modes_at = lru_cache(STEPS_CACHED)(super().modes_at)
        self._names_at = lru_cache(STEPS_CACHED)(super().names_at)

    def forget_steps(self) -> None:
        """Forget what the steps hold, since the sources were read again."""
        self.files.forget()
        self._modes_at.cache_clear()
        self._names_at.cache_clear()

    def modes_at(self, step: int) -> dict[ModeKeys, int]:
        """Return the mode step of a global step in each of its modes; see `SavedTensors`."""
        return self._modes_at(step)

    def names_at(self, step: int, mode: ModeKeys) -> tuple[str, ...]:
        """Return the sorted names saved at a global step in a mode; see `SavedTensors`."""
        return self._names_at(step, mode)

    def lacks_event_file(self, step: int, worker: str) -> bool:
        """Return False: the files of other formats are read before their steps are known."""
        del step, worker
        return False

    def scalar(self, name: str, step: int, mode: ModeKeys, worker: str | None) -> float | None:
        """Return a number in a row at a global step; see `TrialView.scalar`."""
        rows = [
            row
            for row in self.files.rows(step)
            if name in row.scalars and (mode is row.mode or mode is ModeKeys.GLOBAL)
        ]
        if worker is None:
            return rows[0].scalars[name] if len(rows) == 1 else None
        return next((row.scalars[name] for row in rows if worker in {WORKER, row.part}), None)

    def scalars(self, step: int) -> Mapping[str, float]:
        """Return the numbers that only one row of a global step has."""
        rows = self.files.rows(step)
        counts = Counter(chain.from_iterable(row.scalars for row in rows))
        return {
            name: scalar
            for row in rows
            for name, scalar in row.scalars.items()
            if counts[name] == 1 and scalar is not None
        }

    def row_value(
        self, name: str, step: int, part: str, reduction: tuple[str, bool] | None = None
    ) -> Array:
        """Return a value, of shape (1,) for a number, or a reduction; read-only."""
        lane = self._lane(part)
        column = lane.columns.get(name) if lane else None
        key = self.files[step][part].key
        if column is None:
            raise ObjectNotFoundError(key)
        position = position_in(column.steps, step)
        if position < 0:
            raise CorruptFileError(key, f"a value of {name!r}", "none")
        if column.reductions is not None:
            width = len(column.reductions)
            position = position * width + column.reductions.index(reduction or ("", False))
        result = np.array([column.values[position]])
        result.flags.writeable = False
        return result

    def row_time(self, step: int, part: str) -> float:
        """Return when a step was written, in seconds since the epoch; NaN if unknown."""
        lane = self._lane(part)
        position = position_in(lane.steps, step) if lane else -1
        return (lane.times[position] or math.nan) if lane and position >= 0 else math.nan

    def _lane(self, part: str) -> Lane | None:
        return next((lane for lane in self._lanes() if part.startswith(lane.part)), None)


class FilesByStep(Mapping[int, SourceFiles]):
    """Global step -> part -> what it holds, made when it is asked for."""

    def __init__(self, lanes: Callable[[], Iterable[Lane]]) -> None:
        self._lanes = lanes
        self._at = lru_cache(STEPS_CACHED)(self._contents)
        self.forget = self._at.cache_clear
        self._layout = lru_cache(STEPS_CACHED)(_layout_of)

    def __getitem__(self, step: int) -> SourceFiles:
        return self._at(step)[0]

    def get(self, step: int, default: Any = None, /) -> Any:
        """Return the parts of a step, or a default; Mapping does so more slowly."""
        try:
            return self._at(step)[0]
        except KeyError:
            return default

    def rows(self, step: int) -> list[_Row]:
        """Return the rows of a step, TRAIN first; none if it is unknown or has files of tensors."""
        try:
            return self._at(step)[1]
        except KeyError:
            return []

    def _contents(self, step: int) -> tuple[SourceFiles, list[_Row]]:
        """Return the parts of a step and its rows."""
        files: dict[str, IndexFile] = {}
        rows: list[_Row] = []
        has_tensors = False
        mode_step = step_in_segment(step)
        for lane in self._lanes():
            if position_in(lane.steps, step) < 0:
                continue
            scalars = {
                column.name: column.values[position] if column.reductions is None else None
                for column in lane.columns.values()
                if (position := position_in(column.steps, step)) >= 0
            }
            if scalars:
                layout = self._layout(lane, tuple(scalars))
                files[lane.part] = IndexFile(
                    step, WORKER, lane.key, lane.mode, mode_step, None, layout, layout.entries
                )
                rows.append(_Row(lane.part, lane.mode, scalars))
            tensors = lane.files.get(step, {})
            files.update(tensors)
            has_tensors = has_tensors or bool(tensors)
        if not files:
            raise KeyError(step)
        rows.sort(key=lambda row: (row.mode.value, row.part))
        return files, [] if has_tensors else rows

    def __iter__(self) -> Iterator[int]:
        every = merge(*(lane.steps for lane in self._lanes()))
        return (step for step, _ in groupby(every))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, step: object) -> bool:
        return isinstance(step, int) and self.get(step) is not None


def _layout_of(lane: Lane, names: tuple[str, ...]) -> Layout:
    """Return the layout of steps at which these columns of a lane have values."""
    entries = {
        name: NUMBER
        if (reductions := lane.columns[name].reductions) is None
        else Entry(reductions=dict.fromkeys(reductions, Span(0, 0)))
        for name in names
    }
    names = shared_names(tuple(sorted(names)))
    return Layout(entries, names, {}, has_records=False, first_record=None, end=0)
