"""AllZero: a tensor consists of zeros, entirely or to a given share."""

from typing import Final

import numpy as np

from builtin_rules.statistics.lasting_zeros import (
    EXPERT,
    LastingZeros,
    layer_of,
    workers_without_loss,
)
from builtin_rules.statistics.parameters import Declared, names, percentage
from builtin_rules.statistics.selecting_rule import SelectingRule
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    FROM_REDUCTIONS,
    LITERAL,
    TENSOR_REGEX,
    SavedTensor,
    TensorKey,
    reduction,
    saved_reductions,
    saved_tensor,
    saved_tensors,
    statistics,
    tensor_names,
    view,
)
from smdebug.core.collection import CollectionKeys
from smdebug.rules.extensions import Quantity, ZeroCount

ZEROS: Final = "share of zeros"
_ALL: Final = 100.0
_TRAINED: Final = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)


_ZEROS: Final = ZeroCount()


class AllZero(SelectingRule):
    """Met when ``100 * zeros / elements >= threshold`` for some selected tensor.

    Only exact zeros count; NaN does not. Every worker and every step is judged separately. Empty
    and non-numeric tensors are skipped. If only reductions were saved, a threshold of 100 is judged
    by ``abs_max == 0`` or ``min == max == 0``.

    Unless `threshold` is given or `literal` is set, tensors with one element are skipped, and
    weights and biases that are all zero at their first step: biases, LoRA's B and the last norms of
    residual blocks start at zero. Gradients and outputs of ReLU must then meet the condition at
    five saved steps in a row, and more than three times as long as ever before they came back:
    batches may use only a part of a model. One-dimensional gradients must do so with all others of
    their layer: a bias that the loss does not depend on learns nothing. Gradients of experts are
    left out, because some get no tokens (`RouterCollapse`), and so are those of steps whose losses
    are exactly 0.
    """

    READS = "the selected tensors: values, or the saved reductions abs_max, or min and max."
    collection_names = names(COLLECTION_NAMES)
    tensor_regex = names(TENSOR_REGEX)
    threshold = percentage("The share of zeros from which a tensor is reported.", _ALL)
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(ZEROS, "zeros among the elements (percent)", worse="above"),)
    STATISTIC = _ZEROS

    def _prepare(self) -> None:
        super()._prepare()
        self._zeros = LastingZeros()
        # At the current step: gradients, and those with what else must be zero for long.
        self._gradients: set[str] = set()
        self._lasting: set[str] = set()

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        names = tensor_names(trial, step, self.collection_names, self.tensor_regex)
        strict = set(names) if self.binds() else set()
        gradients = set(tensor_names(trial, step, [CollectionKeys.GRADIENTS], [])) - strict
        self._gradients = gradients.intersection(names)
        outputs = set(tensor_names(trial, step, ["relu_output"], [])) - strict - gradients
        self._lasting = self._gradients.union(outputs.intersection(names))
        trained = set(tensor_names(trial, step, _TRAINED, ["(?i)bias"])) - strict - gradients
        satisfied = workers_without_loss(trial, step) if self._gradients else set()

        first = {
            name for name in trained.intersection(names) if trial.tensor(name).first_step == step
        }
        keys = [
            key
            for key in trial.saved_by(step, names)
            if not (key[0] in self._gradients and (key[1] in satisfied or EXPERT.search(key[0])))
            and not (key[0] in first and _has_only_zeros(saved_tensor(trial, key), step))
        ]
        shares: dict[TensorKey, float] = {}
        reduced: dict[TensorKey, bool] = {}  # whether saved reductions are those of zeros
        counts = statistics(trial, step, keys, _ZEROS)
        for key in keys:
            count = counts.get(key) or _count_other(saved_tensor(trial, key), step)
            if count is None:
                is_zero = self._is_reduced_to_zero(saved_tensor(trial, key), step)
                if is_zero is not None:
                    reduced[key] = is_zero
                if is_zero:
                    shares[key] = _ALL
            elif count[1] > (0 if key[0] in strict else 1):
                shares[key] = 100.0 * count[0] / count[1]
        if not shares and not reduced:
            return self.not_judged("no tensor to judge at this step")
        zero = [key for key, share in shares.items() if share >= self.threshold]
        lasting = {key for key in shares if key[0] in self._lasting}.union(reduced)
        self._zeros.end(lasting.difference(zero))
        met = {key for key in zero if self._is_met(key, step)}
        notes = dict.fromkeys(reduced, FROM_REDUCTIONS)
        return self.measured_all(step, ZEROS, shares, self.threshold, met=met, notes=notes)

    def _is_reduced_to_zero(self, saved: SavedTensor, step: int) -> bool | None:
        """Return whether saved reductions are those of zeros, or None if they do not tell."""
        if self.threshold < _ALL:
            return None
        values = saved_reductions(saved, step)
        extremes = [values.get(key) for key in (("min", False), ("max", False))]
        top = values.get(("max", True))
        if top is None and None in extremes:
            return None
        return top == 0 or extremes == [0, 0]

    def _is_met(self, key: TensorKey, step: int) -> bool:
        """Return whether a tensor of zeros is reported, and record it."""
        name, _ = key
        if name in self._lasting and not self._zeros.add(key, is_zero=True):
            return False
        saved = saved_tensor(self.base_trial, key)
        return not (name in self._gradients and self._is_bias_of_living(saved, step))

    def _is_bias_of_living(self, gradient: SavedTensor, step: int) -> bool:
        """Return whether a gradient has one dimension, and another of its layer is not zero."""
        array = view(gradient, step)
        if array is None or array.ndim > 1:
            return False
        layer = layer_of(gradient.name)
        names = [name for name in self._gradients if layer_of(name) == layer]
        return any(
            saved.worker == gradient.worker and bool(reduction(saved, step, "max", absolute=True))
            for saved in saved_tensors(self.base_trial, step, names)
        )


def _count_other(saved: SavedTensor, step: int) -> tuple[int, int] | None:
    """Return the numbers of zeros and elements of an array without real numbers.

    (0, 0) if they are no numbers at all, None without a value.
    """
    array = view(saved, step)
    if array is None:
        return None
    return (
        (array.size - int(np.count_nonzero(array)), array.size)
        if array.dtype.kind == "c"
        else (0, 0)
    )


def _has_only_zeros(saved: SavedTensor, step: int) -> bool:
    """Return whether all elements of a tensor are zero."""
    top = saved_reductions(saved, step).get(("max", True))
    return (reduction(saved, step, "max", absolute=True) if top is None else top) in {0, None}
