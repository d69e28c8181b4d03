"""Opens trials of tensors and of profiler data, local or in S3, and says whether they are there."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rule_runner.errors import TrialError
from smdebug.exceptions import SMDebugError
from smdebug.storage import StorageUnavailableError, open_store
from smdebug.storage.local import LocalStore
from smdebug.storage.protocol import TrialStore
from smdebug.storage.s3_bucket import parse_s3
from smdebug.storage.uri import is_s3
from smdebug.trials import Trial
from smdebug.trials.trial_index import TrialIndex

if TYPE_CHECKING:
    from smdebug.trials.profiler_trial import ProfilerTrial

    AnyTrial = Trial | ProfilerTrial


def open_trial(path: str, name: str | None = None, window: int = 1000) -> Trial:
    """Return the trial at `path`, without a look at its files.

    Raises
    ------
    TrialError
        If paths of this kind cannot be read.
    """
    try:
        store = open_store(path)
    except SMDebugError as err:
        raise TrialError(str(err)) from err
    return Trial(name or trial_name(path), path, TrialIndex(store, window=window))


def open_profiler_trial(
    path: str,
    name: str | None,
    stop_files: Sequence[Path] = (),
    stop_grace: float = 60.0,
    waits_for_unseen: bool = False,
) -> "ProfilerTrial":
    """Return the trial of profiler data at `path`, without a look at its files.

    Parameters
    ----------
    stop_files, stop_grace
        Its data end when such a file is there and the time in it is so many seconds ago.
    waits_for_unseen
        Whether nodes and processes may still begin to write, and are waited for.

    Raises
    ------
    TrialError
        If paths of this kind cannot be read.
    """
    from smdebug.trials.profiler_trial import ProfilerTrial  # noqa: PLC0415 - rarely needed

    try:
        store = open_store(path)
    except SMDebugError as err:
        raise TrialError(str(err)) from err
    name = name or trial_name(path)
    return ProfilerTrial.over(
        store, name, path, stop_files, stop_grace, waits_for_unseen=waits_for_unseen
    )


def trial_name(path: str) -> str:
    """Return the last part of a path.

    >>> trial_name("/runs/mnist/")
    'mnist'
    """
    return Path(path).name or Path(path).resolve().name or "trial"


def real_path(path: str) -> str:
    """Return what identifies a trial, however its path is written.

    >>> real_path(" S3://bucket/runs/mnist/")
    's3://bucket/runs/mnist'
    """
    if is_s3(path):
        bucket, prefix = parse_s3(path)
        return f"s3://{bucket}/{prefix}".removesuffix("/")
    return os.path.realpath(Path(path.strip()).expanduser())


def roots(trials: "Iterable[AnyTrial]") -> list[Path]:
    """Return the folders of trials that can be watched."""
    stores = (_store(trial) for trial in trials)
    return [store.root for store in stores if isinstance(store, LocalStore)]


def _store(trial: "AnyTrial") -> TrialStore:
    return trial.index.store if isinstance(trial, Trial) else trial.store


def is_there(trial: "AnyTrial") -> bool:
    """Say whether the folder of a trial is there, or any object under its address.

    Raises
    ------
    TrialError
        If what is there is no folder, or the store cannot be asked.
    """
    for root in roots([trial]):
        if root.exists() and not root.is_dir():
            msg = f"Trial {trial.path!r} is no folder. Give the root folder of a trial."
            raise TrialError(msg)
        return root.is_dir()
    try:
        if isinstance(trial, Trial):
            return not trial.index.is_remote or trial.index.is_there()
        return any(True for _ in trial.store.list_keys(""))
    except StorageUnavailableError as err:
        msg = f"Trial {trial.path!r} cannot be read: {err.reason}."
        raise TrialError(msg) from err


def absent(trial: "AnyTrial") -> str:
    """Return the sentence about a trial whose folder is not there."""
    return f"Trial {trial.path!r} is not there."
