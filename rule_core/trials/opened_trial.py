"""Trials whose constructors wait for collections and load the index, as `create_trial` does."""

import os
from collections.abc import Callable
from typing import Any

from rule_core.clock import Clock
from rule_core.environment import number
from rule_core.exceptions import MissingCollectionFiles
from rule_core.logger import get_logger
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import ObjectNotFoundError
from rule_core.trials.open_index import open_index
from rule_core.trials.snapshot_view import POLL_S, WARN_AFTER_S
from rule_core.trials.trial import Trial

Range = tuple[int | None, int | None]


class OpenedTrial(Trial):
    """A trial with its collections and index loaded.

    Parameters
    ----------
    name, path, range_steps, timeout, sources
        As for `create_trial`.
    """

    def __init__(
        self,
        name: str,
        path: str,
        range_steps: Range | None = None,
        timeout: float | None = None,
        clock: Clock | None = None,
        sources: SourceOptions = DEFAULT,
    ) -> None:
        _check_range(range_steps)
        window = int(number("SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW", 1000, "steps"))

        def opened() -> TrialIndex:
            return open_index(path, options=sources, range_steps=range_steps, window=window)

        super().__init__(name, path, opened(), clock)
        _wait_for_collections(self, opened, timeout, self.clock)
        self.index.refresh(whole=True)


class LocalTrial(OpenedTrial):
    """A trial in a local folder; `create_trial` returns the same.

    Parameters
    ----------
    name, dirname
        A name of your choice, and the folder.
    range_steps, timeout, sources
        As for `create_trial`.
    parallel, check, index_mode, cache
        Accepted for compatibility; ignored.
    """

    def __init__(
        self,
        name: str,
        dirname: str | os.PathLike[str],
        range_steps: Range | None = None,
        parallel: Any = None,
        check: Any = None,
        index_mode: Any = None,
        cache: Any = None,
        *,
        timeout: float | None = None,
        clock: Clock | None = None,
        sources: SourceOptions = DEFAULT,
    ) -> None:
        del parallel, check, index_mode, cache
        super().__init__(name, os.fspath(dirname), range_steps, timeout, clock, sources)


class S3Trial(OpenedTrial):
    """A trial in S3; `create_trial` returns the same.

    Parameters
    ----------
    name, bucket_name, prefix_name
        A name of your choice, and the location: ``s3://bucket_name/prefix_name``.
    range_steps, timeout, sources
        As for `create_trial`.
    kind
        The format of the files with a colon, such as ``csv:``, if it is not to be recognised.
    check, index_mode, cache
        Accepted for compatibility; ignored.
    """

    def __init__(
        self,
        name: str,
        bucket_name: str,
        prefix_name: str,
        range_steps: Range | None = None,
        check: Any = None,
        index_mode: Any = None,
        cache: Any = None,
        *,
        timeout: float | None = None,
        clock: Clock | None = None,
        sources: SourceOptions = DEFAULT,
        kind: str = "",
    ) -> None:
        del check, index_mode, cache
        path = f"{kind}s3://{bucket_name}" + (f"/{prefix_name}" if prefix_name else "")
        super().__init__(name, path, range_steps, timeout, clock, sources)


def _check_range(range_steps: Range | None) -> None:
    if range_steps is None:
        return
    begin, end = range_steps
    bounds: tuple[object, ...] = range_steps
    valid = all(bound is None or (isinstance(bound, int) and bound >= 0) for bound in bounds)
    if not valid or (begin is not None and end is not None and begin >= end):
        msg = (
            f"range_steps must be (begin, end) with 0 <= begin < end or None, got {range_steps!r}."
        )
        raise ValueError(msg)


def _wait_for_collections(
    trial: Trial, opened: Callable[[], TrialIndex], timeout: float | None, clock: Clock
) -> None:
    """Wait until the collections files of all workers exist, or a file in another format."""
    start = clock.monotonic()
    warned = False
    while True:
        if trial.index.unrecognized:
            trial.index = opened()
        ended = _refresh(trial)
        if not trial.index.lacks_collections():
            return
        waited = clock.monotonic() - start
        if ended and trial.index.steps and _has_all_files(trial):
            get_logger().warning(
                "%s Skipping: %s.",
                _missing_collections(trial, ended, waited),
                "; ".join(trial.index.missing_collections()).rstrip("."),
            )
            return
        if ended or (timeout is not None and waited >= timeout):
            raise MissingCollectionFiles(_missing_collections(trial, ended, waited))
        if waited >= WARN_AFTER_S and not warned:
            warned = True
            get_logger().warning("%s Still waiting.", _missing_collections(trial, ended, waited))
        clock.sleep(POLL_S)


def _has_all_files(trial: Trial) -> bool:
    """Return whether each worker has a collections file, damaged or not."""
    index = trial.index
    return len(index.described) + index.damaged_collections >= max(index.num_workers, 1)


def _refresh(trial: Trial) -> bool:
    """Load new files once; return whether the training job had ended before."""
    try:
        ended = trial.index.has_ended()
        trial.index.refresh()
    except ObjectNotFoundError:
        return False
    return ended


def _missing_collections(trial: Trial, ended: bool, waited: float) -> str:
    state = "the training job has ended" if ended else f"after {waited:.0f} s"
    readable, expected = len(trial.index.described), max(trial.index.num_workers, 1)
    return (
        f"Trial {trial.path!r}: {state}, and {readable} of {expected} collections files exist. "
        "Check the path, and that the hook was configured before training started."
    )
