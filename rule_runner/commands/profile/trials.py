"""Profiler data of a command, with errors as messages for users."""

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from rule_core.exceptions import SMDebugError
from rule_core.profiler.files.one_file import one_file
from rule_core.profiler.python_profiles.other_tools import is_profile_name, tool_profiles
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError
from rule_runner.errors import TrialError, translated
from rule_runner.loading.trials import check_is_there, open_profiler_trial, reject_parent

if TYPE_CHECKING:
    from rule_core.trials.profiler_trial import ProfilerTrial

# Turns errors of the data into errors for the user.
reading: Final = partial(translated, TrialError, SMDebugError)


def present(path: str) -> "ProfilerTrial":
    """Return the profiler data at a path or an address, without reading its files.

    Raises
    ------
    TrialError
        If the folder does not exist, or cannot be read.
    """
    trial = open_profiler_trial(path, None)
    check_is_there(trial)
    reject_parent(trial, takes_python=True)
    return trial


def holds_converted(path: str, *, only_file: bool = False) -> bool:
    """Return whether there are files of other profilers at a path or an address, read or refused.

    Parameters
    ----------
    only_file
        Whether the path has to be that of one file.
    """
    trial = open_profiler_trial(path, None)
    store = trial.source.files.store
    if only_file and not one_file(trial.store, is_profile_name)[1]:
        return False
    if store.finds_formats() or store.refusals:
        return True
    with suppress(ObjectNotFoundError, StorageUnavailableError):
        return not store.is_profiled and bool(tool_profiles(trial.store)[1])
    return False


def look(path: str) -> "ProfilerTrial":
    """Return the profiler data at a path or an address, read once and without waiting.

    Raises
    ------
    TrialError
        If the folder does not exist, or cannot be read.
    """
    trial = present(path)
    with reading():
        trial.refresh()
        if trial.job_finished():
            trial.refresh()  # data written just before the end mark
    return trial
