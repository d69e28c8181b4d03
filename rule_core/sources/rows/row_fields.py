"""The fields of a row: which ones are its counters, its time and mode, and what is a number."""

import math
import re
import reprlib
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from rule_core.model.secret_names import without_secrets
from rule_core.reading.source_record import SourceRecord, is_step
from rule_core.sources.rows.row_steps import EPOCH, NO_COUNTER, Count, counter_rank, to_count

MAX_STREAMS: Final = 10_000
COUNTER: Final = "counter"
TIME: Final = "time"
MODE: Final = "mode"
_TIMES: Final = frozenset({"_timestamp", "timestamp", "wall_time"})
_MODES: Final = frozenset({"mode", "split", "phase", "stage", "set", "subset", "data"})
_EVALUATIONS: Final = frozenset({"eval", "test", "val", "valid", "validation"})
_OTHER_EVALUATIONS: Final = {"dev": "val", "evaluation": "eval"}
_MIN_CLOCK: Final = 1e9  # seconds: 2001
_CLOCKS: Final = frozenset({counter_rank("step"), EPOCH})  # tokens may be as many
_EPOCH_SECONDS: Final = (1e8, 1e11)  # 1973 to 5138: a time of day, not a duration
_UNDEFINED: Final = frozenset(
    {"", "-", "--", "n/a", "na", "no log", "none", "null"}
)  # "NA" is that of Keras
_TENSOR: Final = re.compile(r"tensor\(\s*([^,()\[\]\s]+)\s*[,)]")


def is_counter(name: str) -> bool:
    """Return whether a field counts the rows."""
    return counter_rank(name) < NO_COUNTER


@lru_cache(maxsize=4096)
def field_role(name: str) -> str | None:
    """Return `COUNTER`, `TIME`, `MODE`, or None for any other name.

    >>> field_role("trainer/global_step"), field_role("mode"), field_role("loss")
    ('counter', 'mode', None)
    """
    if is_counter(name):
        return COUNTER
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    plain = plain.removeprefix("trainer/").removeprefix("train/")
    if plain in _TIMES:
        return TIME
    return MODE if plain in _MODES else None


def to_number(value: object) -> float | None:
    """Return a number, also of a text such as ``"0.5"`` or ``"tensor(0.5)"``; None if it is none.

    >>> to_number(3), to_number(" 0.5 "), to_number("-Infinity"), to_number("tensor(2.)")
    (3.0, 0.5, -inf, 2.0)
    >>> to_number(True), to_number("2024-01-01"), to_number("")
    (None, None, None)
    """
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            match = _TENSOR.match(value.lstrip())
            return to_number(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def is_undefined(cell: str) -> bool:
    """Return whether a text says that there is no value."""
    return cell.strip().lower() in _UNDEFINED


def to_step(name: str, value: object, rows: str = "lines") -> int | str:
    """Return a step, or a sentence on why the value is not one.

    Parameters
    ----------
    name
        The name of the step, for the sentence.
    rows
        What the sentence calls those that are skipped.
    """
    step = to_number(value)
    if step is not None and is_step(step):
        return int(step)
    return f"Its {name} {brief(value)} is not a whole number >= 0. Such {rows} are skipped."


def counts_of(cells: Iterable[tuple[str, object, int]]) -> list[Count] | str:
    """Return the counts of a row, or a sentence on why the preferred one is not one.

    Parameters
    ----------
    cells
        The name, value and rank of each counter; see `counter_rank`.
    """
    counts: list[Count] = []
    wrong: tuple[int, str, object] = (NO_COUNTER, "", None)
    for name, value, rank in cells:
        count = to_count(name, value, rank)
        if count is not None and (rank == EPOCH or is_step(count.value)):
            counts.append(count)
        elif rank < wrong[0] and not (value is None or is_undefined(str(value))):
            wrong = rank, name, value
    if wrong[0] < min((count.rank for count in counts), default=NO_COUNTER):
        _, name, value = wrong
        return f"Its {name} {brief(value)} is not a whole number >= 0. Such lines are skipped."
    return counts


def first_count(name: str, value: object, rank: int | None = None) -> Count | None:
    """Return the count of a first row; None for a time of day, such as the epoch of a sensor."""
    count = to_count(name, value, rank)
    is_clock = count is not None and count.value >= _MIN_CLOCK and count.rank in _CLOCKS
    return None if is_clock else count


def to_time(value: object) -> float:
    """Return a time in seconds since the epoch; 0 if it is none, such as a duration."""
    time = to_number(value)
    return time if time is not None and _EPOCH_SECONDS[0] < time < _EPOCH_SECONDS[1] else 0.0


def mode_prefix(value: object) -> str:
    """Return what precedes the names of a row that says its mode.

    >>> mode_prefix("val"), mode_prefix("train")
    ('val/', '')
    """
    mode = value.strip().lower() if isinstance(value, str) else ""
    mode = _OTHER_EVALUATIONS.get(mode, mode)
    return f"{mode}/" if mode in _EVALUATIONS else ""


def brief(value: object) -> str:
    """Return the start of a value as it is shown in messages."""
    return reprlib.repr(without_secrets(value) if isinstance(value, str) else value)


class MetricStreams:
    """Gives metrics that have rows of their own an axis each, so that their steps may go back."""

    def __init__(self) -> None:
        self._streams: dict[str, int] = {}

    def choose(self, metric: str, record: SourceRecord) -> None:
        """Expect a row of a metric; those beyond `MAX_STREAMS` share the last axis."""
        stream = self._streams.get(metric, len(self._streams))
        if stream < MAX_STREAMS:
            self._streams[metric] = record.stream = stream
