"""SavedSteps: what the index files of a trial say together, filed by step, name and mode."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

from smdebug.core.index import IndexFile, Layout
from smdebug.core.modes import ModeKeys


class _Series(NamedTuple):
    """Where steps are filed at which the same tensors were saved in the same mode.

    Attributes
    ----------
    layout
        The last one that was looked for.
    lists
        Those of the tensors.
    numbers
        Global steps by the steps of the mode.
    """

    mode: ModeKeys
    layout: Layout | None
    lists: tuple[list[int], ...]
    numbers: dict[int, int]


class SavedSteps:
    """Index files by step and worker; all steps are global steps, in ascending order.

    Attributes
    ----------
    files
        Index files by step and worker.
    steps
        The steps that are known.
    names, names_by_mode
        The steps of each tensor: all, and those saved in a mode.
    mode_steps
        The global step of each step of a mode; of several the smallest.
    """

    def __init__(self) -> None:
        self.files: dict[int, dict[str, IndexFile]] = {}
        self.steps: list[int] = []
        self.names: dict[str, list[int]] = {}
        self.mode_steps: dict[ModeKeys, dict[int, int]] = {}
        self.names_by_mode: dict[ModeKeys, dict[str, list[int]]] = {}
        # Where steps of the same tensors in the same mode are filed.
        self._series: dict[tuple[ModeKeys, tuple[str, ...]], _Series] = {}
        self._last = _Series(ModeKeys.GLOBAL, None, (), {})

    def add(self, found: IndexFile) -> int:
        """File what one worker saved at one step; return how many workers have."""
        step = found.step
        series = self._last
        if found.layout is not series.layout or found.mode is not series.mode:
            series = self._last = self._series_of(found.mode, found.layout)
        if not self.steps or step > self.steps[-1]:
            self.steps.append(step)
            workers = self.files[step] = {found.worker: found}
            for one in series.lists:
                one.append(step)
        else:
            workers = self.files.setdefault(step, {})
            workers[found.worker] = found
            _insert([self.steps], step)
            _insert(series.lists, step)
        if found.mode is not ModeKeys.GLOBAL:
            numbers = series.numbers
            if numbers.setdefault(found.mode_step, step) > step:
                numbers[found.mode_step] = step
        return len(workers)

    def _series_of(self, mode: ModeKeys, layout: Layout) -> _Series:
        """Return where a step belongs."""
        place = (mode, layout.names)
        series = self._series.get(place)
        if series is None:
            of_mode = self.names_by_mode.setdefault(mode, {})
            known = (self.names, of_mode)
            lists = tuple(one.setdefault(name, []) for one in known for name in layout.names)
            numbers = {} if mode is ModeKeys.GLOBAL else self.mode_steps.setdefault(mode, {})
            series = self._series[place] = _Series(mode, layout, lists, numbers)
        return series._replace(layout=layout)


def _insert(series: Sequence[list[int]], step: int) -> None:
    """Insert into sorted lists, once into each; most steps come in order."""
    for steps in series:
        if not steps or steps[-1] < step:
            steps.append(step)
        elif steps[-1] != step and steps[bisect_left(steps, step)] != step:
            insort(steps, step)
