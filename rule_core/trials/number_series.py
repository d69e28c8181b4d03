"""NumberSeries: all numbers of a tensor in one mode, over every resume of a run."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.model.segments import SEGMENT_STEPS
from rule_core.modes import ModeKeys
from rule_core.reading.file_problems import UNREADABLE
from rule_core.reading.source_index import SourceIndex
from rule_core.reading.trial_index import TrialIndex
from rule_core.trials.trial import Trial


class NumberSeries(NamedTuple):
    """The numbers of a tensor in one mode.

    Attributes
    ----------
    steps, values
        The steps as the training counts them, ascending, and a number for each; of several workers,
        those of the first. Where a resumed run repeats steps, the later numbers count.
    """

    name: str
    mode: ModeKeys
    steps: NDArray[np.int64]
    values: NDArray[np.float64]


def number_series(trial: Trial, names: Iterable[str]) -> Iterator[NumberSeries]:
    """Yield the series of the named tensors, one at a time, up to the step that is judged.

    Unlike other queries, it reads the steps of all segments of a resumed run.
    """
    index, horizon = trial.index, trial.horizon
    for name in sorted(names):
        for mode in filter(index.names_by_mode.__contains__, ModeKeys):
            steps_by_name = index.names_by_mode[mode]
            if name not in steps_by_name:
                continue
            if isinstance(index, SourceIndex):
                steps, values = index.numbers(name, mode)
            else:
                steps, values = _saved_numbers(index, name, steps_by_name[name])
            count = len(steps) if horizon is None else int(np.searchsorted(steps, horizon, "right"))
            own = steps[:count] % SEGMENT_STEPS
            later = np.minimum.accumulate(np.append(own[1:], SEGMENT_STEPS)[::-1])[::-1]
            if np.any(stays := own < later):
                yield NumberSeries(name, mode, own[stays], values[:count][stays])


def _saved_numbers(
    index: TrialIndex, name: str, steps: Iterable[int]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the global steps and numbers of a saved tensor, without arrays and damaged values."""
    rows: dict[int, float] = {}
    for step in steps:
        workers = (worker for worker, file in index.files[step].items() if name in file.entries)
        with suppress(*UNREADABLE, TypeError, ValueError):
            array = index.tensors.value(name, step, min(workers))
            rows |= {step: float(array.item())} if array.size == 1 else {}
    return np.array([*rows], np.int64), np.array([*rows.values()], np.float64)
