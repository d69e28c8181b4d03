"""create_trial: opens the trial at a path."""

import os
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from smdebug.core.clock import Clock
from smdebug.core.logger import get_logger
from smdebug.environment import number
from smdebug.exceptions import MissingCollectionFiles
from smdebug.storage.protocol import ObjectNotFoundError
from smdebug.storage.uri import open_store
from smdebug.trials.trial import Trial
from smdebug.trials.trial_index import TrialIndex
from smdebug.trials.view import POLL_S

if TYPE_CHECKING:
    from smdebug.trials.profiler_trial import ProfilerTrial

SAY_SO_AFTER_S: Final = 10.0
Range = tuple[int | None, int | None]


@overload
def create_trial(
    path: str | os.PathLike[str],
    name: str | None = None,
    profiler: Literal[False] = False,
    output_dir: str = ...,
    *,
    range_steps: Range | None = None,
    timeout: float | None = None,
    clock: Clock | None = None,
    check: Any = None,
    index_mode: Any = None,
    cache: Any = None,
    parallel: Any = None,
) -> Trial: ...


@overload
def create_trial(
    path: str | os.PathLike[str],
    name: str | None = None,
    *,
    profiler: Literal[True],
    output_dir: str | None = ...,
    timeout: float | None = None,
    clock: Clock | None = None,
) -> "ProfilerTrial": ...


def create_trial(
    path: str | os.PathLike[str],
    name: str | None = None,
    profiler: bool = False,
    output_dir: str | None = "/opt/ml/processing/outputs/",
    *,
    range_steps: Range | None = None,
    timeout: float | None = None,
    clock: Clock | None = None,
    check: Any = None,
    index_mode: Any = None,
    cache: Any = None,
    parallel: Any = None,
) -> "Trial | ProfilerTrial":
    """Open the trial at a path, and wait until its collections, or its metrics, are there.

    Parameters
    ----------
    path
        A local folder, or an ``s3://bucket/prefix`` address.
    name
        Any name; by default the last part of `path`.
    profiler
        Open the system metrics and framework events of a training job instead of its tensors.
    output_dir
        The folder for what rules over a profiler trial write; without effect on other trials.
    range_steps
        ``(begin, end)``: load global steps ``begin <= step < end`` only; None is unbounded.
    timeout
        Seconds to wait for the collections, or the first metrics, of a training job that has not
        ended; None is for ever, as it always was (a warning says so after ten seconds).
    check, index_mode, cache, parallel
        Accepted, and without effect.

    Raises
    ------
    MissingCollectionFiles
        If the training job has ended, or `timeout` has passed, without all collections files.
    NoMoreProfilerData
        If the training job has ended, or `timeout` has passed, without any metrics.
    ValueError
        If `range_steps` is not ``0 <= begin < end``, or the path's kind cannot be read.
    """
    del check, index_mode, cache, parallel
    text = os.fspath(path).strip()
    if profiler:
        from smdebug.trials import profiler_trial as of_metrics  # noqa: PLC0415 - its parsers

        basename = text.rsplit("/", 1)[-1] if name is None else name
        return of_metrics.opened(basename, text, output_dir, timeout, clock)
    _check_range(range_steps)
    window = int(number("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", 1000, "steps"))
    index = TrialIndex(open_store(text), range_steps, window)
    trial = Trial(text.rsplit("/", 1)[-1] if name is None else name, text, index, clock)
    _wait_for_collections(trial, timeout, trial.clock)
    index.refresh(whole=True)
    return trial


def _check_range(range_steps: tuple[int | None, int | None] | None) -> None:
    if range_steps is None:
        return
    begin, end = range_steps
    whole: tuple[object, ...] = range_steps
    right = all(one is None or (isinstance(one, int) and one >= 0) for one in whole)
    if not right or (begin is not None and end is not None and begin >= end):
        msg = (
            f"range_steps must be (begin, end) with 0 <= begin < end or None, got {range_steps!r}."
        )
        raise ValueError(msg)


def _wait_for_collections(trial: Trial, timeout: float | None, clock: Clock) -> None:
    """Return when the collections files of all workers are there."""
    began = clock.monotonic()
    said = False
    while True:
        ended = _look(trial)
        if not trial.index.lacks_collections():
            return
        waited = clock.monotonic() - began
        if ended or (timeout is not None and waited >= timeout):
            raise MissingCollectionFiles(_what_is_missing(trial, ended, waited))
        if waited >= SAY_SO_AFTER_S and not said:
            said = True
            get_logger().warning("%s Still waiting.", _what_is_missing(trial, ended, waited))
        clock.sleep(POLL_S)


def _look(trial: Trial) -> bool:
    """Look for files once; say whether the training job had ended before that."""
    try:
        ended = trial.index.has_ended()
        trial.index.refresh()
    except ObjectNotFoundError:
        return False
    return ended


def _what_is_missing(trial: Trial, ended: bool, waited: float) -> str:
    state = "the training job has ended" if ended else f"after {waited:.0f} s"
    there, wanted = len(trial.index.workers), max(trial.index.num_workers, 1)
    return (
        f"Trial {trial.path!r}: {state}, and {there} of {wanted} collections files are there. "
        "Check the path, and that the hook was configured before the training started."
    )
