"""Context managers that control when a trial looks for new files, and parameter parsing."""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

from rule_core.model.reduction_config import TRUTHS
from rule_core.trials.snapshot_view import Refreshing, Trials

T = TypeVar("T", bound=Trials)


@contextmanager
def _set(trials: T, refreshing: bool) -> Iterator[T]:
    several: Iterable[Refreshing] = trials if isinstance(trials, Iterable) else [trials]
    previous = [(trial, trial.dynamic_refresh) for trial in several]
    for trial, _ in previous:
        trial.dynamic_refresh = refreshing
        if refreshing:
            trial.expire()
    try:
        yield trials
    finally:
        for trial, value in previous:
            trial.dynamic_refresh = value


def no_refresh(trials: T) -> AbstractContextManager[T]:
    """Do not look for new files of one or several trials inside the block.

    ``with no_refresh(trials) as same:`` binds the argument unchanged. The previous state is
    restored after the block, also after an exception and when blocks are nested.
    """
    return _set(trials, refreshing=False)


def refresh(trials: T) -> AbstractContextManager[T]:
    """Look for new files on queries inside the block; the opposite of `no_refresh`."""
    return _set(trials, refreshing=True)


def parse_list_from_str(arg: object, delimiter: str = ",") -> list[str]:
    """Split a delimited string and strip its parts; a list is returned as it is.

    >>> parse_list_from_str("loss, losses"), parse_list_from_str(""), parse_list_from_str(None)
    (['loss', 'losses'], [], [])
    """
    if arg is None:
        return []
    if isinstance(arg, str):
        return [part.strip() for part in arg.split(delimiter) if part.strip()]
    if isinstance(arg, (list, tuple)):
        return [str(part) for part in arg]
    raise TypeError(f"A list must be a string with {delimiter!r} between its parts, got {arg!r}.")


def parse_bool(arg: object, default: bool = False) -> bool:
    """Parse a boolean: true/false, 1/0 or yes/no, in any case.

    Raises
    ------
    ValueError
        If the string is none of these.

    >>> parse_bool("True"), parse_bool("no"), parse_bool(None, default=True)
    (True, False, True)
    """
    truth = default if arg is None else TRUTHS.get(str(arg).strip().lower())
    if truth is None:
        raise ValueError(f"A boolean must be true or false, got {arg!r}.")
    return truth
