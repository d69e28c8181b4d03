"""create_trial: opens the trial at a path; the classes of trials that it returns."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, overload

from rule_core.clock import Clock
from rule_core.environment import number
from rule_core.exceptions import MissingCollectionFiles
from rule_core.logger import get_logger
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.address import TrialAddress, address_of
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import ObjectNotFoundError
from rule_core.trials.open_index import open_index
from rule_core.trials.snapshot_view import POLL_S, WARN_AFTER_S
from rule_core.trials.trial import Trial

if TYPE_CHECKING:
    from rule_core.trials.profiler_trial import ProfilerTrial

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
        The format of the files, such as ``csv``; "" recognises it.
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
        path = f"s3://{bucket_name}" + (f"/{prefix_name}" if prefix_name else "")
        super().__init__(name, str(TrialAddress(kind, path)), range_steps, timeout, clock, sources)


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
    sources: SourceOptions = DEFAULT,
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
    sources: SourceOptions = DEFAULT,
) -> "Trial | ProfilerTrial":
    """Open the trial at a path and wait until its collections or metrics exist.

    Parameters
    ----------
    path
        A local folder, or an ``s3://bucket/prefix`` address: of saved tensors, or of files in
        another format, such as TensorBoard events or a CSV log. ``csv:PATH`` names the format.
    name
        Any name; by default the last part of `path`.
    profiler
        Whether to open the system metrics and framework events instead of the tensors.
    output_dir
        The output folder for rules over a profiler trial; ignored for other trials.
    range_steps
        ``(begin, end)``: load global steps ``begin <= step < end`` only; None is unbounded.
    timeout
        Seconds to wait for the collections or the first metrics of a running training job. None
        waits forever, with a warning after ten seconds.
    sources
        The meaning of names and log lines in files of other formats.
    check, index_mode, cache, parallel
        Accepted for compatibility; ignored.

    Raises
    ------
    MissingCollectionFiles
        If the training job has ended or `timeout` has passed before all collections files exist.
        Damaged collections files of an ended job are skipped with a warning, as in
        ``rule-runner evaluate``.
    NoMoreProfilerData
        If the training job has ended or `timeout` has passed before any metrics exist.
    ValueError
        If `range_steps` is not ``0 <= begin < end``, or the kind of path is not supported.
    """
    del check, index_mode, cache, parallel
    text = os.fspath(path).strip()
    address = TrialAddress("", text) if profiler else address_of(text)
    basename = address.path.rsplit("/", 1)[-1] if name is None else name
    if profiler:
        from rule_core.trials import profiler_trial

        return profiler_trial.open_profiler_trial(basename, text, output_dir, timeout, clock)
    options: dict[str, Any] = {
        "range_steps": range_steps,
        "timeout": timeout,
        "clock": clock,
        "sources": sources,
    }
    if not address.is_in_s3:
        return LocalTrial(basename, text, **options)
    bucket, _, prefix = address.path.partition("://")[2].partition("/")
    return S3Trial(basename, bucket, prefix, kind=address.kind, **options)


def _check_range(range_steps: Range | None) -> None:
    if range_steps is None:
        return
    begin, end = range_steps
    bounds: tuple[object, ...] = range_steps
    valid = all(bound is None or (isinstance(bound, int) and bound >= 0) for bound in bounds)
    if not valid or (begin is not None and end is not None and begin >= end):
        raise ValueError(
            f"range_steps must be (begin, end) with 0 <= begin < end or None, got {range_steps!r}."
        )


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
