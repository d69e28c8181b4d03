"""PoorWeightInitialization: the first steps indicate badly chosen initial weights."""

import math
from collections.abc import Iterator
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import numpy as np

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.lasting_zeros import ROUTED
from builtin_rules.statistics.losses.loss_statistics import losses_at
from builtin_rules.statistics.parameters import Declared, count, names, non_negative, positive
from builtin_rules.statistics.previous_values import TrainedParameters, is_learning_step
from builtin_rules.statistics.tensor_selection import (
    GRADIENTS,
    LITERAL,
    LOSSES,
    SavedTensor,
    by_role,
    numbers,
    reduction,
    saved_tensor,
    saved_tensors,
    shapes,
    variances,
)
from builtin_rules.statistics.training_kind import TrainingKind
from smdebug.rules.extensions import PatternsParam, Quantity, TensorInput

RATIO: Final = "variance ratio"
SPREAD: Final = "gradient spread"
LOSS: Final = "recent loss"
INPUTS: Final = PatternsParam(
    "activation_inputs_regex",
    "Patterns: a tensor is an input of an activation function if one of them is in its name.",
    default=".*relu_input",
    also=(r"(?i)re_?lu6?(_?\d+)?(_input|/inputs)",),  # PyTorch, MXNet; Keras
    collection="relu_input",
)
# Why these: docs/decisions/0011-poor-initialisation.md.
NORMALISED_DISTANCE: Final = 0.1  # distance from mean 0 and variance 1 behind a norm layer
CLEAR_FACTOR: Final = 2.0  # times the threshold: variances that are too far apart at a single step
SMALL_SHARE: Final = 0.01  # of `distribution_range`: typical gradients that are small
MATRIX_RANK: Final = 2


class _Layer(NamedTuple):
    """The variance of the inputs of an activation function."""

    variance: float
    name: str


