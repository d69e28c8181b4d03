"""TrialCurves: the curves of one trial, read step by step as it grows."""

import enum
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rule_core.clock import Clock
from rule_core.model.collection import SCALAR_COLLECTIONS, CollectionKeys
from rule_core.model.segments import step_in_segment
from rule_core.reading.file_problems import UNREADABLE
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.trial_index import TrialIndex
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_runner.loading.trials import open_trial, reject_parent
from rule_runner.service.curves.points import CurveItem, Points
from rule_runner.service.curves.reader import CurveReader

CURVES_KEPT: Final = 40  # of one trial
BYTES_READ: Final = 1 << 16  # larger arrays are no curves


class CurveKind(enum.StrEnum):
    """What a curve shows; curves of one kind share a chart."""

    LOSS = "loss"
    METRIC = "metric"
    LEARNING_RATE = "learning_rate"
    NORM = "norm"
    UTILISATION = "utilisation"
    SCALAR = "scalar"


# The curves of the first kinds are kept if there are too many.
ORDER: Final = tuple(CurveKind)
_KINDS: Final = {
    CollectionKeys.LOSSES: CurveKind.LOSS,
    CollectionKeys.LEARNING_RATES: CurveKind.LEARNING_RATE,
    CollectionKeys.GRADIENT_NORMS: CurveKind.NORM,
    CollectionKeys.METRICS: CurveKind.METRIC,
}
_UTILISATION: Final = re.compile(
    r"util(i[sz]ation)?\b|(gpu|cpu|memory|disk|network)[_ /.-]", re.IGNORECASE
)


class TrialCurves(CurveReader):
    """The scalars of a trial: those in collections of scalars, or all of a run in other formats.

    Parameters
    ----------
    path
        The trial.
    clock
        Bounds the reading.

    Attributes
    ----------
    points
        By name of the curve, in the order of their kinds.
    kinds
        By name of the curve.
    last_step
        The last step that was read; -1 before the first.
    left_out
        The number of curves beyond `CURVES_KEPT`.
    complete
        Whether everything that was saved at the last look has been read.

    Raises
    ------
    TrialError
        If there is no trial.
    """

    last_step = -1
    left_out = 0

    def __init__(self, path: str, clock: Clock, sources: SourceOptions = DEFAULT) -> None:
        self.points: dict[str, Points] = {}
        self.kinds: dict[str, CurveKind] = {}
        super().__init__(clock)
        self._trial = open_trial(path, sources=sources, patience=self._waits)
        self._read_step = -1  # global; of this step and those before everything was read
        self._named = -1

    def items(self) -> Iterator[CurveItem]:
        """Yield the curves in the order of their kinds."""
        for name, points in self.points.items():
            kind = self.kinds[name]
            yield CurveItem(name, kind, "%" if kind is CurveKind.UTILISATION else "", points)

    @property
    def _index(self) -> TrialIndex:
        return self._trial.index

    def read(self, seconds: float, *, ended: bool = False) -> None:
        """Read new data for some seconds; the next call goes on.

        Parameters
        ----------
        ended
            Whether to read the last steps although other workers or values of them may follow.

        Raises
        ------
        TrialError
            If the trial is gone.
        """
        self._deadline = self._clock.monotonic() + seconds
        if self.complete or self._looked_at == -math.inf:
            self._look(self._trial, is_remote=self._index.is_remote)
        self.complete = False
        for step in self._new_steps(ended=ended):
            if self._clock.monotonic() >= self._deadline:
                return
            self._read(step)
        self.complete = True

    def _refresh(self) -> None:
        """Look for new files, and choose the curves among new names."""
        ended = self._index.has_ended()
        self._index.refresh(whole=True, ended=ended)
        self._ended = ended
        if not (self._index.steps or self._index.workers or ended):
            reject_parent(self._trial)
        if len(self._index.names) != self._named:
            self._named = len(self._index.names)
            self._choose()

    def _choose(self) -> None:
        """Choose the curves among the names; those that are read already stay."""
        kinds = dict(_kinds(self._index))
        names = sorted(kinds, key=lambda name: (ORDER.index(kinds[name]), name))
        chosen = [*self.kinds, *(name for name in names if name not in self.kinds)]
        self.left_out = max(len(chosen) - CURVES_KEPT, 0)
        for name in chosen[:CURVES_KEPT]:
            self.kinds.setdefault(name, kinds.get(name, CurveKind.SCALAR))
            self.points.setdefault(name, Points())

    def _new_steps(self, *, ended: bool) -> Iterable[int]:
        steps = self._index.steps
        new = steps[bisect_right(steps, self._read_step) :]
        return new if ended or self._ended else self._index.settled(new)

    def _read(self, step: int) -> None:
        """Read all curves at a global step."""
        files = self._index.files.get(step, {})
        own = step_in_segment(step)
        ordered = sorted(files)
        for name, points in self.points.items():
            worker = next((worker for worker in ordered if name in files[worker].entries), None)
            span = None if worker is None else files[worker].entries[name].raw
            if worker is None or span is None or span.length > BYTES_READ:
                continue
            value = self._value(name, step, worker)
            if value is not None:
                points.add(own, value)
        self._read_step, self.last_step = step, own

    def _value(self, name: str, step: int, worker: str) -> float | None:
        """Return a value; None if it is damaged, or no number."""
        try:
            return _number(self._index.tensors.value(name, step, worker))
        except UNREADABLE:
            return None


def _number(array: NDArray[np.generic]) -> float | None:
    """Return a number, or the mean of an array; None of anything else."""
    if not array.size or array.dtype.kind in "SUOmM":
        return None
    if array.size == 1:
        return float(array.item())
    with np.errstate(all="ignore"):
        return float(np.mean(array.astype(np.float64)))


def _kinds(index: TrialIndex) -> Iterator[tuple[str, CurveKind]]:
    """Yield the names of curves and their kinds."""
    collections = {
        name: index.collections[name].members(index.names)
        for name in SCALAR_COLLECTIONS & index.collections.keys()
    }
    members = {name: key for key, names in collections.items() for name in names}
    names = index.names if isinstance(index, SourceIndex) else members
    for name in names:
        yield name, _kind(name, members.get(name, ""))


def _kind(name: str, collection: str) -> CurveKind:
    if collection in {"", CollectionKeys.METRICS} and _UTILISATION.search(name):
        return CurveKind.UTILISATION
    return _KINDS.get(collection, CurveKind.SCALAR)
