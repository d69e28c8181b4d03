"""StepAhead: the next step, which other threads measure while rules judge this one."""

import weakref
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from rule_core.format.index_file import IndexFile
from rule_core.kernels.sweep import SweepCall, SweepRun
from rule_core.reading.measuring.part_reads import (
    FileOpener,
    PartAhead,
    identities_of,
    open_files,
)
from rule_core.reading.step_read_plan import StepPlan

AHEAD_BYTES: Final = 16 << 20  # of memory to read into, and of results
AHEAD_FILES: Final = 8  # open at once; an evaluation may have 32


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
