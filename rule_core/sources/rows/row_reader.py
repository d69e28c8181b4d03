"""RowReader: gives rows of any shape their steps and modes, and passes them to a record."""

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Final, NamedTuple

from rule_core.modes import ModeKeys
from rule_core.reading.source_record import SourceRecord
from rule_core.sources.names import NameTable
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.sources.rows.row_fields import (
    COUNTER,
    TIME,
    field_role,
    mode_prefix,
    to_number,
    to_time,
)
from rule_core.sources.rows.row_steps import (
    NO_COUNTER,
    ROW,
    Count,
    RowSteps,
    counter_rank,
    to_count,
)

MAX_NAMES: Final = 10_000  # of one file; later names are skipped
ROWS_OF_COPIES: Final = 8  # the latest, which another process may write again
_FEWEST_COPIES: Final = 3  # at the step of the latest row, which tell that two processes write
_TOLERANCE: Final = 0.01  # of the numbers of copies


class RowFields(NamedTuple):
    """The fields of a row by what they are.

    Attributes
    ----------
    counters
        The name, value and rank of each counter; see `counter_rank`.
    values
        The numbers by name.
    prefix
        What precedes their names, as the row says its mode; "" if it does not.
    time
        When it was written, in seconds since the epoch; 0 if unknown.
    """

    counters: list[tuple[str, object, int]]
    values: dict[str, float]
    prefix: str
    time: float


class RowReader:
    """Reads the rows of one file or stream, in the order written.

    Parameters
    ----------
    options
        What the user says about names and steps.

    Attributes
    ----------
    steps
        What gives the rows their steps.
    names
        What the names of series say.
    may_begin
        Whether the next row begins another run if all of its names have a number at its step.
    """

    def __init__(self, options: SourceOptions = DEFAULT) -> None:
        self.steps = RowSteps()
        self._column = options.step_column
        self.names = NameTable(options)
        self.may_begin = False
        self._last: dict[str, int] = {}  # the last step of each name
        self._values: dict[str, float] = {}  # and its number
        self._lags = False  # whether some names are behind others
        self._latest: deque[tuple[int, Mapping[str, float]]] = deque(maxlen=ROWS_OF_COPIES)
        self._copies = 0

    def add_fields(
        self,
        fields: Iterable[tuple[str, object]],
        record: SourceRecord,
        prefix: str = "",
        context: Sequence[Count] = (),
    ) -> None:
        """Pass a row on, whose fields are its counters, its time, its mode and its numbers.

        Parameters
        ----------
        fields
            Names as written, and numbers or texts; nested objects are flattened with slashes.
        prefix
            Precedes the names, such as ``"val/"``; "" if they say their modes.
        context
            The counters that hold if the row has none.
        """
        row = self.sorted_fields(fields)
        counts = [count for count in starmap(to_count, row.counters) if count is not None]
        self.add(row.values, counts or context, record, row.prefix or prefix, row.time)

    def sorted_fields(self, fields: Iterable[tuple[str, object]]) -> RowFields:
        """Return the fields of a row by what they are; see `add_fields`."""
        counters: list[tuple[str, object, int]] = []
        values: dict[str, float] = {}
        prefix, time = "", 0.0
        for name, value in fields:
            rank = self._rank(name)
            if rank < NO_COUNTER:
                counters.append((name, value, rank))
                continue
            role = field_role(name)
            if role is None or role == COUNTER:  # which the user does not count by
                metric = value if type(value) is float else to_number(value)
                if metric is not None:
                    values[name] = metric
            elif role == TIME:
                time = to_time(value)
            else:
                prefix = mode_prefix(value) or prefix
        return RowFields(counters, values, prefix, time)

    def repeats(self, values: Mapping[str, float]) -> bool:
        """Return whether all of some names have another number at the latest step."""
        last = self.steps.last
        return all(
            self._last.get(name, -1) == last and self._values.get(name) != value
            for name, value in values.items()
        )

    def only_evaluates(self, names: Iterable[str]) -> bool:
        """Return whether some names are of evaluations, while the run has metrics of training."""
        metrics = (meaning for meaning in map(self.names, self._last) if meaning.is_metric)
        return self._are_evaluated(names) and any(x.mode is not ModeKeys.EVAL for x in metrics)

    def _are_evaluated(self, names: Iterable[str]) -> bool:
        return all(self.names(name).mode is ModeKeys.EVAL for name in names)

    def add(
        self,
        values: Mapping[str, float],
        counts: Sequence[Count],
        record: SourceRecord,
        prefix: str = "",
        time: float = 0.0,
    ) -> None:
        """Pass a row on whose counters are known; see `add_fields`."""
        if prefix:
            values = {prefix + name: value for name, value in values.items()}
        if len(self._values) >= MAX_NAMES:
            if not values.keys() <= self._values.keys():
                record.problem(f"It names more than {MAX_NAMES} series. Others are skipped.")
            values = {name: value for name, value in values.items() if name in self._values}
        if not values:
            return
        if self._column:
            counts, values = self._counted_by_user(values, counts)
            record.steps_from = self._column if counts or self._column == ROW else ""
        is_training = not self._are_evaluated(values)
        last = self.steps.last
        step = self.steps.step_of(counts, is_training=is_training)
        if self._is_copy(step, last, values):
            return
        self._lags |= step <= last and self._is_behind(values, step, last, record)
        new = {name: value for name, value in values.items() if self._last.get(name, -1) < step}
        self._last.update(dict.fromkeys(new, step))
        self._values.update(new)
        if self._lags:  # such as lines of two kinds, of which one counts from 0
            for name, value in new.items():
                record.point(name, step, value, time)
        elif new:
            record.row(step, new, time)

    def _is_copy(self, step: int, last: int, values: Mapping[str, float]) -> bool:
        """Return whether another process has written one of the latest rows again, nearly."""
        is_alike = (
            step <= last
            and not self.may_begin
            and any(
                step == other
                and values.keys() <= row.keys()
                and all(
                    math.isclose(values[name], row[name], rel_tol=_TOLERANCE) for name in values
                )
                for other, row in self._latest
            )
        )
        self._copies += is_alike and step == last
        self._latest.append((step, values))
        return is_alike and self._copies >= _FEWEST_COPIES

    def _is_behind(
        self, values: Mapping[str, float], step: int, last: int, record: SourceRecord
    ) -> bool:
        """Return whether a row is behind others of its run, unless it begins another one."""
        if step < last:
            metrics = [name for name in values if self.names(name).collection]
            begins_run = any(self._last.get(name, -1) >= step for name in metrics or values)
        else:
            begins_run = self.may_begin and all(self._last.get(name) == step for name in values)
            if begins_run:
                record.begin_segment()
        if begins_run:
            self._last.clear()
        return step < last and not begins_run

    def _counted_by_user(
        self, values: Mapping[str, float], counts: Sequence[Count]
    ) -> tuple[Sequence[Count], Mapping[str, float]]:
        """Return the count that the user has named, and the other numbers of a row."""
        value = values.get(self._column)
        if value is not None:
            metrics = {name: x for name, x in values.items() if name != self._column}
            return [Count(self._column, 0, value)], metrics
        return [count for count in counts if count.name == self._column], values

    def _rank(self, name: str) -> int:
        if not self._column:
            return counter_rank(name)
        return 0 if name == self._column else NO_COUNTER
