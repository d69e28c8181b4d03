"""Reads and measures what one worker saved at a step, in one pass over its event file."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from typing import Any, Protocol

from rule_core.exceptions import SMDebugError
from rule_core.format.index_file import IndexFile, Span
from rule_core.format.record_layout import RecordLayout, learn_layout
from rule_core.model.streaming_statistics import Want
from rule_core.reading.step_read_plan import Layouts, Names, StepPlan
from rule_core.storage.base import OpenFile

Values = dict[str, Any]  # by tensor


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
    opener: FileOpener, plan: StepPlan, files: Mapping[int, IndexFile]
) -> Mapping[Want, Values]:
    """Return the results of a plan; nothing if the files cannot be read.

    Parameters
    ----------
    files
        The index file of the step, 0 steps back, and the existing ones of the plan's `backs`.
    """
    if not plan.nbytes:
        return {}
    with suppress(Exception), ExitStack() as stack:  # a statistic may be a user's
        opened = {}
        for back, file in files.items():
            if file.event_key is not None:
                opened[back] = stack.enter_context(opener.opened(file.event_key)), file.entries
        return plan.carry_out(opened) if 0 in opened else {}
    return {}
