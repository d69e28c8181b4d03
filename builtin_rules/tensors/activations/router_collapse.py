"""RouterCollapse: a mixture of experts sends almost all tokens to few of them."""

from typing import Final

import numpy as np

from builtin_rules.statistics.parameters import names, share
from builtin_rules.statistics.sustained import (
    SustainedRule,
    TensorState,
    finite_array,
    steps_in_a_row,
)
from builtin_rules.statistics.tensor_selection import SavedTensor
from smdebug.rules.extensions import PatternsParam, Quantity

ENTROPY: Final = "entropy of the loads"
LOADS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor holds loads or probabilities of experts if one matches in its name.",
    default=r"^router/.*load$",
    also=(
        r"(?i)(router|routing|gate|gating)_?(prob(abilitie)?s?|weights|scores|logits)(_output_0)?$",
    ),
)
_MIN_EXPERTS: Final = 2  # experts


class RouterCollapse(SustainedRule):
    """Met when the entropy of the experts' loads is below `threshold` for `patience` saved steps.

    The entropy is divided by ``ln(experts)``: 1 means equal loads, 0 a single expert. A
    one-dimensional tensor holds the load of each expert. Of others, the last axis holds the
    probabilities of a token, whose mean over the tokens is the load; values that are negative or do
    not add up to 1 are logits, to which softmax is applied first. An entropy equal to `threshold`
    does not meet the condition. Only training steps count; each tensor and worker is judged
    separately. Tensors with NaN or infinity, of a single expert, or without load are not judged.
    """

    TENSORS = ("loads of experts", LOADS)
    READS = "the loads (router/<module>/load) or router probabilities: values."
    threshold = share("Smallest accepted entropy, as a share of ln(experts).", 0.5, "share")
    patience = steps_in_a_row(10)
    tensor_regex = names(LOADS)
    QUANTITIES = (Quantity(ENTROPY, "entropy of the loads / ln(experts)", worse="below"),)

    def _measure(self, saved: SavedTensor, step: int) -> TensorState | None:
        array = finite_array(saved, step)
        if array is None or not array.ndim or array.shape[-1] < _MIN_EXPERTS:
            return None
        loads = _loads(array)
        if loads is None:
            return None
        entropy = max(0.0, -float(np.sum(loads * np.log(np.where(loads > 0, loads, 1.0)))))
        entropy /= float(np.log(loads.size))
        largest = int(loads.argmax())
        note = f"Expert {largest} of {loads.size} gets {loads[largest]:.1%} of the tokens."
        return TensorState(entropy, entropy < self.threshold, note)


def _loads(array: "np.ndarray") -> "np.ndarray | None":
    """Return the share of each expert, or None without any load."""
    if array.ndim > 1:
        rows = array.reshape(-1, array.shape[-1])
        if rows.min() < 0 or not np.allclose(rows.sum(axis=1), 1.0, atol=1e-2):
            rows = np.exp(rows - rows.max(axis=1, keepdims=True))
            rows /= rows.sum(axis=1, keepdims=True)
        array = rows.mean(axis=0)
    total = array.sum()
    return array / total if total > 0 and array.min() >= 0 else None
