"""SavedPart: what one worker saved of one mode at a step, for exporting."""

import math
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.exceptions import SMDebugError
from rule_core.format import paths
from rule_core.format.index_file import IndexFile
from rule_core.model.segments import step_in_segment
from rule_core.modes import ModeKeys
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.names import NameTable
from rule_runner.errors import counted


class Omissions:
    """Counts what is not exported, by reason."""

    def __init__(self) -> None:
        self._names: dict[str, Counter[str]] = {}

    def add(self, name: str, reason: str) -> None:
        """Count one value of a tensor."""
        self._names.setdefault(reason, Counter())[name] += 1

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each reason."""
        for reason, counts in sorted(self._names.items()):
            others = f" and {len(counts) - 1} others" if len(counts) > 1 else ""
            values = counted(counts.total(), "value")
            yield f"Left out {values} of {min(counts)!r}{others}: {reason}."


class SavedPart(NamedTuple):
    """What one worker saved of one mode at a global step."""

    trial_index: TrialIndex
    step: int
    part: str
    file: IndexFile
    omissions: Omissions

    @property
    def own_step(self) -> int:
        """The step in its segment."""
        return step_in_segment(self.step)

    @property
    def mode(self) -> ModeKeys:
        """The mode."""
        return self.file.mode

    @property
    def worker(self) -> str:
        """The worker."""
        return paths.worker_of(self.part)

    def time(self) -> float:
        """Return when it was written, in seconds since the epoch; now if that is unknown."""
        written = self.trial_index.tensors.wall_time(self.step, self.part, None)
        for entry in self.file.entries.values():
            if math.isnan(written) and self.file.event_key is not None and entry.raw is not None:
                try:
                    written = self.trial_index.tensors.wall_time(self.step, self.part, entry.raw)
                except SMDebugError:
                    break
        return written if written > 0 else time.time()

    def reductions(self) -> Iterator[tuple[str, str, bool, NDArray[Any]]]:
        """Yield the reductions: tensor, operation, whether of magnitudes, and value."""
        for name, entry in self.file.entries.items():
            for operation, absolute in entry.reductions:
                value = self._value(name, (operation, absolute))
                if value is not None:
                    yield name, operation, absolute, value

    def arrays(self, *, says_omissions: bool = True) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the values, one after another; count those that cannot be read."""
        for name, entry in self.file.entries.items():
            if entry.raw is None:
                if says_omissions:
                    self.omissions.add(name, "its value was not saved, but reductions or a shape")
            elif (value := self._value(name)) is not None:
                yield name, value

    def _value(self, name: str, reduction: tuple[str, bool] | None = None) -> NDArray[Any] | None:
        """Return a value; if it cannot be read, count it and return None."""
        try:
            return self.trial_index.tensors.value(name, self.step, self.part, reduction)
        except SMDebugError:
            self.omissions.add(name, "the file is damaged")
            return None

    def numbers(self) -> dict[str, float]:
        """Return the values of one element, by names that say their mode and worker."""
        numbers: dict[str, float] = {}
        for name, array in self.arrays():
            if array.dtype.kind in "SUO" or array.dtype.kind == "c":
                self.omissions.add(name, "it is text, or a complex number")
            elif array.size != 1:
                self.omissions.add(name, "it has several elements; export it to safetensors")
            else:
                numbers[self.full_name(name)] = float(array.astype(np.float64).reshape(-1)[0])
        return numbers

    def full_name(self, name: str) -> str:
        """Return a name that a reader gives the same mode, and that differs between workers."""
        if self.mode is not ModeKeys.GLOBAL and _TABLE(name).mode is not self.mode:
            name = f"{self.mode.name.lower()}/{name}"
        return name if self.worker == self.trial_index.workers[0] else f"{name}/{self.worker}"


_TABLE = NameTable()


def _order(item: tuple[str, IndexFile]) -> tuple[str, int, str]:
    part, file = item
    return paths.worker_of(part), file.mode.value, part


def saved_parts(index: TrialIndex, omissions: Omissions) -> Iterator[SavedPart]:
    """Yield everything that was saved, in the order of the steps."""
    for step in index.steps:
        for part, file in sorted(index.files[step].items(), key=_order):
            yield SavedPart(index, step, part, file, omissions)
