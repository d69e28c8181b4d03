"""Select the tensors that a rule judges at one step, by collection, pattern and worker."""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from smdebug.core.collection import CollectionKeys
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import Reduction
from smdebug.core.tensor import Tensor
from smdebug.exceptions import (
    InvalidWorker,
    SMDebugTypeError,
    SMDebugValueError,
    TensorUnavailableForStep,
)
from smdebug.rules import Rule
from smdebug.rules.extensions import (
    BoolParam,
    NamesParam,
    PatternsParam,
    StreamingStatistic,
    TensorInput,
    WantedMeasure,
)

COLLECTION_NAMES = NamesParam("collection_names", "Collections of the tensors to judge.")
TENSOR_REGEX = PatternsParam(
    "tensor_regex", "Patterns: a tensor is judged if one of them matches in its name."
)
LITERAL = BoolParam(
    "literal", "Judge by the exact documented condition, without refinements.", default=False
)

ANY_NAME: Final = "."
FROM_REDUCTIONS: Final = "Computed from saved reductions."
GRADIENTS: Final = TensorInput("gradients", (CollectionKeys.GRADIENTS,))
# XGBoost's metrics that rise: the documented pattern of the collection leaves out auc and map only.
RISING: Final = r"^[^/]+-(auc|aucpr|map|ndcg|pre)(@\d+)?-?$"
LOSSES: Final = TensorInput("losses", (CollectionKeys.LOSSES,), never=RISING)
WEIGHTS: Final = TensorInput("weights", (CollectionKeys.WEIGHTS,))

# No value at the step, or none of this worker.
_MISSING: Final = (TensorUnavailableForStep, InvalidWorker)

TensorKey = tuple[str, str]  # tensor, worker


class SavedTensor(NamedTuple):
    """A tensor as one worker saved it at the current step."""

    tensor: Tensor
    worker: str

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.tensor.name

    @property
    def key(self) -> TensorKey:
        """The names of the tensor and the worker."""
        return self.tensor.name, self.worker


def tensor_names(
    trial: Any, step: int, collections: Iterable[str], regex: Iterable[str]
) -> list[str]:
    """Return the sorted names of the tensors at `step` that collections or patterns select.

    Unknown collections select nothing.
    """
    return TensorInput("", tuple(collections), tuple(regex)).names(trial, step)


def selection_input(collections: tuple[str, ...], patterns: tuple[str, ...]) -> TensorInput:
    """Return the required input of a rule whose parameters select tensors."""
    return TensorInput("the selected tensors", collections, patterns)


def wanted(tensors: TensorInput, *operations: str, absolute: bool = False) -> list[WantedMeasure]:
    """Return the reductions that a rule measures of tensors."""
    return [WantedMeasure(Reduction(operation, absolute), tensors) for operation in operations]


def any_met(rule: Rule, answers: Collection[bool | None], reason: str) -> bool:
    """Return whether any tensor meets the condition of a rule.

    Parameters
    ----------
    answers
        One answer for each tensor: None if it cannot be judged.
    reason
        Why the step is not judged if no answer is a boolean.
    """
    if all(answer is None for answer in answers):
        return rule.not_judged(reason)
    return any(answers)


def by_role(
    label: str, param: PatternsParam, patterns: tuple[str, ...], excluding: str = ""
) -> TensorInput:
    """Return the input that the patterns of a parameter select.

    The default patterns describe a role, such as outputs of ReLU: they include the collection of
    `param` and exclude names that match `excluding`. Patterns that a user sets are used as they
    are.
    """
    if patterns != param.whole_default:
        return TensorInput(label, (), patterns)
    collections = (param.collection,) if param.collection else ()
    return TensorInput(label, collections, patterns, excluding)


def saved_tensor(trial: Any, key: TensorKey) -> SavedTensor:
    """Return a tensor that a worker saved."""
    name, worker = key
    return SavedTensor(trial.tensor(name), worker)


def saved_tensors(trial: Any, step: int, names: Iterable[str]) -> Iterator[SavedTensor]:
    """Yield the tensors of `names` for each worker that saved them at `step`."""
    for key in trial.saved_by(step, names):
        yield saved_tensor(trial, key)


