"""VanishingGradient: the mean magnitude of a gradient fell below a threshold."""

import math
import re
from collections.abc import Collection, Mapping
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.lasting_zeros import (
    IDLE,
    LASTING_VALUES,
    LastingZeros,
    is_routed,
    layer_of,
    workers_without_loss,
)
from builtin_rules.statistics.parameters import Declared, non_negative
from builtin_rules.statistics.previous_values import has_fallen
from builtin_rules.statistics.series.recoveries import Recoveries
from builtin_rules.statistics.tensor_selection import (
    GRADIENTS,
    LITERAL,
    LOSSES,
    TensorKey,
    reductions,
    saved_tensor,
    saved_tensors,
    value_shape,
    wanted,
)
from smdebug.rules.extensions import Quantity

MEAN: Final = "mean |gradient|"
ZERO: Final = "Exactly 0: no gradient reaches the parameter."

MATRIX_RANK: Final = 2
# Gradients between this share of the threshold and the threshold must stay there.
CLOSE_SHARE: Final = 0.5
# The same for queries and keys at the first saved steps, where those of healthy transformers of
# little width are that small.
CLOSE_AT_FIRST: Final = 0.1
_ATTENTION: Final = re.compile(
    r"(?i)(?<![a-z])(query|key|([qk]|in|qkv)_?proj|to_(q|k|qk|qkv)|w[qk]|qkv|c_attn)(?![a-z])"
)
# If all gradients are small, none has vanished on the way from layer to layer.
SHARE_OF_LARGEST: Final = 1e-3
SOLVED_SHARE: Final = 0.995  # of the first loss, by which that of a solved task has fallen
SOLVED: Final = "gradients are small because the task is solved"
RECOVERY_ROWS: Final = 20  # rows above the threshold
FROM_START: Final = 10  # rows that tell that all gradients are small from the start