class PoorWeightInitialization(DeclaredRule):
    """Met when one of two checks fails in the first `steps` saved steps of training.

    (a) After sorting the inputs of activation functions by variance, two neighbours differ by more
    than a factor of `threshold`, and have done so since the first of these steps: what moves apart
    later is not due to initial weights. If it is less than twice that factor, it must last for
    `patience` steps (small batches). Inputs with mean 0 and variance 1, to within 0.1, are left
    out, since a norm layer makes them so. Models with parameters that never required a gradient are
    not judged: their weights come from an earlier training. (b) For `patience` saved steps in a
    row, the 5th and 95th percentiles of the elements of a gradient are closer together than
    `distribution_range`, and than that share of the median distance over all gradients; zeros count
    only if all elements are zero, one other element alone has no distance, and one-dimensional
    gradients only if there are no others. Gradients of experts and routers are left out, and
    distances other than 0 count only while their median is below a hundredth of
    `distribution_range`: in transformers whose attention is still even, those of queries and keys
    are thousands of times smaller than others. Losses that never fall are left to
    `LossNotDecreasing`.

    Only saved steps with activation inputs or gradients count; steps of mode EVAL and PREDICT do
    not. Each worker is judged by itself. NaN and infinity are left to `ExplodingTensor`. Tensors
    with one element have no variance. If only reductions were saved, (a) needs the variance or std,
    and (b) cannot be judged. Two models that train against each other are not judged, as their
    layers cannot be compared.

    With `literal`, (a) compares the largest with the smallest variance of all inputs, (b) is met
    immediately if the distance of any gradient is below `distribution_range`, and there is a check
    (c): `patience` steps in a row bring no new minimum of the loss. Losses of several workers are
    averaged, and validation losses are ignored (Keras's ``val_``, XGBoost's sets other than the
    training set). The same holds for (a) if `threshold` is given, for (b) if `distribution_range`
    is, and for (c) if `patience` is. No check waits for more than `steps` steps.
    """

    READS = (
        "the collection relu_input (our hooks fill it by the class of a module or layer), inputs "
        "named after ReLU as PyTorch (ReLU_input_0, conv1.relu_input_0), MXNet (relu0_input_0) and "
        "Keras (re_lu/inputs) do: values, or the saved reduction variance or std; the collection "
        "gradients, and with literal losses: values."
    )
    SAVED = ("gradients",)
    activation_inputs_regex = names(INPUTS)
    threshold = positive(
        "Largest ratio allowed between the variances of activation inputs.",
        10.0,
        "ratio of variances",
    )
    distribution_range = non_negative(
        "Smallest distance allowed between the 5th and the 95th percentile of a gradient.",
        0.001,
        "unit of the gradient",
    )
    patience = count("Number of steps without a lower loss that is too many.", 5, "saved steps")
    steps = non_negative(
        "Number of steps to judge; a fraction is ignored.", 10.0, "saved steps", minimum=1.0
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(RATIO, "ratio of the variances of activation inputs", worse="above", log=True),
        Quantity(SPREAD, "95th - 5th percentile of a gradient", worse="below", log=True),
        Quantity(LOSS, "lowest of the latest losses", worse="above"),
    )
    UNSUITED = MappingProxyType(
        {TrainingKind.ADVERSARIAL: "layers of two models cannot be compared"}
    )

    wants = ()  # only the first steps are judged

    def _prepare(self) -> None:
        self._inputs = by_role("activation inputs", INPUTS, self.activation_inputs_regex)
        self._bound = {
            name: self.binds(name) for name in ("threshold", "distribution_range", "patience")
        }
        losses = LOSSES.collections if self._bound["patience"] else ()
        self._label = "activation inputs or gradients"
        if losses:
            self._label = "activation inputs, gradients or losses"
        collections = (*self._inputs.collections, *GRADIENTS.collections, *losses)
        self.required_inputs = (TensorInput(self._label, collections, self._inputs.patterns),)
        self.steps = int(self.steps)
        self._lasting = min(self.patience, self.steps)
        # The number of judged steps; the losses by name; and for how many steps in a row a worker's
        # gradient has been narrow. Losses and gradients are dropped after the last judged step.
        self._judged = 0
        self._losses: dict[str, list[float]] = {}
        self._narrow: dict[tuple[str, str], int] = {}
        # By worker: the number of first steps with variances too far apart; -1 after any other.
        self._far: dict[str, int] = {}

    def segment_begins(self, segment: int) -> None:
        """Judge no more steps: the weights of a resumed run are not initial ones."""
        del segment
        self._judged = int(self.steps)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the first steps; `step` is a global step."""
        trial = self.base_trial
        if self._judged >= self.steps:
            return self.not_judged(f"the first {self.steps} saved steps are over")
        if not is_learning_step(trial, step):
            return self.not_judged("no learning in this mode")
        inputs = self._inputs.names(trial, step)
        gradients = GRADIENTS.names(trial, step)
        losses = LOSSES.names(trial, step) if self._bound["patience"] else []
        if not (inputs or gradients or losses):
            return self.not_judged(f"no {self._label} at this step")
        reason = self.unsuited(trial)
        if reason and not any(self._bound.values()):
            return self.not_judged(reason)
        self._judged += 1
        fits = not reason
        answers = [
            *self._judge_variances(step, inputs if fits or self._bound["threshold"] else []),
            *self._judge_spreads(
                step, gradients if fits or self._bound["distribution_range"] else []
            ),
            *self._judge_losses(step, losses),
        ]
        if self._judged >= self.steps:
            self._losses.clear()
            self._narrow.clear()
        return any(answers) if answers else self.not_judged("nothing to compare yet")

    def _judge_variances(self, step: int, names: list[str]) -> Iterator[bool]:
        """Yield for each worker whether variances are too far apart: check (a)."""
        is_bound = self._bound["threshold"]
        if not is_bound and TrainedParameters(self.base_trial, step).some_are_frozen():
            return
        layers: dict[str, list[_Layer]] = {}
        trial = self.base_trial
        inputs = trial.saved_by(step, names)
        for key, value in variances(trial, step, inputs, shapes(trial, step, inputs)).items():
            name, worker = key
            if math.isfinite(value) and (
                is_bound or not _is_normalised(saved_tensor(trial, key), step, value)
            ):
                layers.setdefault(worker, []).append(_Layer(value, name))
        for worker, spreads in layers.items():
            if len(spreads) > 1:
                spreads.sort()
                pairs = [(spreads[0], spreads[-1])] if is_bound else [*pairwise(spreads)]
                low, high = max(pairs, key=_ratio)
                ratio = _ratio((low, high))
                far = ratio > self.threshold
                before = self._far.get(worker, 0)
                self._far[worker] = before + 1 if far and before >= 0 else -1
                lasts = self._far[worker] >= (
                    1 if ratio > CLEAR_FACTOR * self.threshold else self._lasting
                )
                met, key = far and (lasts or is_bound), (high.name, worker)
                compared = f"compared with {low.variance:.3g} of {low.name!r}"
                note = f"Variance {high.variance:.3g}, {compared}."
                yield self.record(key, step, RATIO, ratio, self.threshold, met=met, note=note)

    def _judge_spreads(self, step: int, names: list[str]) -> Iterator[bool]:
        """Yield for each gradient whether its elements are too close together: check (b)."""
        is_bound = self._bound["distribution_range"]
        spreads = {
            saved: (array.ndim, spread, _equal(array) if spread == 0 else None)
            for saved in saved_tensors(self.base_trial, step, names)
            if (is_bound or not ROUTED.search(saved.name))
            and (array := numbers(saved, step)) is not None
            and math.isfinite(spread := _spread(array, whole=is_bound))
        }
        flat = all(rank < MATRIX_RANK for rank, *_ in spreads.values())
        judged = {
            saved: (spread, note)
            for saved, (rank, spread, note) in spreads.items()
            if is_bound or flat or rank > 1
        }
        limit, are_small = self.distribution_range, True
        if judged and not is_bound:
            middle = float(np.median([spread for spread, _ in judged.values()]))
            are_small = middle < SMALL_SHARE * limit
            limit *= min(1.0, middle)
        for saved, (spread, note) in judged.items():
            narrow = (spread < limit and are_small) or (spread == 0 and not is_bound)
            met = self._lasts(saved, narrow=narrow)
            yield self.record(saved.key, step, SPREAD, spread, limit, met=met, note=note)

    def _lasts(self, saved: SavedTensor, *, narrow: bool) -> bool:
        """Return whether a gradient has been narrow for long enough."""
        key = saved.key
        self._narrow[key] = self._narrow.get(key, 0) + 1 if narrow else 0
        return narrow and (self._bound["distribution_range"] or self._narrow[key] >= self._lasting)

    def _judge_losses(self, step: int, names: list[str]) -> Iterator[bool]:
        """Yield whether each loss with enough values has no new minimum: check (c) of `literal`."""
        for name in names:
            training = losses_at(self.base_trial, step, [name]).training.values()
            series = self._losses.setdefault(name, [])
            series += training
            if not training or len(series) <= self.patience:
                continue
            lowest, limit = min(series[-self.patience :]), min(series[: -self.patience])
            stands = lowest >= limit
            note = f"None of the last {self.patience} losses is lower." if stands else None
            yield self.measured(step, LOSS, lowest, limit, met=stands, tensor=name, note=note)


def _is_normalised(saved: SavedTensor, step: int, spread: float) -> bool:
    """Return whether a norm layer, and not the initial weights, made the variance what it is."""
    if abs(spread - 1) > NORMALISED_DISTANCE:
        return False
    mean = reduction(saved, step, "mean")
    return mean is None or abs(mean) <= NORMALISED_DISTANCE


def _ratio(pair: tuple[_Layer, _Layer]) -> float:
    """Return the ratio of the second variance to the first; 1 if both are 0."""
    low, high = pair
    if low.variance == 0:
        return math.inf if high.variance > 0 else 1.0
    return high.variance / low.variance


def _spread(array: Any, *, whole: bool) -> float:
    """Return the distance of two percentiles, ignoring zeros unless `whole`; 0 if all are 0.

    Without `whole`, it is NaN for a tensor of one element other than 0.
    """
    flat = array.reshape(-1)
    flat = flat if flat.dtype.kind == "f" else flat.astype(np.float64)
    flat = flat.copy() if whole else flat[flat != 0]
    if not whole and array.size == flat.size == 1:
        return math.nan
    if not flat.size:
        return 0.0
    if np.isnan(flat.min()):
        return math.nan
    return _percentile(flat, 95) - _percentile(flat, 5)


def _equal(array: Any) -> str:
    """Return a sentence on a tensor whose elements do not spread."""
    others = array[array != 0]
    if not others.size:
        return "All elements are 0."
    elements = "elements" if others.size == array.size else "elements other than 0"
    lowest, highest = float(others.min()), float(others.max())
    if lowest == highest:
        return f"All {elements} are {lowest:.3g}."
    return f"At least 90 % of the {elements} are equal."


def _percentile(flat: Any, percent: int) -> float:
    """Return the percentile as numpy does, but many times faster; reorder the elements."""
    index, remainder = divmod(percent * (flat.size - 1), 100)
    flat.partition(index)
    value = float(flat[index])
    return (
        value + (float(flat[index + 1 :].min()) - value) * (remainder / 100) if remainder else value
    )
