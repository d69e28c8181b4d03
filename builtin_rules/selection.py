"""Which tensors a built-in rule looks at, at one step: by collection, by pattern, per worker."""

import math
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from smdebug.core.measures import Measure
from smdebug.core.modes import ModeKeys
from smdebug.core.reductions import Reduction
from smdebug.core.tensor import Tensor
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError, TensorUnavailableForStep
from smdebug.rules.params import BoolParam, NamesParam, PatternsParam

COLLECTION_NAMES = NamesParam("collection_names", "Collections whose tensors are judged.")
TENSOR_REGEX = PatternsParam(
    "tensor_regex", "Patterns: a tensor is judged if one of them is found in its name."
)
LITERAL = BoolParam(
    "literal",
    "Judge by the documented sentence to the letter, without the refinements.",
    default=False,
)


Series = tuple[str, str]  # tensor, worker


class Saved(NamedTuple):
    """What one worker saved of a tensor at the step in hand."""

    tensor: Tensor
    worker: str

    @property
    def name(self) -> str:
        """The tensor's name."""
        return self.tensor.name


def named(trial: Any, step: int, collections: Iterable[str], regex: Iterable[str]) -> list[str]:
    """Return the names of the tensors at `step` that a collection or a pattern selects, sorted.

    A collection that the trial does not have selects nothing.
    """
    found = [trial.tensor_names(step=step, collection=one) for one in collections]
    patterns = list(regex)
    if patterns:
        found.append(trial.tensor_names(step=step, regex=patterns))
    return found[0] if len(found) == 1 else sorted(set().union(*found))


def by_role(trial: Any, step: int, param: PatternsParam, patterns: tuple[str, ...]) -> list[str]:
    """Return the names at `step` that the patterns of a parameter select, sorted.

    The default patterns stand for a role, such as outputs of ReLU: the collection that `param`
    names for it belongs to them. Patterns of the user's stand for themselves.
    """
    standard = param.collection and patterns == param.whole_default
    return named(trial, step, [param.collection] if standard else [], patterns)


def no_selector(rule: str) -> SMDebugValueError:
    """Return the error of a rule that was told neither collections nor patterns."""
    msg = (
        f"Rule {rule!r} needs parameter 'collection_names' or 'tensor_regex', "
        "and neither was given."
    )
    return SMDebugValueError(msg)


def trains(trial: Any, step: int) -> bool:
    """Say whether `step` is one of training: of mode TRAIN, or any where no step so far is."""
    return trial.mode(step) is ModeKeys.TRAIN or ModeKeys.TRAIN not in trial.modes()


def saved(trial: Any, step: int, names: Iterable[str]) -> Iterator[Saved]:
    """Yield each tensor of `names` with each worker that saved it at `step`."""
    for name, worker in trial.saved_by(step, names):
        yield Saved(trial.tensor(name), worker)


def begins(one: Saved, step: int) -> bool:
    """Say whether `step` is the first one at which anything of the tensor was saved."""
    return one.tensor.first_step == step


def view(one: Saved, step: int) -> Any:
    """Return the saved value in place, or None: not saved, or damaged (which is reported)."""
    try:
        return one.tensor.view(step, worker=one.worker)
    except TensorUnavailableForStep:
        return None


def numbers(one: Saved, step: int) -> Any:
    """Return the saved value in place if it holds real numbers, at least one; otherwise None."""
    array = view(one, step)
    return array if array is not None and array.size and array.dtype.kind in "biufV" else None


def reduction(one: Saved, step: int, operation: str, *, absolute: bool = False) -> float | None:
    """Return a reduction, or None where there is none: not saved, damaged, empty, no numbers."""
    try:
        value = one.tensor.reduction_value(step, operation, worker=one.worker, abs=absolute)
        return float(value if value.shape == () else value.reshape(-1)[0])
    except (TensorUnavailableForStep, SMDebugTypeError, SMDebugValueError, IndexError):
        return None


def reductions(
    trial: Any, step: int, names: Collection[str], operation: str, *, absolute: bool = False
) -> dict[Series, float]:
    """Return a reduction of each tensor of `names` and worker that has it; see `reduction`."""
    found: dict[Series, float] = {}
    pairs = trial.saved_by(step, names)
    wanted = Reduction(operation, absolute)
    foreseen = {
        worker: trial.foreseen_all(step, worker, names, wanted)
        for worker in {two for _, two in pairs}
    }
    for one in pairs:
        name, worker = one
        value = foreseen[worker].get(name)
        if value is None:
            saved_there = Saved(trial.tensor(name), worker)
            value = reduction(saved_there, step, operation, absolute=absolute)
        if value is not None:
            found[one] = float(value)
    return found


def told(one: Saved, step: int, measure: Measure, before: int | None = None) -> Any:
    """Return what a measure tells of real numbers, at least one; None where there are none.

    `before` is the step of the value that it is compared with, which must be of the same shape and
    type.
    """
    try:
        return one.tensor.measure(step, measure, before, one.worker)
    except (TensorUnavailableForStep, SMDebugTypeError, SMDebugValueError):
        return None


def value_shape(one: Saved, step: int) -> tuple[int, ...] | None:
    """Return the shape of the saved value, or None: not saved, or damaged (which is reported)."""
    trial = one.tensor.trial
    try:
        return trial.shape(one.name, trial.find(one.name, step, ModeKeys.GLOBAL, one.worker))
    except TensorUnavailableForStep:
        return None


def saved_reductions(one: Saved, step: int) -> dict[tuple[str, bool], float]:
    """Return the reductions that the training job saved, without what is no real number."""
    try:
        values = one.tensor.reduction_values(step, worker=one.worker)
    except TensorUnavailableForStep:
        return {}
    return {
        key: float(value.reshape(-1)[0])
        for key, value in values.items()
        if value.size == 1 and value.dtype.kind in "biufV"
    }


def variance(one: Saved, step: int) -> float | None:
    """Return the variance, or None where there is none: NaN, one element, or as in `reduction`.

    A saved standard deviation will do.
    """
    try:
        if math.prod(one.tensor.shape(step, worker=one.worker)) < 2:  # noqa: PLR2004 - one number has no spread
            return None
    except TensorUnavailableForStep:  # only reductions were saved, without a shape
        pass
    known = saved_reductions(one, step)
    deviation = known.get(("std", False))
    if deviation is None or ("variance", False) in known:
        value = reduction(one, step, "variance")
    else:
        value = deviation**2
    return None if value is None or math.isnan(value) else value
