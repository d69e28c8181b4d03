"""create_trial: opens the trial at a path."""

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from rule_core.clock import Clock
from rule_core.sources.address import split_kind
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.uri import is_s3
from rule_core.trials.opened_trial import LocalTrial, Range, S3Trial
from rule_core.trials.trial import Trial

if TYPE_CHECKING:
    from rule_core.trials.profiler_trial import ProfilerTrial


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
    kind, place = ("", text) if profiler else split_kind(text)
    basename = place.rsplit("/", 1)[-1] if name is None else name
    if profiler:
        from rule_core.trials import profiler_trial

        return profiler_trial.open_profiler_trial(basename, text, output_dir, timeout, clock)
    options: dict[str, Any] = {
        "range_steps": range_steps,
        "timeout": timeout,
        "clock": clock,
        "sources": sources,
    }
    if not is_s3(place):
        return LocalTrial(basename, text, **options)
    bucket, _, prefix = place.partition("://")[2].partition("/")
    return S3Trial(basename, bucket, prefix, kind=kind, **options)