def tensors_of_mode(
    trial: Any, step: int, names: Iterable[str], mode: ModeKeys
) -> Iterator[SavedTensor]:
    """Return the tensors of `names` for each worker that saved them at a step of a mode."""
    if mode is ModeKeys.GLOBAL:
        return saved_tensors(trial, step, names)
    tensors = map(trial.tensor, names)
    return (SavedTensor(saved, worker) for saved in tensors for worker in saved.workers(step, mode))


def names_in_mode(
    trial: Any, step: int, names: Iterable[str], mode: ModeKeys
) -> tuple[list[str], int, ModeKeys]:
    """Return which tensors were saved at a global step in one of its modes, and how to read them.

    Returns
    -------
    names, step, mode
        The sorted names, and the step and mode to read: those of the mode, or without other modes
        the global step itself, whose values rules share.
    """
    modes = trial.modes_at(step)
    if len(modes) == 1:
        return sorted(names), step, ModeKeys.GLOBAL
    members = trial.tensor_names(step=modes[mode], mode=mode)
    return sorted(set(names).intersection(members)), modes[mode], mode


def mode_of(trial: Any, step: int, names: Iterable[str]) -> Any:
    """Return the mode of a step; of several, the first in which a tensor of `names` was saved."""
    modes = trial.modes_at(step)
    if len(modes) > 1:
        selected = set(names)
        for mode, mode_step in modes.items():
            if not selected.isdisjoint(trial.tensor_names(step=mode_step, mode=mode)):
                return mode
    return next(iter(modes), None)


def modes_by_name(trial: Any, step: int, names: Collection[str]) -> dict[str, Any]:
    """Return the mode of each tensor at a step; of several, the first in which it was saved."""
    modes = trial.modes_at(step)
    by_name = dict.fromkeys(names, next(iter(modes), None))
    if len(modes) > 1:
        for mode, mode_step in reversed(modes.items()):
            members = trial.tensor_names(step=mode_step, mode=mode)
            by_name |= dict.fromkeys(by_name.keys() & members, mode)
    return by_name


