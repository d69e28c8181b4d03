"""Checks of a trial: its files one by one, and missing collections."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rule_core.exceptions import SMDebugError, TruncatedFileError
from rule_core.format import paths
from rule_core.model.collection import CollectionKeys
from rule_core.reading.source_index import QUIET_VARIABLE, SourceIndex
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.address import address_of
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import ByteRange, ObjectNotFoundError, StorageUnavailableError
from rule_core.trials.trial import Trial
from rule_runner.commands.doctor.checks import Diagnosis, Grade, good, warning, wrong
from rule_runner.commands.doctor.s3 import examine_address
from rule_runner.commands.profile.overview import overview
from rule_runner.commands.profile.trials import holds_converted
from rule_runner.commands.trial.summary import incomplete_steps, is_trial
from rule_runner.errors import TrialError, listed, shortened
from rule_runner.escape import printable
from rule_runner.loading.trials import absent, is_there, open_trial, reject_parent, roots

CLAIM: Final = "claim.smd"
NEEDED: Final = {"gradients": "VanishingGradient", "losses": "LossNotDecreasing"}
PROBLEM_LIMIT: Final = 20
DECODED_BYTES: Final = 1 << 30  # beyond that, only the sizes of files are checked
FETCHED_BYTES: Final = 1 << 26  # the same over a network

# Hooks always write these, also without tensors.
_USUAL: Final = {name for key, name in vars(CollectionKeys).items() if key.isupper()}
_DAMAGE: Final = (
    "Its content is ignored, everything else is judged. If the training job's own folder has an "
    "intact copy, copy it again, and let this user read it."
)
_PLAIN: Final = {stat.S_IFREG, stat.S_IFDIR}
_OF_A_TRIAL: Final = ("collections", "index", "events", paths.END_OF_JOB, CLAIM)


def examine_trial(path: str, sources: SourceOptions = DEFAULT) -> Iterator[Diagnosis]:
    """Yield the checks of the trial at `path`."""
    try:
        yield from _examine(path, sources)
    except TrialError as err:
        yield wrong(printable(err))


def _examine(path: str, sources: SourceOptions) -> Iterator[Diagnosis]:
    """Yield the checks until something about the trial prevents more.

    Raises
    ------
    TrialError
        Why the trial cannot be opened or read.
    """
    if address_of(path).is_in_s3:
        checks = [*examine_address(address_of(path).path)]
        yield from checks
        if any(check.grade is Grade.WRONG for check in checks):
            return
    if not address_of(path).kind and holds_converted(path, only_file=True):
        yield from _profiler_data(path)
        return
    trial = open_trial(path, sources=sources)
    if not is_there(trial):
        yield wrong(printable(f"{absent(trial)} Give the root folder of a trial."))
        return
    index = trial.index
    yield from _sources(index) if isinstance(index, SourceIndex) else _saved_tensors(trial)


def _saved_tensors(trial: Trial) -> Iterator[Diagnosis]:
    """Yield the checks of a folder with saved tensors, or without any."""
    for root in roots([trial]):
        yield from _odd_files(root)
    path, index = trial.path, trial.index
    try:
        reject_parent(trial)
        ended = index.has_ended()
        index.refresh(whole=True)
        leftovers = list(_leftovers(index, ended))
    except StorageUnavailableError as err:
        yield wrong(
            f"{printable(err)} A trial must consist of folders and files that this user may read."
        )
        return
    if not is_trial(index, ended):
        if holds_converted(path):
            yield from _profiler_data(path)
        else:
            yield wrong(f"Folder {path!r} holds no trial. Give the folder to which the job saved.")
        return
    yield from _completeness(index, ended)
    yield from leftovers
    yield from _event_files(index)
    yield from _problems(index)
    yield from _collections(index)


def _profiler_data(path: str) -> Iterator[Diagnosis]:
    """Yield the checks of files of other profilers, all of which are read."""
    report = overview(path, check=True)
    labels = report.formats or [f"profiles of {each.profiler}" for each in report.python]
    what = " and ".join(labels)
    nodes = f", of {listed([printable(node) for node in report.nodes])}" if report.nodes else ""
    yield good(f"{what[:1].upper()}{what[1:]} are there{nodes}.")
    yield from (warning(printable(problem)) for problem in report.problems[:PROBLEM_LIMIT])


def _sources(index: SourceIndex) -> Iterator[Diagnosis]:
    """Yield the checks of a run in other formats."""
    try:
        index.refresh(whole=True)
        why_ended = index.why_ended()
    except SMDebugError as err:
        yield wrong(printable(err))
        return
    for source, decisions in zip(index.sources, index.decisions(), strict=True):
        yield good(f"Recognised as {source.kind}: {printable(source.description)}")
        yield from (good(printable(f"Decided: {decision}.")) for decision in decisions)
    yield from (good(printable(text)) for text in index.set_aside)
    yield from (warning(printable(text)) for text in index.caveats())
    steps, starts = len(index.steps), len(index.segments)
    resumed = f" of {starts} starts: it was resumed, or its steps go back" if starts > 1 else ""
    if not steps:
        yield warning("Nothing of it is read yet: no line or record with a step and a number.")
    elif why_ended:
        yield good(f"The run has ended ({why_ended}); it has {steps} steps{resumed}.")
    else:
        yield good(
            f"The run may still grow; it has {steps} steps{resumed}. It counts as ended after ten "
            f"quiet minutes ({QUIET_VARIABLE}, in seconds)."
        )
    yield from _problems(index)


def _odd_files(root: Path) -> Iterator[Diagnosis]:
    """Check that a trial has files and folders only; readers ignore others, or would block."""
    tops = [root / name for name in _OF_A_TRIAL]
    below = (
        Path(folder) / name
        for top in tops
        if not top.is_symlink()
        for folder, folders, files in os.walk(top)
        for name in (*folders, *files)
    )
    odd = [
        str(path.relative_to(root))
        for path in (*tops, *below)
        if os.path.lexists(path) and stat.S_IFMT(path.lstat().st_mode) not in _PLAIN
    ]
    if odd:
        yield wrong(
            f"{listed(odd)}: links, pipes and devices inside a trial are not read. Replace them "
            "by the files."
        )


def _completeness(index: TrialIndex, ended: bool) -> Iterator[Diagnosis]:
    """Check that the trial has ended, and that it is complete."""
    steps = len(index.steps)
    if ended:
        yield good(f"The training job has ended; the trial has {steps} steps.")
    else:
        yield warning(
            f"The training job has not ended ({paths.END_OF_JOB!r} is missing); the trial has "
            f"{steps} steps. If it was killed, create that file empty, or evaluate with --no-wait."
        )
    grade = wrong if ended else warning
    if ended and not steps:
        yield wrong("The training job saved nothing. Check what its hook is configured to save.")
    if index.lacks_collections():
        names = f" ({listed(index.described)})" if index.described else ""
        yield grade(
            f"{len(index.described)} of {max(index.num_workers, 1)} collections files exist"
            f"{names}. Check that each worker could write to the trial."
        )
    incomplete = [
        f"{step.step} without {listed(step.missing) or 'a worker'}"
        for step in incomplete_steps(index)
    ]
    if incomplete:
        yield grade(
            f"Steps are incomplete: {shortened(incomplete)}. They are judged with the workers that "
            "exist. Check the logs of the others."
        )


def _leftovers(index: TrialIndex, ended: bool) -> Iterator[Diagnosis]:
    """Yield the leftovers of killed writers."""
    keys = index.store.list_keys
    drafts = [
        key
        for prefix in (paths.COLLECTIONS, paths.INDEX, paths.EVENTS)
        for key in keys(prefix)
        if key.endswith(".tmp")
    ]
    if drafts:
        yield warning(
            f"Unfinished files exist: {listed(drafts)}. They are not read; if no training job "
            "writes here any more, delete them."
        )
    if CLAIM in keys(CLAIM):
        yield warning(
            f"File {CLAIM!r} exists{' after the end of the training job' if ended else ''}: "
            "it keeps other training jobs from writing here. If no job writes here, delete it."
        )


def _event_files(index: TrialIndex) -> Iterator[Diagnosis]:
    """Read the event files; yield missing ones. Damaged files become problems of the index."""
    missing = []
    limit = DECODED_BYTES if index.store.costs.parallel == 1 else FETCHED_BYTES
    budget = limit
    for step in index.steps:
        for worker, file in index.files[step].items():
            try:
                budget -= _read(index, step, worker, decode=budget > 0)
            except ObjectNotFoundError:
                missing.append(file.event_key)
            except SMDebugError as err:
                index.file_problems.report(file.event_key or file.key, err)
    if missing:
        yield wrong(
            f"Event files are missing: {listed(missing)}. Their tensors cannot be judged. Copy the "
            "complete folder 'events'."
        )
    if budget <= 0:
        yield good(f"Only the first {limit >> 20} MB of tensors were read.")


def _read(index: TrialIndex, step: int, worker: str, *, decode: bool) -> int:
    """Read the records of an event file, or only its last byte; return the size of the records.

    Raises
    ------
    SMDebugError
        If the file is missing or damaged.
    """
    file = index.files[step][worker]
    spans = {
        (name, reduction): span
        for name, entry in file.entries.items()
        for reduction, span in (*entry.reductions.items(), (None, entry.raw))
        if span is not None
    }
    if not spans or file.event_key is None:
        return 0
    for name, reduction in spans if decode else ():
        index.tensors.value(name, step, worker, reduction)
    last = max(span.start + span.length for span in spans.values())
    if not len(index.store.read(file.event_key, ByteRange(last - 1, last))):
        raise TruncatedFileError(file.event_key, f"{last} bytes", "fewer")
    return sum(span.length for span in spans.values())


def _problems(index: TrialIndex) -> Iterator[Diagnosis]:
    """Yield the damaged files."""
    problems = list(index.file_problems.problems.items())
    for key, problem in problems[:PROBLEM_LIMIT]:
        where = "" if repr(key) in problem else f"{key!r}: "
        yield wrong(f"{where}{printable(problem).rstrip('.')}. {_DAMAGE}")
    if len(problems) > PROBLEM_LIMIT:
        yield wrong(f"{len(problems) - PROBLEM_LIMIT} more files are damaged. {_DAMAGE}")


def _collections(index: TrialIndex) -> Iterator[Diagnosis]:
    """Check for collections that are unusable, empty or missing."""
    members: dict[str, list[str]] = {}
    for name, collection in sorted(index.collections.items()):
        try:
            members[name] = collection.members(index.names)
        except (re.error, SMDebugError) as err:
            yield wrong(
                f"Collection {name!r} has an invalid pattern: "
                f"{printable(err).rstrip('.')}. Correct it in the collections files."
            )
    empty = [name for name, tensors in members.items() if not tensors and name not in _USUAL]
    if empty:
        yield warning(f"No saved tensor is in collections {listed(empty)}. Check their patterns.")
    for name, rule in NEEDED.items():
        if index.names and not members.get(name):
            yield warning(
                f"No saved tensor is in collection {name!r}: rule {rule} has nothing to judge. "
                "Configure the hook to save it."
            )
    assigned = {name for tensors in members.values() for name in tensors}
    unassigned = sorted(set(index.names) - assigned)
    if unassigned:
        yield warning(
            f"Tensors {listed(unassigned)} are in no collection: rules find them only by pattern "
            "(-p tensor_regex=...)."
        )
