"""A summary of a trial at one moment, without waiting."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from rule_core.exceptions import SMDebugError
from rule_core.format.index_file import Entry, IndexFile
from rule_core.model.segments import SEGMENT_STEPS, first_of_segment, step_in_segment
from rule_core.modes import ModeKeys
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.trial_index import TrialIndex, missing_workers
from rule_core.sources.address import address_of
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_runner.errors import TrialError
from rule_runner.loading.trials import read_trial, reject_parent


class StepsReport(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one mode, numbered within it; ``GLOBAL`` has all by their global numbers.

    In a run that was resumed, all numbers are those of the training; see `SegmentReport`.
    """

    mode: str
    count: int
    first: int | None
    last: int | None


class CollectionReport(msgspec.Struct, frozen=True, kw_only=True):
    """One collection; `tensors` counts its members, or is None if a pattern is invalid."""

    name: str
    patterns: list[str]
    tensors: int | None


class TensorReport(msgspec.Struct, frozen=True, kw_only=True):
    """One tensor.

    Attributes
    ----------
    shape, dtype
        At the first step that has them; None if unknown.
    saved
        The parts among ``value``, ``shape`` and ``reductions`` that were saved at any step.
    nbytes
        Size of its records in the event files, over all steps and workers.
    """

    name: str
    steps: int
    first: int
    last: int
    modes: list[str]
    shape: list[int] | None
    dtype: str | None
    saved: list[str]
    reductions: list[str]
    nbytes: int


class IncompleteStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step that some workers have not written, and their names if known."""

    step: int
    missing: list[str]


class SourceReport(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder in another format, why it was recognised, and what was decided about it."""

    kind: str
    description: str
    decisions: list[str] = []


class SegmentReport(msgspec.Struct, frozen=True, kw_only=True):
    """The steps of one start of a run that was resumed, as the training counts them."""

    count: int
    first: int
    last: int


class TrialReport(msgspec.Struct, frozen=True, kw_only=True):
    """A summary of a trial: the object of ``--format json``.

    Attributes
    ----------
    why_ended
        Why a run in another format counts as ended; "" if it does not.
    sources, set_aside
        What is read of a run in other formats, and sentences on what is not.
    caveats
        Sentences on what such a run may hide, and on options that fit nothing in it.
    segments
        Of a run that was resumed; [] of one that was not.
    """

    schema_version: int = 1
    name: str
    path: str
    ended: bool
    workers: list[str]
    num_workers: int
    steps: list[StepsReport]
    incomplete: list[IncompleteStep]
    collections: list[CollectionReport]
    tensors: list[TensorReport]
    nbytes: int
    problems: dict[str, str]
    why_ended: str = ""
    sources: list[SourceReport] = []
    set_aside: list[str] = []
    caveats: list[str] = []
    segments: list[SegmentReport] = []


def report_trial(path: str, sources: SourceOptions = DEFAULT) -> TrialReport:
    """Return a summary of the trial at `path`.

    Raises
    ------
    TrialError
        If the folder does not exist, or holds no trial.
    """
    trial, ended = read_trial(path, sources)
    index = trial.index
    if not is_trial(index, ended):
        reject_parent(trial)
        raise TrialError(
            f"Folder {path!r} holds no trial: neither 'collections/' nor 'index/' has a file. "
            "Give the folder to which the training job saved its tensors."
        )
    tensors = [_tensor(index, name) for name in sorted(index.names)]
    return TrialReport(
        name=trial.name,
        path=address_of(path).canonical,
        ended=ended,
        workers=index.workers,
        num_workers=index.num_workers,
        steps=list(_steps(index)),
        incomplete=list(incomplete_steps(index)),
        collections=list(_collections(index)),
        tensors=tensors,
        nbytes=sum(tensor.nbytes for tensor in tensors),
        problems=index.file_problems.problems,
        **(_source_fields(index) if isinstance(index, SourceIndex) else {}),
    )


