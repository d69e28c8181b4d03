"""NormGrowth: a parameter has grown far beyond its initial size and goes on growing."""

import math
from collections import deque
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count, non_negative, positive
from builtin_rules.statistics.previous_values import PARAMETERS, is_learning_step, parameter_names
from builtin_rules.statistics.tensor_selection import (
    SavedTensor,
    any_met,
    reduction,
    saved_tensors,
    value_shape,
    wanted,
)
from smdebug.core.collection import CollectionKeys
from smdebug.rules.extensions import Quantity, TensorInput

SIZE: Final = "root mean square"
# Smaller tensors, such as the weights of a regression, take the size that their data need.
MIN_ELEMENTS: Final = 64
MATRIX_RANK: Final = 2
_JUDGED: Final = TensorInput("weights", (CollectionKeys.WEIGHTS, PARAMETERS))


class NormGrowth(DeclaredRule):
    """Met when ``RMS > max(factor * first RMS, floor)`` and RMS rose `patience` times in a row.

    RMS is the root mean square of a weight's elements, by its values or by the saved reduction l2
    and the shape. The first one is that of the first saved step of training, and rises are from one
    saved step to the next. A weight that starts at zero (LoRA's B) is judged by `floor` alone.

    Vectors (biases, scales of norm layers) and weights with fewer than 64 elements are not judged:
    they take the size that the data need. Each worker is judged by itself. Steps of mode EVAL and
    PREDICT are skipped, and so are NaN and infinity, which `ExplodingTensor` reports.
    """

    READS = "the collections weights and parameters: values, or the saved reduction l2 and shapes."
    factor = positive("How many times its first size a weight may have.", 10.0, "ratio")
    floor = non_negative("Root mean square up to which a weight may grow freely.", 0.5, "weight")
    patience = count("Number of rises in a row that count as growing.", 3, "saved steps")
    QUANTITIES = (Quantity(SIZE, "root mean square of the weight", worse="above", log=True),)

    required_inputs = (_JUDGED,)
    wants = wanted(_JUDGED, "l2")

    def _prepare(self) -> None:
        # By weight and worker: the first size, and the latest ones.
        self._first: dict[tuple[str, str], float] = {}
        self._latest: dict[tuple[str, str], deque[float]] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the weights of global step `step`."""
        trial = self.base_trial
        if not is_learning_step(trial, step):
            return self.not_judged("weights do not change in this mode")
        names = parameter_names(trial, step, _JUDGED.collections)
        if not names:
            return self.not_judged("no weights at this step")
        answers = [self._judge(saved, step) for saved in saved_tensors(trial, step, names)]
        return any_met(self, answers, "no matrix among the weights, or no size of one")

    def _judge(self, saved: SavedTensor, step: int) -> bool | None:
        size = _root_mean_square(saved, step)
        if size is None:
            return None
        key = saved.key
        first = self._first.setdefault(key, size)
        latest = self._latest.setdefault(key, deque(maxlen=self.patience + 1))
        latest.append(size)
        limit = max(self.factor * first, self.floor)
        sizes = [*latest]
        rises = len(sizes) > self.patience and sizes == sorted(set(sizes))
        met = size > limit and rises
        note = f"It started at {first:.3g}." if met else None
        return self.record(key, step, SIZE, size, limit, met=met, note=note)


def _root_mean_square(saved: SavedTensor, step: int) -> float | None:
    """Return the size of a matrix's elements, or None if it is unknown, not finite or too small."""
    shape = value_shape(saved, step) or ()
    if sum(length > 1 for length in shape) < MATRIX_RANK or math.prod(shape) < MIN_ELEMENTS:
        return None
    norm = reduction(saved, step, "l2")
    if norm is None or not math.isfinite(norm):
        return None
    return norm / math.sqrt(math.prod(shape))
