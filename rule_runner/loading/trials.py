"""Opens tensor trials and profiler trials, local or in S3, and checks whether they exist."""

import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rule_core.exceptions import SMDebugError
from rule_core.format.marks import FOLDERS
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.address import TrialAddress, address_of, parse_address
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.sources.recognize import source_folder
from rule_core.storage.base import ObjectNotFoundError, StorageUnavailableError, TrialStore
from rule_core.storage.local import LocalStore
from rule_core.storage.retrying_store import RetryingStore
from rule_core.storage.uri import open_store
from rule_core.storage.wait_budget import WaitBudget, WaitEndedError
from rule_core.trials.create_trial import LocalTrial, S3Trial
from rule_core.trials.open_index import open_index
from rule_core.trials.trial import Trial
from rule_runner.errors import TrialError, listed, translated, unreadable

if TYPE_CHECKING:
    from rule_core.trials.profiler_trial import ProfilerTrial
    from rule_runner.loading.trial_search import TrialFolder

    AnyTrial = Trial | ProfilerTrial


def trial_address(text: str) -> TrialAddress:
    """Return the parts of ``PATH`` or ``KIND:PATH``.

    Raises
    ------
    TrialError
        If there is no such format.
    """
    with translated(TrialError, SMDebugError):
        return parse_address(text)


def open_trial(
    address: TrialAddress | str,
    name: str | None = None,
    window: int = 1000,
    sources: SourceOptions = DEFAULT,
    *,
    patience: WaitBudget | None = None,
) -> Trial:
    """Return the tensor trial at an address, without reading its numbers.

    Parameters
    ----------
    sources
        The meaning of names and log lines in files of other formats.
    patience
        Bounds the waits for its storage.

    Raises
    ------
    TrialError
        If paths of this kind cannot be read.
    """
    address = trial_address(address) if isinstance(address, str) else address
    index = _open_index(address, window, sources, patience)
    kind = S3Trial if address.is_in_s3 else LocalTrial
    return kind.over(name or address.name, str(address), index)


def _open_index(
    address: TrialAddress, window: int, sources: SourceOptions, patience: WaitBudget | None
) -> TrialIndex:
    with translated(TrialError, SMDebugError):
        return open_index(
            address, lambda path: _store_at(path, patience), options=sources, window=window
        )


def recognize_again(
    trial: Trial, sources: SourceOptions = DEFAULT, *, patience: WaitBudget | None = None
) -> bool:
    """Look again at a trial of which no file is known; return whether its index was replaced.

    Raises
    ------
    TrialError
        If it holds a file that cannot be read.
    """
    index = trial.index
    if not index.unrecognized:
        return False
    if not index.steps and not index.workers:
        trial.index = _open_index(trial_address(trial.path), index.window, sources, patience)
        if trial.index.unrecognized or type(trial.index) is type(index):
            trial.index, index.unrecognized = index, trial.index.unrecognized
    else:
        index.unrecognized = False
    return trial.index is not index


def _store_at(path: str, patience: WaitBudget | None) -> TrialStore:
    with translated(TrialError, SMDebugError):
        store = open_store(path)
    if isinstance(store, RetryingStore):
        store.patience = patience
    return store


def open_profiler_trial(
    path: str,
    name: str | None,
    stop_files: Sequence[Path] = (),
    stop_grace: float = 60.0,
    waits_for_unseen: bool = False,
    *,
    patience: WaitBudget | None = None,
) -> "ProfilerTrial":
    """Return the profiler trial at `path`, without reading its files.

    Parameters
    ----------
    stop_files, stop_grace
        The data ends when such a file exists and the time in it is `stop_grace` seconds ago.
    waits_for_unseen
        Whether to wait for nodes and processes that have not started to write.
    patience
        Bounds the waits for its storage.

    Raises
    ------
    TrialError
        If paths of this kind cannot be read.
    """
    from rule_core.trials.profiler_trial import ProfilerTrial

    store = _store_at(path, patience)
    name = name or address_of(path).name
    return ProfilerTrial.over(
        store, name, path, stop_files, stop_grace, waits_for_unseen=waits_for_unseen
    )


def roots(trials: "Iterable[AnyTrial]") -> list[Path]:
    """Return the folders of local trials, which can be watched."""
    stores = (_store(trial) for trial in trials)
    return [store.root for store in stores if isinstance(store, LocalStore)]


def is_of_sources(trial: "AnyTrial") -> bool:
    """Return whether a trial consists of files in other formats."""
    return isinstance(trial, Trial) and isinstance(trial.index, SourceIndex)


def _store(trial: "AnyTrial") -> TrialStore:
    return trial.index.store if isinstance(trial, Trial) else trial.store


def is_there(trial: "AnyTrial") -> bool:
    """Return whether the folder of a trial exists, or any object under its address.

    Raises
    ------
    TrialError
        If the path is not a folder, or the store does not answer.
    """
    for root in roots([trial]):
        if root.is_file() and not isinstance(trial, Trial):
            from rule_core.profiler.converted.format import may_be_converted
            from rule_core.profiler.python_profiles.other_tools import is_profile_name

            if may_be_converted(root.name) or is_profile_name(root.name):
                return True
        if root.exists() and not root.is_dir():
            raise TrialError(
                f"Trial {trial.path!r} is not a folder. Give the root folder of a trial."
            )
        return root.is_dir()
    subject = f"Trial {trial.path!r}"
    with (
        unreadable(subject, TrialError, StorageUnavailableError),
        translated(TrialError, WaitEndedError, before=f"{subject} cannot be read. "),
    ):
        if isinstance(trial, Trial):
            return not trial.index.is_remote or trial.index.has_files()
        return any(True for _ in trial.source.files.store.list_keys(""))


