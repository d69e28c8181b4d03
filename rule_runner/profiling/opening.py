"""Opens profiler data for a command: their errors are one sentence each."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rule_runner.errors import TrialError
from rule_runner.openings import absent, is_there, open_profiler_trial
from smdebug.exceptions import SMDebugError

if TYPE_CHECKING:
    from smdebug.trials.profiler_trial import ProfilerTrial


def present(path: str) -> "ProfilerTrial":
    """Return the profiler data at a path or an address, without a look at its files.

    Raises
    ------
    TrialError
        If there is no folder, or it cannot be read.
    """
    trial = open_profiler_trial(path, None)
    if not is_there(trial):
        raise TrialError(absent(trial))
    return trial


def look(path: str) -> "ProfilerTrial":
    """Return the profiler data at a path or an address, looked at once and without waiting.

    Raises
    ------
    TrialError
        If there is no folder, or it cannot be read.
    """
    trial = present(path)
    with reading():
        trial.refresh()
        if trial.job_finished():
            trial.refresh()  # what its writers wrote before the end mark
    return trial


@contextmanager
def reading() -> Iterator[None]:
    """Let whatever is wrong with the data be the user's error.

    Raises
    ------
    TrialError
        In place of the library's own errors.
    """
    try:
        yield
    except SMDebugError as err:
        raise TrialError(str(err)) from err
