"""Round: what the report reads of one step of an XGBoost trial."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.selection import Saved, numbers, saved, view

Floats = NDArray[np.float64]
OBJECTIVE: Final = "objective"
LABELS: Final = "^labels$"
PREDICTIONS: Final = "^predictions$"
METRICS: Final = ("metrics", "losses")  # a hook may fill either
_KINDS: Final = ("weight", "gain", "cover")
_TEXT: Final = 200  # characters of a hyperparameter
# What is larger is no number that anybody learns from: their squares and sums would overflow.
LARGEST: Final = 1e100


@dataclass(frozen=True, slots=True)
class Round:
    """What the workers saved at one step.

    Attributes
    ----------
    metrics
        By ``<set>-<metric>``; the mean of the workers, NaN if one has none.
    importances
        By kind and feature, as shares; of the last worker that saved it.
    labels, predictions
        Of all workers, in pairs; shape ``(rows,)``. Empty if there are none.
    problems
        What could not be used, in sentences.
    """

    step: int
    hyperparameters: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    importances: dict[str, dict[str, float]] = field(default_factory=dict)
    labels: Floats = field(default_factory=lambda: np.empty(0))
    predictions: Floats = field(default_factory=lambda: np.empty(0))
    problems: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the step has nothing that the report is made of."""
        parts = (self.hyperparameters, self.metrics, self.importances, self.problems)
        return not any(parts) and not self.labels.size


def read_round(trial: Any, step: int) -> Round:
    """Return what the report needs of a global step."""
    labels, predictions, problems = _pairs(trial, step)
    return Round(
        step,
        {name: _text(one, step) for name, one in _under(trial, step, "hyperparameters/")},
        _metrics(trial, step),
        _importances(trial, step),
        labels,
        predictions,
        tuple(problems),
    )


def _under(trial: Any, step: int, prefix: str) -> Iterator[tuple[str, Saved]]:
    """Yield what is saved below a prefix, by what stands behind it."""
    for one in saved(trial, step, trial.tensor_names(step=step, regex=f"^{prefix}.")):
        yield one.name.removeprefix(prefix), one


def _text(one: Saved, step: int) -> str:
    array = view(one, step)
    if array is None:
        return ""
    values = array.reshape(-1)[:_TEXT].tolist()
    return str(values[0] if len(values) == 1 else values)[:_TEXT]


def _number(one: Saved, step: int) -> float:
    """Return the only number of a tensor; NaN if it has none, or several."""
    array = numbers(one, step)
    if array is None or array.size != 1:
        return math.nan
    value = float(array.reshape(-1)[0])
    return math.copysign(math.inf, value) if abs(value) > LARGEST else value


def _metrics(trial: Any, step: int) -> dict[str, float]:
    names = {
        name
        for collection in METRICS
        for name in trial.tensor_names(step=step, collection=collection)
        if "-" in name
    }
    found: dict[str, list[float]] = {}
    for one in saved(trial, step, sorted(names)):
        found.setdefault(one.name, []).append(_number(one, step))
    return {name: sum(values) / len(values) for name, values in found.items()}


def _importances(trial: Any, step: int) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for kind in _KINDS:
        members = _under(trial, step, f"feature_importance/{kind}/")
        shares = {name: _number(one, step) for name, one in members}
        found[kind] = {name: share for name, share in shares.items() if math.isfinite(share)}
    return {kind: shares for kind, shares in found.items() if shares}


def _pairs(trial: Any, step: int) -> tuple[Floats, Floats, list[str]]:
    """Return labels and predictions that belong together, and what is wrong with the others."""
    labels = _by_worker(trial, step, LABELS)
    predictions = _by_worker(trial, step, PREDICTIONS)
    pairs: list[tuple[Floats, Floats]] = []
    problems = []
    for worker in sorted({*labels, *predictions}):
        pair = (labels.get(worker, np.empty(0)), predictions.get(worker, np.empty(0)))
        if pair[0].size == pair[1].size:
            pairs.append(pair)
        else:
            counts = f"{pair[0].size} and {pair[1].size}"
            problems.append(
                f"Step {step}, worker {worker}: the numbers of labels and predictions must be the "
                f"same, got {counts}."
            )
    first, second = (_joined(pair[side] for pair in pairs) for side in (0, 1))
    finite = (np.abs(first) <= LARGEST) & (np.abs(second) <= LARGEST)
    if not finite.all():
        left_out = int(np.count_nonzero(~finite))
        problems.append(f"Step {step}: {left_out} rows that are not finite are left out.")
    return first[finite], second[finite], problems


def _by_worker(trial: Any, step: int, regex: str) -> dict[str, Floats]:
    ones = saved(trial, step, trial.tensor_names(step=step, regex=regex))
    arrays = {one.worker: numbers(one, step) for one in ones}
    with np.errstate(over="ignore"):
        return {
            worker: array.astype(np.float64).reshape(-1)
            for worker, array in arrays.items()
            if array is not None
        }


def _joined(arrays: Iterable[Floats]) -> Floats:
    return np.concatenate([np.empty(0), *arrays])
