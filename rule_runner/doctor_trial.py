"""What doctor looks at in a trial: its files one by one, and what rules will miss."""

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rule_runner.diagnosis import Check, Grade, good, listed, shortened, warning, wrong
from rule_runner.doctor_s3 import examine_address
from rule_runner.errors import TrialError
from rule_runner.openings import is_there, open_trial, roots
from rule_runner.show import printable
from rule_runner.trial_report import incomplete_steps, is_trial
from smdebug.core import locations
from smdebug.core.collection import CollectionKeys
from smdebug.exceptions import SMDebugError, TruncatedFileError
from smdebug.storage import ByteRange, ObjectNotFoundError, StorageUnavailableError
from smdebug.storage.uri import is_s3
from smdebug.trials.trial_index import TrialIndex

CLAIM: Final = "claim.smd"
NEEDED: Final = {"gradients": "VanishingGradient", "losses": "LossNotDecreasing"}
PROBLEMS_SHOWN: Final = 20
DECODED_BYTES: Final = 1 << 30  # of a larger trial only the sizes of the other files are checked
FETCHED_BYTES: Final = 1 << 26  # and of one that is read over a network

# Hooks write these whether or not a tensor belongs to them.
_USUAL: Final = {name for key, name in vars(CollectionKeys).items() if key.isupper()}
_DAMAGE: Final = (
    "What is in it is left out, all else is judged. If the training job's own folder holds a whole "
    "one, copy it again, and let this user read it."
)
_OF_A_TRIAL: Final = ("collections", "index", "events", locations.END_OF_JOB, CLAIM)


def examine_trial(path: str) -> Iterator[Check]:
    """Yield all that is to be said of the trial at `path`."""
    if is_s3(path):
        checks = [*examine_address(path)]
        yield from checks
        if any(check.grade is Grade.WRONG for check in checks):
            return
    try:
        trial = open_trial(path)
        there = is_there(trial)
    except TrialError as err:
        yield wrong(printable(err))
        return
    if not there:
        yield wrong(f"Trial {path!r} is not there. Give the root folder of a trial.")
        return
    for root in roots([trial]):
        yield from _odd_files(root)
    index = trial.index
    try:
        ended = index.has_ended()
        index.refresh(whole=True)
        leftovers = list(_leftovers(index, ended))
    except StorageUnavailableError as err:
        yield wrong(f"{printable(err)} A trial must be folders and files that this user may read.")
        return
    if not is_trial(index, ended):
        yield wrong(f"Folder {path!r} holds no trial. Give the folder that the job saved to.")
        return
    yield from _whole(index, ended)
    yield from leftovers
    yield from _event_files(index)
    yield from _problems(index)
    yield from _collections(index)


def _odd_files(root: Path) -> Iterator[Check]:
    """Yield what is neither file nor folder: a reader does not follow it, or would hang."""
    tops = [root / name for name in _OF_A_TRIAL]
    below = (
        Path(folder) / name
        for top in tops
        if not top.is_symlink()
        for folder, folders, files in os.walk(top)
        for name in (*folders, *files)
    )
    odd = [
        str(one.relative_to(root))
        for one in (*tops, *below)
        if os.path.lexists(one) and not _is_plain(one.lstat().st_mode)
    ]
    if odd:
        yield wrong(
            f"{listed(odd)}: links, pipes and devices inside a trial are not read. Put the file "
            "itself there."
        )


def _is_plain(mode: int) -> bool:
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode)


def _whole(index: TrialIndex, ended: bool) -> Iterator[Check]:
    """Yield whether the trial has ended, and what of it is missing."""
    steps = len(index.steps)
    if ended:
        yield good(f"The training job has ended; {steps} steps are there.")
    else:
        yield warning(
            f"The training job has not ended ({locations.END_OF_JOB!r} is missing); {steps} steps "
            "are there. If it was killed, make that empty file, or evaluate with --no-wait."
        )
    grade = wrong if ended else warning
    if ended and not steps:
        yield wrong("The training job saved nothing. Check what its hook was told to save.")
    if index.lacks_collections():
        names = f" ({listed(index.workers)})" if index.workers else ""
        yield grade(
            f"{len(index.workers)} of {max(index.num_workers, 1)} collections files are there"
            f"{names}. Check that each worker could write to the trial."
        )
    incomplete = [
        f"{one.step} without {listed(one.missing) or 'a worker'}" for one in incomplete_steps(index)
    ]
    if incomplete:
        yield grade(
            f"Steps are incomplete: {shortened(incomplete)}. They are judged with the workers that "
            "they have. Check the logs of the others."
        )


