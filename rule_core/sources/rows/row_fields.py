"""The fields of a row: which one is its step, its time or its mode, and what is a number."""

import math
import re
import reprlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from rule_core.model.secret_names import without_secrets
from rule_core.reading.source_record import is_step

# The first of these that a file has numbers its rows; the others are not tensors either.
STEP_NAMES: Final = (
    "step",
    "global_step",
    "_step",
    "current_steps",
    "num_updates",
    "iteration",
    "iter",
    "epoch",
)
NO_STEP: Final = len(STEP_NAMES)
TIME: Final = "time"
MODE: Final = "mode"
_TIMES: Final = frozenset({"_timestamp", "timestamp", "wall_time"})
_MODES: Final = frozenset({"mode", "split", "phase", "stage"})
_EVALUATIONS: Final = frozenset({"eval", "test", "val", "valid", "validation"})
_OTHER_EVALUATIONS: Final = {"dev": "val", "evaluation": "eval"}
_EPOCH_SECONDS: Final = (1e8, 1e11)  # 1973 to 5138: a time of day, not a duration
_UNDEFINED: Final = frozenset({"", "-", "n/a", "na", "none", "null"})  # "NA" is that of Keras
_TENSOR: Final = re.compile(r"tensor\(\s*([^,()\[\]\s]+)\s*[,)]")


@lru_cache(maxsize=4096)
def field_role(name: str) -> int | str | None:
    """Return the rank of a step's name, `TIME`, `MODE`, or None for any other name.

    >>> field_role("Step"), field_role("trainer/global_step"), field_role("mode")
    (0, 1, 'mode')
    """
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    plain = plain.removeprefix("trainer/").removeprefix("train/")
    if plain in STEP_NAMES:
        return STEP_NAMES.index(plain)
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
    number = to_number(value)
    if number is not None and is_step(number):
        return int(number)
    return f"Its {name} {brief(value)} is not a whole number >= 0. Such {rows} are skipped."


def to_time(value: object) -> float:
    """Return a time in seconds since the epoch; 0 if it is none, such as a duration."""
    number = to_number(value)
    return number if number is not None and _EPOCH_SECONDS[0] < number < _EPOCH_SECONDS[1] else 0.0


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


class RowSteps:
    """Chooses the steps of the rows of one file.

    They are all counted alike: by the first of `STEP_NAMES` that any row had so far. A row that has
    a later one only, such as the epoch, belongs to the step before it.
    """

    def __init__(self) -> None:
        self._rank = NO_STEP
        self._last: int | None = None

    def step_of(self, fields: Mapping[int, object]) -> int | str:
        """Return the step of a row, or a sentence on why it has none.

        Parameters
        ----------
        fields
            The values of step names, by rank.
        """
        rank = min(fields, default=NO_STEP)
        if rank > self._rank and rank != NO_STEP and self._last is not None:
            return self._last
        if rank == NO_STEP:
            return f"It has no step ({', '.join(STEP_NAMES)}). Such lines are skipped."
        step = to_step(STEP_NAMES[rank], fields[rank])
        if isinstance(step, int):
            self.set(rank, step)
        return step

    def set(self, rank: int, step: int) -> None:
        """Record the step of a row, and the rank of the name that says it."""
        self._rank = rank
        self._last = step
