"""VanishingGradient: the mean magnitude of a gradient fell below a threshold."""

import re
from collections.abc import Collection
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import non_negative
from builtin_rules.statistics.tensor_selection import (
    GRADIENTS,
    LITERAL,
    SavedTensor,
    TensorKey,
    is_first_step,
    reductions,
)
from smdebug.exceptions import TensorUnavailableForStep
from smdebug.rules.extensions import Page, Quantity, Severity

MEAN: Final = "mean |gradient|"
ZERO: Final = "Exactly 0: the parameter may be frozen."

MATRIX_RANK: Final = 2
# Saved values that may be 0 at first: LoRA's first factor waits for the second one, which itself
# waits for the end of a warm-up that begins at 0.
ZEROS_AT_FIRST: Final = 4
# The part after the name of the layer in the names of its gradients, in all frameworks.
_LAST_PART: Final = re.compile(r"[./_:][^./_:]*(:\d+)?(Grad)?$")


class VanishingGradient(DeclaredRule):
    """Met when ``mean(|g|) < threshold`` for some gradient `g` of the gradients collection.

    Gradients with two or more dimensions are judged one by one. One-dimensional gradients (biases,
    norm layers) are tiny even in healthy networks: they count only if all gradients of their layer
    are below the threshold, or if the trial has no others. With `literal`, each gradient is judged
    on its own.

    Every worker and every step is judged separately. A NaN mean never meets the condition;
    `ExplodingTensor` reports non-finite values. A gradient that is exactly 0 meets it, and the note
    says that its parameter may be frozen. Up to four zeros with which the saved values of a
    gradient begin are an exception, unless `literal`: factors that start at zero (LoRA) cause them.
    If only reductions were saved, the mean of the magnitudes must be among them. The default
    threshold is the documented one.
    """

    READS = "the collection gradients: values, or the saved reduction abs_mean."
    PARAMS = (
        non_negative(
            "threshold",
            "A gradient has vanished when the mean of its magnitudes is smaller than this.",
            1e-7,
            "mean |gradient|",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(MEAN, MEAN, worse="below", log=True),)
    SEVERITY = Severity.WARNING
    PAGE = Page(
        why="""
        A layer whose gradients are (almost) zero does not learn, and neither does any layer before
        it: the loss stops improving while the training keeps running.
        """,
        save="""
        The collection `gradients`; its reduction `abs_mean` is enough:

            Hook(
                out_dir,
                include_collections=["gradients"],
                reduction_config=ReductionConfig(abs_reductions=["mean"]),
            )
        """,
        missing="""
        NaN never meets the condition (`ExplodingTensor` reports it). Steps without gradients, or
        with reductions other than `abs_mean`, are skipped.
        """,
        remedy="""
        - Find the last layer above the threshold: the cause is in the layer after it.
        - Replace saturating activations (sigmoid, tanh) with ReLU or GELU, or add normalisation
          between layers.
        - Use residual connections in deep networks, and initialise them for their activation.
        - If the note says that a gradient is exactly 0, check whether its layer is frozen,
          disconnected or dead (`DeadRelu`).
        """,
        limits="""
        Layers that are frozen on purpose but still have gradients fire. If the scale of the loss is
        very small, all gradients are small: lower `threshold`.
        """,
        severity="""
        A warning: the layers with vanishing gradients stand still, and the others may still learn.
        """,
    )
    threshold: float
    literal: bool

    required_inputs = (GRADIENTS,)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradients of global step `step`."""
        names = GRADIENTS.names(self.base_trial, step)
        means = reductions(self.base_trial, step, names, "mean", absolute=True)
        if not means:
            return self.not_judged("no gradients at this step" if not names else "no mean of |g|")
        if not self.literal:
            means = {key: mean for key, mean in means.items() if not self._begins(key, step, mean)}
            if not means:
                return self.not_judged("gradients that are exactly 0 at their first steps")
        vanished = [key for key, mean in means.items() if mean < self.threshold]
        if not self.literal:
            vanished = self._without_flat(vanished, means, step)
        zeros = {key: ZERO for key in vanished if means[key] == 0}
        return self.measured_all(step, MEAN, means, self.threshold, met=set(vanished), notes=zeros)

    def _prepare(self) -> None:
        self._zeros_at_first: dict[TensorKey, int] = {}

    def _begins(self, key: TensorKey, step: int, mean: float) -> bool:
        """Return whether a gradient is one of the zeros with which its tensor begins."""
        name, worker = key
        if mean:
            self._zeros_at_first.pop(key, None)
            return False
        if is_first_step(SavedTensor(self.base_trial.tensor(name), worker), step):
            self._zeros_at_first[key] = 0
        zeros = self._zeros_at_first.get(key, ZEROS_AT_FIRST) + 1
        self._zeros_at_first[key] = zeros
        return zeros <= ZEROS_AT_FIRST

    def _without_flat(
        self, vanished: list[TensorKey], judged: Collection[TensorKey], step: int
    ) -> list[TensorKey]:
        """Leave out one-dimensional gradients of layers with others above the threshold."""
        if not vanished:
            return vanished
        flat = {key for key in judged if self._rank(key, step) < MATRIX_RANK}
        if len(flat) == len(judged):
            return vanished
        alive = {(_layer(name), worker) for name, worker in set(judged).difference(vanished)}
        return [key for key in vanished if key not in flat or (_layer(key[0]), key[1]) not in alive]

    def _rank(self, key: TensorKey, step: int) -> int:
        """Return the number of dimensions; without a saved shape that of a matrix."""
        name, worker = key
        try:
            return len(self.base_trial.tensor(name).shape(step, worker=worker))
        except TensorUnavailableForStep:
            return MATRIX_RANK


def _layer(name: str) -> str:
    """Return the common prefix of the gradients of a layer.

    >>> _layer("gradient/net.fc1.bias"), _layer("gradients/dense/kernel:0Grad")
    ('gradient/net.fc1', 'gradients/dense')
    """
    return _LAST_PART.sub("", name)