def view(saved: SavedTensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> Any:
    """Return the value without a copy, or None if it is missing or damaged (reported).

    Parameters
    ----------
    step
        The step of the mode.
    """
    try:
        return saved.tensor.view(step, mode, saved.worker)
    except _MISSING:
        return None


def numbers(saved: SavedTensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> Any:
    """Return the saved value without a copy if it is non-empty and real, otherwise None."""
    array = view(saved, step, mode)
    return array if array is not None and array.size and array.dtype.kind in "biufV" else None


def only_number(saved: SavedTensor, step: int, mode: ModeKeys = ModeKeys.GLOBAL) -> float | None:
    """Return the saved value if it is a single real number, otherwise None."""
    logged: float | None = saved.tensor.trial.scalar(saved.name, step, mode, saved.worker)
    if logged is not None:
        return logged
    array = numbers(saved, step, mode)
    return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None


def reduction(
    saved: SavedTensor, step: int, operation: str, *, absolute: bool = False
) -> float | None:
    """Return a reduction, or None if the tensor is missing, damaged, empty or non-numeric."""
    try:
        value = saved.tensor.reduction_value(step, operation, worker=saved.worker, abs=absolute)
        return float(value if value.shape == () else value.reshape(-1)[0])
    except (*_MISSING, SMDebugTypeError, SMDebugValueError, IndexError):
        return None


def reductions(
    trial: Any, step: int, keys: Collection[TensorKey], operation: str, *, absolute: bool = False
) -> dict[TensorKey, float]:
    """Return a reduction of each tensor and worker, without those where `reduction` is None."""
    values = _measured(
        trial,
        step,
        keys,
        Reduction(operation, absolute),
        None,
        lambda saved: reduction(saved, step, operation, absolute=absolute),
    )
    return {key: float(value) for key, value in values.items()}


def statistic(
    saved: SavedTensor, step: int, measure: StreamingStatistic, before: int | None = None
) -> Any:
    """Return a streaming statistic of the saved value; None without real numbers.

    `before` is the step of the value to compare with, which must have the same shape and type.
    """
    try:
        return saved.tensor.measure(step, measure, before, saved.worker)
    except (*_MISSING, SMDebugTypeError, SMDebugValueError):
        return None


def statistics(
    trial: Any,
    step: int,
    keys: Collection[TensorKey],
    measure: StreamingStatistic,
    before: int | None = None,
) -> dict[TensorKey, Any]:
    """Return a statistic of each tensor and worker, without those where `statistic` is None."""
    return _measured(
        trial, step, keys, measure, before, lambda saved: statistic(saved, step, measure, before)
    )


def _measured(
    trial: Any,
    step: int,
    keys: Collection[TensorKey],
    measure: StreamingStatistic,
    before: int | None,
    measured_alone: Callable[[SavedTensor], Any],
) -> dict[TensorKey, Any]:
    """Return a statistic of each tensor and worker, measured alone if it was not prefetched."""
    prefetched: dict[str, Mapping[str, Any]] = {}
    for worker, names in _names_by_worker(keys).items():
        prefetched[worker] = trial.prefetched_all(step, worker, names, measure, before)
    values: dict[TensorKey, Any] = {}
    for key in keys:
        name, worker = key
        value = prefetched[worker].get(name)
        if value is None:
            value = measured_alone(saved_tensor(trial, key))
        if value is not None:
            values[key] = value
    return values


def _names_by_worker(keys: Iterable[TensorKey]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, worker in keys:
        names.setdefault(worker, []).append(name)
    return names


def value_shape(saved: SavedTensor, step: int) -> tuple[int, ...] | None:
    """Return the saved shape or that of the saved value; None without (damage is reported)."""
    try:
        return saved.tensor.shape(step, worker=saved.worker)
    except _MISSING:
        return None


def shapes(
    trial: Any, step: int, saved: Mapping[TensorKey, Any]
) -> dict[TensorKey, tuple[int, ...]]:
    """Return the shape of each tensor and worker, without those where `value_shape` is None.

    Parameters
    ----------
    saved
        What `trial.saved_by` returns for the step.
    """
    unsaved = [key for key, entry in saved.items() if entry.shape is None]
    prefetched = {
        worker: trial.prefetched_shapes(step, worker, names)
        for worker, names in _names_by_worker(unsaved).items()
    }
    result: dict[TensorKey, tuple[int, ...]] = {}
    for key, entry in saved.items():
        name, worker = key
        shape = prefetched[worker].get(name) if entry.shape is None else entry.shape
        if shape is None:
            shape = value_shape(saved_tensor(trial, key), step)
        if shape is not None:
            result[key] = shape
    return result


def saved_reductions(saved: SavedTensor, step: int) -> dict[tuple[str, bool], float]:
    """Return the real-valued reductions that the training job saved."""
    try:
        values = saved.tensor.reduction_values(step, worker=saved.worker)
    except _MISSING:
        return {}
    return {
        key: float(value.reshape(-1)[0])
        for key, value in values.items()
        if value.size == 1 and value.dtype.kind in "biufV"
    }


def variances(
    trial: Any,
    step: int,
    saved: Mapping[TensorKey, Any],
    known_shapes: Mapping[TensorKey, tuple[int, ...]],
) -> dict[TensorKey, float]:
    """Return the variance of each tensor and worker.

    Tensors of a single element are left out, as are those whose variance is NaN or where
    `reduction` is None. A saved standard deviation is used as well.

    Parameters
    ----------
    saved, known_shapes
        What `trial.saved_by` and `shapes` return for the step.
    """
    several = [key for key in saved if key not in known_shapes or math.prod(known_shapes[key]) > 1]
    squares: dict[TensorKey, float] = {}
    for key in several:
        if ("std", False) in saved[key].reductions:
            values = saved_reductions(saved_tensor(trial, key), step)
            if ("std", False) in values and ("variance", False) not in values:
                squares[key] = values["std", False] ** 2
    others = [key for key in several if key not in squares]
    spreads = reductions(trial, step, others, "variance") | squares
    return {key: spreads[key] for key in several if not math.isnan(spreads.get(key, math.nan))}
