"""Reads and measures what workers saved at a step, in one pass over each event file.

`StepAhead` does so in other threads, for the next step, while rules judge this one.
"""

import os
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, Final, NamedTuple, Protocol

from rule_core.exceptions import SMDebugError
from rule_core.format.index_file import Entry, IndexFile, Span
from rule_core.format.record_layout import RecordLayout, learn_layout
from rule_core.kernels.sweep import SweepCall, SweepRun
from rule_core.model.streaming_statistics import Want
from rule_core.reading.step_read_plan import Layouts, Names, Opened, PreparedReads, StepPlan
from rule_core.storage.base import OpenFile, has_descriptor

AHEAD_BYTES: Final = 16 << 20  # of memory to read into, and of results
AHEAD_FILES: Final = 8  # open at once; an evaluation may have 32

Values = dict[str, Any]  # by tensor
Identity = tuple[int, ...]  # device, inode, bytes, and nanoseconds of the last change


class FileOpener(Protocol):
    """Opens event files."""

    def opened(self, key: str) -> AbstractContextManager[OpenFile]:
        """Open a file; see `FileStore.opened`."""
        ...


def plan_for(
    opener: FileOpener,
    file: IndexFile,
    wants: Mapping[Want, Names],
    layouts: Layouts,
    plan: StepPlan | None,
) -> StepPlan:
    """Return the plan for a part of a step: an earlier `plan` if it fits, or else a new one.

    The event file is opened only for records of new lengths.
    """
    if plan is not None and plan.serves(file.entries, wants):
        return plan
    with ExitStack() as stack:
        opened: list[OpenFile] = []

        def learn(_: str, span: Span) -> RecordLayout | None:
            key = file.event_key
            if key is None:
                return None
            with suppress(SMDebugError, MemoryError):
                if not opened:
                    opened.append(stack.enter_context(opener.opened(key)))
                return learn_layout(opened[0], span, key)
            return None

        return StepPlan(file.entries, wants, layouts, learn)


def measure_part(
    opener: FileOpener,
    plan: StepPlan,
    files: Mapping[int, IndexFile],
    ahead: "PartAhead | None" = None,
) -> Mapping[Want, Values]:
    """Return the results of a plan; nothing if the files cannot be read.

    Parameters
    ----------
    files
        The index file of the step, 0 steps back, and the existing ones of the plan's `backs`.
    ahead
        What was measured of these files by this plan; it is used if they have not changed.
    """
    if not plan.nbytes:
        return {}
    with suppress(Exception), ExitStack() as stack:  # a statistic may be a user's
        opened = open_files(opener, files, stack)
        if ahead is not None and ahead.identities != identities_of(opened):
            ahead = None
        prepared = None if ahead is None else ahead.prepared
        return plan.carry_out(opened, prepared) if 0 in opened else {}
    return {}


class PartAhead(NamedTuple):
    """A part of a step that is measured ahead, and the files as they were before it was.

    Attributes
    ----------
    plan
        As for `measure_part`.
    prepared
        The reads of the large tensors.
    identities
        See `identities_of`.
    """

    plan: StepPlan
    prepared: PreparedReads
    identities: Mapping[int, Identity]


def open_files(
    opener: FileOpener, files: Mapping[int, IndexFile], stack: ExitStack
) -> dict[int, tuple[OpenFile, Mapping[str, Entry]]]:
    """Open the event files of index files until a stack is closed."""
    return {
        back: (stack.enter_context(opener.opened(key)), file.entries)
        for back, file in files.items()
        if (key := file.event_key) is not None
    }


def identities_of(opened: Opened) -> dict[int, Identity]:
    """Return what changes with the content of files of the operating system; by steps back."""
    status = {
        back: os.fstat(file.fileno()) for back, (file, _) in opened.items() if has_descriptor(file)
    }
    return {
        back: (each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns)
        for back, each in status.items()
    }


class StepAhead:
    """Measures large tensors of a step ahead, as far as memory and open files permit.

    The other threads begin with `begin`. They end, and the files are closed, with `close`, or when
    this object is released.

    Parameters
    ----------
    opener
        Opens the event files.
    step
        The global step.
    """

    def __init__(self, opener: FileOpener, step: int) -> None:
        self.step = step
        self._opener = opener
        self._parts: dict[str, PartAhead] = {}
        self._calls: list[SweepCall] = []
        self._run: SweepRun | None = None
        self._bytes = self._files = 0
        self._stack = ExitStack()
        self.close = weakref.finalize(self, self._stack.close)

    def add(self, part: str, plan: StepPlan, files: Mapping[int, IndexFile]) -> None:
        """Add a part of the step, if there is room for it; before `begin`.

        Parameters
        ----------
        plan, files
            As for `measure_part`.

        Raises
        ------
        ObjectNotFoundError, StorageUnavailableError
            If a file cannot be opened.
        """
        if self._files + len(files) > AHEAD_FILES:
            return
        with ExitStack() as stack:
            opened = open_files(self._opener, files, stack)
            identities = identities_of(opened)
            if 0 not in identities or len(identities) < len(opened):
                return
            prepared = plan.prepare(opened)
            nbytes = self._bytes + prepared.reads.nbytes
            call = None
            if nbytes <= AHEAD_BYTES:
                call = prepared.reads.prepare({back: file for back, (file, _) in opened.items()})
            if call is None:
                plan.keep(prepared)
                return
            self._bytes, self._files = nbytes, self._files + len(files)
            self._calls.append(call)
            prepared = prepared._replace(call=call)
            self._parts[part] = PartAhead(plan, prepared, identities)
            self._stack.push(stack.pop_all())

    def begin(self) -> bool:
        """Let other threads begin; return whether there is anything to measure."""
        if self._calls:
            run = SweepRun(self._calls)
            self._stack.callback(run.release)  # before the files are closed
            self._run = run
        return bool(self._calls)

    def finish(self) -> Mapping[str, PartAhead]:
        """Measure what is left in this thread too; return the parts."""
        if self._run is not None:
            self._run.finish()
        self.close()
        return self._parts
