"""Round: the data of one step of an XGBoost trial."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    numbers,
    only_number,
    saved_tensors,
    view,
)
from smdebug.rules.extensions import TensorInput

Floats = NDArray[np.float64]
OBJECTIVE: Final = "objective"
LABELS: Final = "^labels$"
PREDICTIONS: Final = "^predictions$"
METRICS: Final = ("metrics", "losses")  # a hook may fill either
# Unlike labels and predictions, these are specific to XGBoost.
OF_XGBOOST: Final = TensorInput(
    "metrics, importances, trees or hyperparameters of XGBoost",
    patterns=(
        "^feature_importance/",
        "^(average_shap|full_shap|hyperparameters|trees)/",
        r"^[A-Za-z]\w*-[^/]+$",  # <set>-<metric>
    ),
)
_KINDS: Final = ("weight", "gain", "cover")
MAX_TEXT: Final = 200  # characters of a hyperparameter
# Sums and squares of larger values would overflow.
LARGEST: Final = 1e100


@dataclass(frozen=True, slots=True)
class Round:
    """The data that the workers saved at one step.

    Attributes
    ----------
    metrics
        Mean over the workers by ``<set>-<metric>``; NaN if a worker has no value.
    importances
        Shares by kind and feature, from the last worker that saved them.
    labels, predictions
        Pairs from all workers; shape ``(rows,)``, possibly empty.
    problems
        Data that could not be used, one sentence each.
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
        """Whether the step has no data for the report."""
        parts = (self.hyperparameters, self.metrics, self.importances, self.problems)
        return not any(parts) and not self.labels.size


def read_round(trial: Any, step: int) -> Round:
    """Return the data of a global step."""
    labels, predictions, problems = _pairs(trial, step)
    return Round(
        step,
        {name: _text(saved, step) for name, saved in _under(trial, step, "hyperparameters/")},
        _metrics(trial, step),
        _importances(trial, step),
        labels,
        predictions,
        tuple(problems),
    )


def _under(trial: Any, step: int, prefix: str) -> Iterator[tuple[str, SavedTensor]]:
    """Yield the tensors below a prefix, with their names after it."""
    for saved in saved_tensors(trial, step, trial.tensor_names(step=step, regex=f"^{prefix}.")):
        yield saved.name.removeprefix(prefix), saved


def _text(saved: SavedTensor, step: int) -> str:
    array = view(saved, step)
    if array is None:
        return ""
    values = array.reshape(-1)[:MAX_TEXT].tolist()
    return str(values[0] if len(values) == 1 else values)[:MAX_TEXT]


def _number(saved: SavedTensor, step: int) -> float:
    """Return the only number of a tensor; NaN if it has none or several."""
    value = only_number(saved, step)
    if value is None:
        return math.nan
    return math.copysign(math.inf, value) if abs(value) > LARGEST else value


def _metrics(trial: Any, step: int) -> dict[str, float]:
    names = {
        name
        for collection in METRICS
        for name in trial.tensor_names(step=step, collection=collection)
        if "-" in name
    }
    by_name: dict[str, list[float]] = {}
    for saved in saved_tensors(trial, step, sorted(names)):
        by_name.setdefault(saved.name, []).append(_number(saved, step))
    return {name: sum(values) / len(values) for name, values in by_name.items()}


def _importances(trial: Any, step: int) -> dict[str, dict[str, float]]:
    by_kind: dict[str, dict[str, float]] = {}
    for kind in _KINDS:
        members = _under(trial, step, f"feature_importance/{kind}/")
        shares = {name: _number(saved, step) for name, saved in members}
        by_kind[kind] = {name: share for name, share in shares.items() if math.isfinite(share)}
    return {kind: shares for kind, shares in by_kind.items() if shares}


def _pairs(trial: Any, step: int) -> tuple[Floats, Floats, list[str]]:
    """Return matching labels and predictions, and problems with others."""
    labels = _by_worker(trial, step, LABELS)
    predictions = _by_worker(trial, step, PREDICTIONS)
    pairs: list[tuple[Floats, Floats]] = []
    problems = []
    for worker in sorted({*labels, *predictions}):
        pair = (labels.get(worker, np.empty(0)), predictions.get(worker, np.empty(0)))
        if pair[0].size == pair[1].size:
            pairs.append(pair)
        else:
            problems.append(
                f"Step {step}, worker {worker}: labels and predictions must be equal in number, "
                f"got {pair[0].size} and {pair[1].size}."
            )
    first, second = (
        np.concatenate([np.empty(0), *(pair[side] for pair in pairs)]) for side in (0, 1)
    )
    finite = (np.abs(first) <= LARGEST) & (np.abs(second) <= LARGEST)
    if not finite.all():
        left_out = int(np.count_nonzero(~finite))
        problems.append(f"Step {step}: {left_out} non-finite rows are left out.")
    return first[finite], second[finite], problems


def _by_worker(trial: Any, step: int, regex: str) -> dict[str, Floats]:
    tensors = saved_tensors(trial, step, trial.tensor_names(step=step, regex=regex))
    arrays = {saved.worker: numbers(saved, step) for saved in tensors}
    with np.errstate(over="ignore"):
        return {
            worker: array.astype(np.float64).reshape(-1)
            for worker, array in arrays.items()
            if array is not None
        }
