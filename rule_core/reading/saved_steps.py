"""SavedSteps: the index files of a trial by step, tensor name and mode."""

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import NamedTuple

from rule_core.format.index_file import IndexFile, Layout
from rule_core.modes import ModeKeys


class _Series(NamedTuple):
    """The lists for steps at which the same tensors were saved in the same mode.

    Attributes
    ----------
    layout
        The last layout looked up.
    lists
        The step lists of the tensors.
    numbers
        Global steps by mode step.
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
        The known steps.
    names, names_by_mode
        The steps of each tensor: in all modes, and by mode.
    mode_steps
        The global step of each mode step; the smallest of several.
    """

    def __init__(self) -> None:
        self.files: dict[int, dict[str, IndexFile]] = {}
        self.steps: list[int] = []
        self.names: dict[str, list[int]] = {}
        self.mode_steps: dict[ModeKeys, dict[int, int]] = {}
        self.names_by_mode: dict[ModeKeys, dict[str, list[int]]] = {}
        # By mode and names of the tensors.
        self._series: dict[tuple[ModeKeys, tuple[str, ...]], _Series] = {}
        self._last = _Series(ModeKeys.GLOBAL, None, (), {})

    def add(self, file: IndexFile) -> int:
        """Add the index file of a worker at a step; return the number of workers of the step."""
        step = file.step
        series = self._last
        if file.layout is not series.layout or file.mode is not series.mode:
            series = self._last = self._series_of(file.mode, file.layout)
        if not self.steps or step > self.steps[-1]:
            self.steps.append(step)
            workers = self.files[step] = {file.worker: file}
            for steps in series.lists:
                steps.append(step)
        else:
            workers = self.files.setdefault(step, {})
            workers[file.worker] = file
            _insert([self.steps], step)
            _insert(series.lists, step)
        if file.mode is not ModeKeys.GLOBAL:
            numbers = series.numbers
            if numbers.setdefault(file.mode_step, step) > step:
                numbers[file.mode_step] = step
        return len(workers)

    def _series_of(self, mode: ModeKeys, layout: Layout) -> _Series:
        """Return the series for the tensors of a step."""
        key = (mode, layout.names)
        series = self._series.get(key)
        if series is None:
            by_mode = self.names_by_mode.setdefault(mode, {})
            groups = (self.names, by_mode)
            lists = tuple(group.setdefault(name, []) for group in groups for name in layout.names)
            numbers = {} if mode is ModeKeys.GLOBAL else self.mode_steps.setdefault(mode, {})
            series = self._series[key] = _Series(mode, layout, lists, numbers)
        return series._replace(layout=layout)


def _insert(series: Sequence[list[int]], step: int) -> None:
    """Insert a step into sorted lists; most steps arrive in order."""
    for steps in series:
        if not steps or steps[-1] < step:
            steps.append(step)
        elif steps[-1] != step and steps[bisect_left(steps, step)] != step:
            insort(steps, step)
