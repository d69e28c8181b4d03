"""AttentionCollapse: most heads of an attention layer look at a single key."""

import re
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
from builtin_rules.tensors.activations.attention import PROBABILITIES, entropies, probabilities
from smdebug.rules.extensions import Quantity, TensorInput

ENTROPY: Final = "median entropy of the heads"
SAVED: Final = r"^attention/.*entropy$"
COLLAPSED_SHARE: Final = 0.5  # share of the heads


class AttentionCollapse(SustainedRule):
    """Met when over half of a layer's heads have entropy below `threshold` for `patience` steps.

    The entropy of a head is the mean over the queries of entropy / ln(number of visible keys): 1
    means equal attention, 0 a single key. The hook saves it as `attention/<module>/entropy`; from
    attention probabilities ``(batch, heads, queries, keys)`` it is computed, and arrays with fewer
    dimensions have one head. `patience` counts saved steps. An entropy equal to `threshold`, or
    exactly half of the heads, does not meet the condition. Only training steps count; each tensor
    and worker is judged separately. Tensors with NaN or infinity, and arrays whose rows do not add
    up to 1, are not judged.
    """

    TENSORS = ("attention", PROBABILITIES)
    READS = "the entropies (attention/<module>/entropy) or attention probabilities: values."
    threshold = share("Smallest accepted entropy, a share of ln(keys).", 0.05, "share")
    patience = steps_in_a_row(3)
    tensor_regex = names(PROBABILITIES)
    QUANTITIES = (Quantity(ENTROPY, "entropy / ln(visible keys), median head", worse="below"),)

    def _prepare(self) -> None:
        super()._prepare()
        patterns = (SAVED, *self.tensor_regex)
        self.required_inputs = (TensorInput("attention", patterns=patterns),)

    def _measure(self, saved: SavedTensor, step: int) -> TensorState | None:
        if re.search(SAVED, saved.name):
            heads = finite_array(saved, step)
        else:
            array = probabilities(saved, step)
            heads = None if array is None else entropies(array)
        if heads is None or not np.isfinite(heads).all():
            return None
        heads = heads.reshape(-1)
        low = int(np.count_nonzero(heads < self.threshold))
        note = f"{low} of {heads.size} heads are below {self.threshold:g}."
        is_bad = low > COLLAPSED_SHARE * heads.size
        return TensorState(float(np.median(heads)), is_bad, note)