def _source_fields(index: SourceIndex) -> dict[str, Any]:
    """Return the fields of a report that only runs in other formats have."""
    return {
        "why_ended": index.why_ended(),
        "sources": [
            SourceReport(kind=source.kind, description=source.description, decisions=decisions)
            for source, decisions in zip(index.sources, index.decisions(), strict=True)
        ],
        "set_aside": list(index.set_aside),
        "caveats": list(index.caveats()),
        "segments": list(_segments(index)),
    }


def _segments(index: SourceIndex) -> Iterator[SegmentReport]:
    """Yield the segments of a run that has several."""
    firsts = index.segments
    for first in firsts if len(firsts) > 1 else ():
        start = bisect_left(index.steps, first)
        end = bisect_left(index.steps, first_of_segment(first) + SEGMENT_STEPS)
        last = step_in_segment(index.steps[end - 1])
        yield SegmentReport(count=end - start, first=step_in_segment(first), last=last)


def is_trial(index: TrialIndex, ended: bool) -> bool:
    """Return whether the folder of an index contains any part of a trial."""
    return bool(ended or index.workers or index.steps or index.file_problems.problems)


def incomplete_steps(index: TrialIndex) -> Iterator[IncompleteStep]:
    """Yield the steps that not every worker has written."""
    for step in index.steps:
        if len(index.files[step]) < index.num_workers:
            yield IncompleteStep(step=step, missing=missing_workers(index, step))


def _steps(index: TrialIndex) -> Iterator[StepsReport]:
    """Yield the steps over all modes, then those of each mode."""
    by_mode = {ModeKeys.GLOBAL: index.steps} | {
        mode: sorted(index.mode_steps[mode]) for mode in ModeKeys if mode in index.mode_steps
    }
    for mode, steps in by_mode.items():
        ends = (step_in_segment(steps[0]), step_in_segment(steps[-1])) if steps else (None, None)
        yield StepsReport(mode=mode.name, count=len(steps), first=ends[0], last=ends[1])


def _collections(index: TrialIndex) -> Iterator[CollectionReport]:
    for name, collection in sorted(index.collections.items()):
        try:
            count = len(collection.members(index.names))
        except (re.error, SMDebugError) as err:  # the trial may contain invalid patterns
            index.file_problems.report(f"collection {name}", err)
            count = None
        yield CollectionReport(name=name, patterns=collection.include_regex, tensors=count)


def _tensor(index: TrialIndex, name: str) -> TensorReport:
    """Summarize a tensor from the index files, with shape and type of its first value."""
    steps = index.names[name]
    files = [
        (step, worker, file)
        for step in steps
        for worker, file in sorted(index.files[step].items())
        if name in file.entries
    ]
    entries = [file.entries[name] for _, _, file in files]
    parts = {
        "value": any(entry.raw for entry in entries),
        "shape": any(entry.shape is not None for entry in entries),
        "reductions": any(entry.reductions for entry in entries),
    }
    shape, dtype = _shape_and_type(index, name, files)
    reductions = {
        f"{'abs_' if absolute else ''}{name}"
        for entry in entries
        for name, absolute in entry.reductions
    }
    return TensorReport(
        name=name,
        steps=len(steps),
        first=step_in_segment(steps[0]),
        last=step_in_segment(steps[-1]),
        modes=sorted({file.mode.name for _, _, file in files}),
        shape=shape,
        dtype=dtype,
        saved=[part for part, is_saved in parts.items() if is_saved],
        reductions=sorted(reductions),
        nbytes=sum(map(_nbytes, entries)),
    )


def _nbytes(entry: Entry) -> int:
    return sum(span.length for span in (*entry.reductions.values(), entry.raw) if span is not None)


def _shape_and_type(
    index: TrialIndex, name: str, files: Sequence[tuple[int, str, IndexFile]]
) -> tuple[list[int] | None, str | None]:
    """Return shape and type from the first intact entry; damage is reported."""
    for step, worker, file in files:
        entry = file.entries[name]
        if entry.raw is not None:
            try:
                array = index.tensors.value(name, step, worker)
            except SMDebugError as err:
                index.file_problems.report(file.event_key or file.key, err)
                continue
            return list(array.shape), "string" if array.dtype.kind in "UO" else str(array.dtype)
        if entry.shape is not None:
            return list(entry.shape), None
    return None, None
