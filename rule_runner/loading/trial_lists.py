"""list_trials: the trials at and below several paths, each once."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from rule_core.sources.address import address_of
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.trials.open_index import LOOKED_FOR
from rule_runner.errors import TrialError, shortened
from rule_runner.loading.trial_search import TRIALS, TrialFolder, find_trials
from rule_runner.loading.trials import open_trial, reject_parent

EMPTY: Final = (
    "No trial at {path!r} or below. A trial is a folder that holds 'collections', 'index' and "
    "'events' (saved tensors), or 'system' and 'framework' (profiler data), or files of a training "
    f"run in another format. {LOOKED_FOR}"
)
PARTIAL: Final = "{path!r} was searched only in part: it holds too many folders or trials."


class ListedTrial(NamedTuple):
    """A trial, its canonical path, and the path below which it was found."""

    folder: TrialFolder
    path: str
    root: str


class TrialList(NamedTuple):
    """The trials below some paths, what is wrong with the paths, and why files are not read."""

    trials: list[ListedTrial]
    problems: list[str]
    not_read: Mapping[str, str]


def list_trials(
    paths: Sequence[str],
    limit: int = TRIALS,
    folder_limit: int | None = None,
    sources: SourceOptions = DEFAULT,
    looked: Callable[[], None] = lambda: None,
) -> TrialList:
    """Return the trials at and below paths, in the order of the paths and then of their own.

    The limits hold for each path; see `find_trials`.
    """
    trials: dict[str, ListedTrial] = {}
    problems: list[str] = []
    not_read: dict[str, str] = {}
    for path in paths:
        try:
            search = find_trials(path, limit, folder_limit, sources, looked)
        except TrialError as err:
            problems.append(str(err))
            continue
        if not search.trials:
            problems.append(_why_empty(path, search.not_read))
        if not search.complete:
            problems.append(PARTIAL.format(path=path))
        problems += search.problems
        not_read |= search.not_read
        for folder in search.trials:
            trial_path = address_of(folder.path).canonical
            trials.setdefault(trial_path, ListedTrial(folder, trial_path, path))
    return TrialList([*trials.values()], problems, not_read)


def _why_empty(path: str, not_read: Mapping[str, str]) -> str:
    """Return a sentence on a path without trials, with the reasons why files are not read."""
    try:
        reject_parent(open_trial(path))
    except TrialError as err:
        return str(err)
    if not not_read:
        return EMPTY.format(path=path)
    reasons = [f"{file} ({reason})" for file, reason in not_read.items()]
    return f"No trial at {path!r} or below. Not read: {shortened(reasons)}."