def _leftovers(index: TrialIndex, ended: bool) -> Iterator[Check]:
    """Yield what a writer leaves behind when it is killed."""
    keys = index.store.list_keys
    drafts = [
        key
        for prefix in (locations.COLLECTIONS, locations.INDEX, locations.EVENTS)
        for key in keys(prefix)
        if key.endswith(".tmp")
    ]
    if drafts:
        yield warning(
            f"Unfinished files are there: {listed(drafts)}. They are not read; if no training job "
            "writes here any more, delete them."
        )
    if CLAIM in keys(CLAIM):
        yield warning(
            f"File {CLAIM!r} is there{' after the end of the training job' if ended else ''}: "
            "while it is, another training job cannot write here. If none writes, delete it."
        )


def _event_files(index: TrialIndex) -> Iterator[Check]:
    """Read the event files; yield what is missing. Damage is left among the index's problems."""
    missing = []
    whole = DECODED_BYTES if index.store.costs.parallel == 1 else FETCHED_BYTES
    budget = whole
    for step in index.steps:
        for worker, file in index.files[step].items():
            try:
                budget -= _read(index, step, worker, decode=budget > 0)
            except ObjectNotFoundError:
                missing.append(file.event_key)
            except SMDebugError as err:
                index.report(file.event_key or file.key, err)
    if missing:
        yield wrong(
            f"Event files are missing: {listed(missing)}. Their tensors cannot be judged. Copy the "
            "folder 'events' whole."
        )
    if budget <= 0:
        yield good(f"Only the first {whole >> 20} MB of tensors were read.")


def _read(index: TrialIndex, step: int, worker: str, *, decode: bool) -> int:
    """Read the records of an event file, or else its last byte; return how many bytes.

    Raises
    ------
    SMDebugError
        If the file is missing or damaged.
    """
    file = index.files[step][worker]
    spans = {
        (name, what): span
        for name, entry in file.entries.items()
        for what, span in (*entry.reductions.items(), (None, entry.raw))
        if span is not None
    }
    if not spans or file.event_key is None:
        return 0
    for name, reduction in spans if decode else ():
        index.tensor(name, step, worker, reduction)
    last = max(span.start + span.length for span in spans.values())
    if not len(index.store.read(file.event_key, ByteRange(last - 1, last))):
        raise TruncatedFileError(file.event_key, f"{last} bytes", "fewer")
    return sum(span.length for span in spans.values())


def _problems(index: TrialIndex) -> Iterator[Check]:
    """Yield what is damaged, file by file."""
    found = list(index.problems.items())
    for key, problem in found[:PROBLEMS_SHOWN]:
        where = "" if repr(key) in problem else f"{key!r}: "
        yield wrong(f"{where}{printable(problem).rstrip('.')}. {_DAMAGE}")
    if len(found) > PROBLEMS_SHOWN:
        yield wrong(f"{len(found) - PROBLEMS_SHOWN} more files are damaged. {_DAMAGE}")


def _collections(index: TrialIndex) -> Iterator[Check]:
    """Yield which collections cannot be used, and which are missed."""
    members: dict[str, list[str]] = {}
    for name, collection in sorted(index.collections.items()):
        try:
            members[name] = collection.members(index.names)
        except (re.error, SMDebugError) as err:
            yield wrong(
                f"Collection {name!r} has a pattern that cannot be used: "
                f"{printable(err).rstrip('.')}. Mend it in the collections files."
            )
    empty = [name for name, found in members.items() if not found and name not in _USUAL]
    if empty:
        yield warning(f"No saved tensor is in collections {listed(empty)}. Check their patterns.")
    for name, rule in NEEDED.items():
        if index.names and not members.get(name):
            yield warning(
                f"No saved tensor is in collection {name!r}: rule {rule} has nothing to judge. "
                "Tell the hook to save it."
            )
    taken = {name for found in members.values() for name in found}
    left = sorted(set(index.names) - taken)
    if left:
        yield warning(
            f"Tensors {listed(left)} are in no collection: rules find them by pattern only "
            "(-p tensor_regex=...)."
        )
