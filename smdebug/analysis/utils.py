"""no_refresh, refresh, snapshot: what a trial shows inside a block; and parameter parsing."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Refreshing(Protocol):
    """The part of a trial that these blocks set."""

    dynamic_refresh: bool
    horizon: int | None


Trials = Refreshing | Iterable[Refreshing]


def _as_list(trials: Trials) -> list[Refreshing]:
    return list(trials) if isinstance(trials, Iterable) else [trials]


@contextmanager
def _set(trials: Trials, refreshing: bool) -> Iterator[None]:
    held = [(trial, trial.dynamic_refresh) for trial in _as_list(trials)]
    for trial, _ in held:
        trial.dynamic_refresh = refreshing
    try:
        yield
    finally:
        for trial, before in held:
            trial.dynamic_refresh = before


def no_refresh(trials: Trials) -> AbstractContextManager[None]:
    """Hold back the search for new files, of one trial or several, inside the block.

    What held before the block holds again after it, also after an exception and when nested.
    """
    return _set(trials, refreshing=False)


def refresh(trials: Trials) -> AbstractContextManager[None]:
    """Let queries look for new files inside the block; the opposite of `no_refresh`."""
    return _set(trials, refreshing=True)


@contextmanager
def snapshot(trials: Trials, step: int) -> Iterator[None]:
    """Show global steps up to `step` only, and no new files, inside the block."""
    held = [(trial, trial.horizon, trial.dynamic_refresh) for trial in _as_list(trials)]
    for trial, _, _ in held:
        trial.horizon, trial.dynamic_refresh = step, False
    try:
        yield
    finally:
        for trial, horizon, refreshing in held:
            trial.horizon, trial.dynamic_refresh = horizon, refreshing


def parse_list_from_str(arg: object, delimiter: str = ",") -> list[str]:
    """Return the parts of a delimited string without surrounding blanks; a list as it is.

    >>> parse_list_from_str("loss, losses"), parse_list_from_str(""), parse_list_from_str(None)
    (['loss', 'losses'], [], [])
    """
    if arg is None:
        return []
    if isinstance(arg, str):
        return [part.strip() for part in arg.split(delimiter) if part.strip()]
    if isinstance(arg, (list, tuple)):
        return [str(part) for part in arg]
    msg = f"A list must be a string with {delimiter!r} between its parts, got {arg!r}."
    raise TypeError(msg)


def parse_bool(arg: object, default: bool = False) -> bool:
    """Return the truth that a string spells: true/false, 1/0, yes/no in any case.

    Raises
    ------
    ValueError
        If it spells neither.

    >>> parse_bool("True"), parse_bool("no"), parse_bool(None, default=True)
    (True, False, True)
    """
    if arg is None:
        return default
    text = str(arg).strip().lower()
    if text in {"true", "1", "yes"}:
        return True
    if text in {"false", "0", "no"}:
        return False
    msg = f"A boolean must be true or false, got {arg!r}."
    raise ValueError(msg)