class VanishingGradient(DeclaredRule):
    """Met when ``mean(|g|) < threshold`` for some gradient `g` of the gradients collection.

    Gradients with two or more dimensions are judged one by one. One-dimensional gradients (biases,
    norm layers) are tiny even in healthy networks: they count only if all gradients of their layer
    are below the threshold, or if the trial has no others.

    A mean between half the threshold and the threshold must have stayed below the threshold for
    five saved steps in a row; at the first five saved steps, one of attention's queries and keys
    between a tenth and the threshold must. So must a mean of exactly 0, and more than three times
    as long as ever before it came back: batches may use only a part of a model, and factors that
    start at zero (LoRA) wait for each other. The note then says that no gradient reaches it.

    A mean must also be less than a thousandth of the largest one of its worker at the step, if
    there are others: if all gradients are small, the training has converged. All may be small if
    they were so at all saved steps, at least ten, and no loss has fallen by a tenth. Means of 0 are
    not judged at steps whose losses are exactly 0, because nothing is left to learn there. Nor are
    others once a loss has fallen to a two-hundredth of its first value: the task is solved. Those
    of experts and routers are not judged: `RouterCollapse` does that. With `literal`, or if
    `threshold` is given, each gradient and each step is judged on its own.

    Every worker is judged separately. A NaN mean never meets the condition; `ExplodingTensor`
    reports non-finite values. If only reductions were saved, the mean of the magnitudes must be
    among them. The default threshold is the documented one.
    """

    READS = "the collection gradients: values, or the saved reduction abs_mean."
    SAVED = ("gradients",)
    NEEDS_VALUES = False
    threshold = non_negative(
        "A gradient has vanished when the mean of its magnitudes is smaller than this.",
        1e-7,
        "mean |gradient|",
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(MEAN, MEAN, worse="below", log=True),)

    required_inputs = (GRADIENTS,)
    wants = wanted(GRADIENTS, "mean", absolute=True)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradients of global step `step`."""
        names = GRADIENTS.names(self.base_trial, step)
        saved = self.base_trial.saved_by(step, names)
        means = reductions(self.base_trial, step, saved, "mean", absolute=True)
        if not means:
            return self.not_judged("no gradients at this step" if not names else "no mean of |g|")
        if self._is_literal:
            vanished = [key for key, mean in means.items() if mean < self.threshold]
        else:
            if 0 in means.values() or any(map(is_routed, names)):
                means = self._judged(means, step)
            if not means:
                return self.not_judged(IDLE)
            vanished = self._lasting(means, step)
            if vanished and self._is_solved(step):
                return self.not_judged(SOLVED)
            if vanished:
                vanished = self._without_flat(vanished, means, step)
        if vanished or self._recoveries.clear_rows:
            is_clear = {key: mean > self.threshold for key, mean in means.items()}
            self._recoveries.add(step, vanished, is_clear)
        zeros = {key: ZERO for key in vanished if means[key] == 0}
        return self.measured_all(step, MEAN, means, self.threshold, met=set(vanished), notes=zeros)

    def _prepare(self) -> None:
        self._is_literal = self.binds()
        self._rows: dict[TensorKey, int] = {}  # how many in a row are too small
        self._total = 0  # rows
        self._below: dict[TensorKey, int] = {}  # rows below the threshold
        self._zeros = LastingZeros()
        self._recoveries = Recoveries(self, RECOVERY_ROWS)

    def _judged(self, means: dict[TensorKey, float], step: int) -> dict[TensorKey, float]:
        """Leave out the zeros of experts, and of workers without a loss."""
        satisfied = workers_without_loss(self.base_trial, step) if 0 in means.values() else set()
        return {
            (name, worker): mean
            for (name, worker), mean in means.items()
            if not (is_routed(name) or (mean == 0 and worker in satisfied))
        }

    def _lasting(self, means: Mapping[TensorKey, float], step: int) -> list[TensorKey]:
        """Record a row of gradients, and return those that have been too small for long enough."""
        self._total += 1
        small = {key: mean for key, mean in means.items() if mean <= self.threshold or not mean}
        others = means.keys() - small.keys() if small else means.keys()
        for key in self._rows.keys() & others:
            del self._rows[key]
        if self._zeros.current:
            self._zeros.end(others)
        return self._lasting_of(small, means, step) if small else []

    def _lasting_of(
        self, small: Mapping[TensorKey, float], means: Mapping[TensorKey, float], step: int
    ) -> list[TensorKey]:
        """Record the gradients of a row that are small, and return those that have lasted."""
        vanished = []
        others: dict[str, list[float]] = {}
        for (_, worker), mean in means.items():
            if mean > 0:  # not NaN
                others.setdefault(worker, []).append(mean)
        largest = {worker: max(of_worker) for worker, of_worker in others.items()}
        never_moved = self._never_moved(small, means, step)
        is_young = self._total <= LASTING_VALUES
        for key, mean in small.items():
            worker = key[1]
            is_small = mean < self.threshold and (
                never_moved
                or len(others.get(worker, ())) == 1
                or mean < SHARE_OF_LARGEST * largest.get(worker, math.inf)
            )
            self._rows[key] = self._rows.get(key, 0) + 1 if is_small else 0
            has_vanished = self._zeros.add(key, is_zero=not mean)
            if mean:
                close = CLOSE_AT_FIRST if is_young and _ATTENTION.search(key[0]) else CLOSE_SHARE
                is_clear = is_small and mean < close * self.threshold
                has_vanished = is_clear or self._rows[key] >= LASTING_VALUES
            if has_vanished:
                vanished.append(key)
        return vanished

    def _never_moved(
        self, small: Mapping[TensorKey, float], means: Mapping[TensorKey, float], step: int
    ) -> bool:
        """Return whether all gradients have been small from the start, and no loss has fallen."""
        for key, mean in small.items():
            self._below[key] = self._below.get(key, 0) + (0 < mean < self.threshold)
        if self._total < FROM_START or len(small) < len(means):
            return False
        if min(self._below[key] for key in means) < self._total:
            return False
        losses = saved_tensors(self.base_trial, step, LOSSES.names(self.base_trial, step))
        return bool(losses) and not any(has_fallen(loss, step) for loss in losses)

    def _is_solved(self, step: int) -> bool:
        losses = saved_tensors(self.base_trial, step, LOSSES.names(self.base_trial, step))
        return any(has_fallen(loss, step, SOLVED_SHARE) for loss in losses)

    def _without_flat(
        self, vanished: list[TensorKey], judged: Collection[TensorKey], step: int
    ) -> list[TensorKey]:
        """Leave out one-dimensional gradients of layers with others that have not vanished."""
        flat = {key for key in judged if self._rank(key, step) < MATRIX_RANK}
        if len(flat) == len(judged):
            return vanished
        alive = {(layer_of(name), worker) for name, worker in set(judged).difference(vanished)}
        return [
            key for key in vanished if key not in flat or (layer_of(key[0]), key[1]) not in alive
        ]

    def _rank(self, key: TensorKey, step: int) -> int:
        """Return the number of dimensions; without a saved shape that of a matrix."""
        shape = value_shape(saved_tensor(self.base_trial, key), step)
        return MATRIX_RANK if shape is None else len(shape)