def check_is_there(trial: "AnyTrial") -> None:
    """Check that a trial exists.

    Raises
    ------
    TrialError
        If it does not, with the nearest name, or cannot be read.
    """
    if not is_there(trial):
        raise TrialError(absent(trial))


def read_trial(path: str, sources: SourceOptions) -> tuple[Trial, bool]:
    """Return the tensor trial at `path` as it is now, and whether it has ended.

    Raises
    ------
    TrialError
        If it does not exist, or cannot be read.
    """
    trial = open_trial(path, sources=sources)
    check_is_there(trial)
    index = trial.index
    with translated(TrialError, StorageUnavailableError):
        index.refresh(whole=True)  # which tells when a run in another format was last written
        ended = index.has_ended()
        index.refresh(whole=True)
    if ended:
        index.finish()
    return trial, ended


def absent(trial: "AnyTrial") -> str:
    """Return the error message for a trial that does not exist, with the nearest name."""
    from rule_runner.loading.trial_search import missing

    return missing(trial.path, _seconds_left(trial))


def _seconds_left(trial: "AnyTrial") -> float:
    """Return how many seconds the storage of a trial may still be waited for."""
    store = _store(trial)
    patience = store.patience if isinstance(store, RetryingStore) else None
    return patience.remaining_s() if patience else math.inf


def reject_parent(trial: "AnyTrial", *, takes_python: bool = False) -> None:
    """Reject a folder that is not a trial but contains trials.

    Parameters
    ----------
    takes_python
        Whether profiles of Python are enough for profiler data.

    Raises
    ------
    TrialError
        Names those trials; only those of the same kind as `trial` if there are any.
    """
    if not isinstance(_store(trial), LocalStore | RetryingStore) or is_of_sources(trial):
        return
    if not isinstance(trial, Trial):
        if trial.source.files.store.finds_formats():
            _reject_without_data(trial)
            return
        _reject_unread(trial, takes_python=takes_python)
    candidates = _candidates(trial)
    has_tensors = isinstance(trial, Trial)
    same_kind = [
        candidate.path
        for candidate in candidates
        if (candidate.tensors if has_tensors else candidate.profiler)
    ]
    names = same_kind or [candidate.path for candidate in candidates]
    if names:
        raise TrialError(
            f"Folder {trial.path!r} is not a trial, but contains {listed(names)}. Give one of them."
        )
    reason = _unusable(trial)
    if reason:
        raise TrialError(f"Folder {trial.path!r} holds no trial. {reason}")


def _reject_unread(trial: "ProfilerTrial", *, takes_python: bool) -> None:
    """Reject files of other profilers that are not read as profiler data.

    Raises
    ------
    TrialError
        Names the first of them.
    """
    store = trial.source.files.store
    if store.is_profiled:
        return
    from rule_core.profiler.python_profiles.other_tools import ToolProfile, tool_profiles

    profiles: Sequence[ToolProfile] = ()
    with suppress(ObjectNotFoundError, StorageUnavailableError):
        _, profiles = tool_profiles(trial.store)
    if profiles and takes_python:
        return
    for key, reason in store.refusals.items():
        path = trial.path if store.only else f"{trial.path}/{key}"
        raise TrialError(f"File {path!r} is not read. {reason}")
    if is_one_file(trial) and not profiles:
        raise TrialError(
            f"File {trial.path!r} is not read. It is {_content(trial)} "
            "not a trace of torch.profiler, a dump of a flight recorder, an answer of Prometheus, "
            "or a profile of py-spy, speedscope or scalene."
        )
    if profiles:
        raise TrialError(
            f"Rules do not judge the {profiles[0].tool} profile in {trial.path!r}. List its "
            f"functions with 'rule-runner profile python'."
        )


def is_one_file(trial: "ProfilerTrial") -> bool:
    """Return whether profiler data is given by the path of one file."""
    return bool(trial.source.files.store.only) or Path(trial.store.uri).is_file()


def _content(trial: "ProfilerTrial") -> str:
    store = trial.source.files.store
    if not store.only:
        return "no JSON, and"
    return "JSON, but" if store.status(store.only).size else "empty, and"


def _reject_without_data(trial: "ProfilerTrial") -> None:
    """Reject one file of a format that is read, but without any data.

    Raises
    ------
    TrialError
        Says what is wrong with the file.
    """
    files = trial.source.files
    if not is_one_file(trial):
        return
    with translated(TrialError, SMDebugError):
        trial.refresh()
    if not (files.system or files.traces):
        reasons = " ".join(files.problems.problems.values())
        raise TrialError(f"File {trial.path!r} is not read. {reasons}")


def _candidates(trial: "AnyTrial") -> "list[TrialFolder]":
    """Return the trials below the folder of a trial; none if the folder may be a trial itself."""
    store = _store(trial)
    if isinstance(store, LocalStore) and not FOLDERS.isdisjoint(source_folder(store, "").names):
        return []
    from rule_runner.loading.trial_search import trials_below

    return trials_below(trial.path, _seconds_left(trial))


def _unusable(trial: "AnyTrial") -> str:
    """Return why a folder is not a trial and will not become one; "" if it may."""
    if not isinstance(trial, Trial) or not trial.index.unrecognized:
        return ""
    names = [name for name in source_folder(trial.index.store, "").names if name[-1:] != "/"]
    kind = address_of(trial.path).kind
    if kind and names:
        return f"Nothing in it is recognised as {kind}. Give the file, as in {kind}:PATH/FILE."
    from rule_core.sources.safetensors import refusal

    return refusal(names) or ""
