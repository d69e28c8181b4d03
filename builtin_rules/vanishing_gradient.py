"""VanishingGradient: some gradient's mean magnitude fell below a floor."""

import re
from collections.abc import Collection
from typing import Any, Final

from builtin_rules.selection import LITERAL, Saved, Series, begins, named, reductions
from smdebug.core.collection import CollectionKeys
from smdebug.exceptions import TensorUnavailableForStep
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, set_parameters

MEAN: Final = "mean |gradient|"
ZERO: Final = "It is exactly 0: its parameter may be frozen."

# What stands behind a layer's name in the names of its gradients, whatever the framework.
_LAST_PART: Final = re.compile(r"[./_:][^./_:]*(:\d+)?(Grad)?$")


class VanishingGradient(Rule):
    """Met when ``mean(|g|) < threshold`` for some gradient `g` of the gradients collection.

    Gradients of two or more dimensions are judged one by one. One-dimensional ones (biases, norm
    layers) are tiny by construction in healthy networks: they count only where all gradients of
    their layer are below, or where the trial has no others. With `literal` each is judged alone.

    Every worker is judged, each step by itself. A NaN mean never meets the condition:
    `ExplodingTensor` owns non-finite values. A gradient that is exactly 0 meets it, and the note
    says that its parameter may be frozen; but not at the first step that has it, unless `literal`:
    what is multiplied by weights that begin at zero (LoRA) has none yet. Where only reductions were
    saved, the mean of the magnitudes must be among them. Default threshold: the service's
    documentation.
    """

    READS = "the collection gradients: values, or the saved reduction abs_mean."
    PARAMS = (
        FloatParam(
            "threshold",
            "A gradient has vanished when the mean of its magnitudes is smaller than this.",
            default=1e-7,
            minimum=0.0,
            unit="mean |gradient|",
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(MEAN, MEAN, worse="below", log=True),)
    PAGE = Page(
        why="""
        A layer whose gradients are (almost) zero does not learn, nor does any layer before it: the
        loss stays where it is while the training costs what it costs.
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
        NaN never meets the condition (`ExplodingTensor` owns it). A step without gradients, or
        with reductions but not `abs_mean`, is skipped.
        """,
        remedy="""
        - See which layer is the last one above the floor: the cause lies behind it.
        - Replace saturating activations (sigmoid, tanh) by ReLU or GELU, or normalise between them.
        - Give a deep stack residual connections, and the initialisation of its activation.
        - If the note says that a gradient is exactly 0, see whether its layer is frozen, cut off
          or dead (`DeadRelu`).
        """,
        limits="""
        Layers that are frozen on purpose but still have gradients fire. A loss of a very small
        scale has small gradients everywhere: lower `threshold`.
        """,
    )
    threshold: float
    literal: bool

    def __init__(self, base_trial: Any, threshold: Any = 1e-7, literal: Any = False) -> None:
        super().__init__(base_trial)
        set_parameters(self, threshold=threshold, literal=literal)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradients of global step `step`."""
        names = named(self.base_trial, step, [CollectionKeys.GRADIENTS], [])
        means = reductions(self.base_trial, step, names, "mean", absolute=True)
        if not means:
            return self.not_judged("no gradients at this step" if not names else "no mean of |g|")
        if not self.literal:
            means = {
                one: mean for one, mean in means.items() if mean or not self._begins(one, step)
            }
            if not means:
                return self.not_judged("gradients that are exactly 0 at their first step")
        vanished = [one for one, mean in means.items() if mean < self.threshold]
        if not self.literal:
            vanished = self._that_count(vanished, means, step)
        zeros = {one: ZERO for one in vanished if means[one] == 0}
        return self.measured_all(step, MEAN, means, self.threshold, met=set(vanished), notes=zeros)

    def _begins(self, one: Series, step: int) -> bool:
        name, worker = one
        return begins(Saved(self.base_trial.tensor(name), worker), step)

    def _that_count(
        self, vanished: list[Series], judged: Collection[Series], step: int
    ) -> list[Series]:
        """Leave out one-dimensional gradients of layers that have others above the floor."""
        if not vanished:
            return vanished
        flat = {one for one in judged if self._rank(one, step) < 2}  # noqa: PLR2004 - a matrix has two
        if len(flat) == len(judged):
            return vanished
        alive = {(_layer(name), worker) for name, worker in set(judged).difference(vanished)}
        return [one for one in vanished if one not in flat or (_layer(one[0]), one[1]) not in alive]

    def _rank(self, one: Series, step: int) -> int:
        """Return the number of dimensions; without a saved shape it is taken for a matrix."""
        name, worker = one
        try:
            return len(self.base_trial.tensor(name).shape(step, worker=worker))
        except TensorUnavailableForStep:
            return 2


def _layer(name: str) -> str:
    """Return what the gradients of one layer have in common.

    >>> _layer("gradient/net.fc1.bias"), _layer("gradients/dense/kernel:0Grad")
    ('gradient/net.fc1', 'gradients/dense')
    """
    return _LAST_PART.sub("", name)
