"""Reads and measures what one worker saved at a step, in one pass over its event file."""

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, NamedTuple, Protocol

from rule_core.exceptions import SMDebugError
from rule_core.format.index_file import Entry, IndexFile, Span
from rule_core.format.record_layout import RecordLayout, learn_layout
from rule_core.model.streaming_statistics import Want
from rule_core.reading.step_read_plan import Layouts, Names, Opened, PreparedReads, StepPlan
from rule_core.storage.base import OpenFile, has_descriptor

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
