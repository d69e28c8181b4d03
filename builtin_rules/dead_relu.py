"""DeadRelu: most units of some ReLU layer pass (almost) nothing on."""

import re
from collections.abc import Iterator
from typing import Any, Final

from builtin_rules.activity import Activity, Flags
from builtin_rules.selection import LITERAL, Saved, by_role, saved, told
from builtin_rules.units import THRESHOLD_LAYER, UnitsRule
from smdebug.rules import Page, Quantity
from smdebug.rules.params import FloatParam, PatternsParam, set_parameters

DEAD: Final = "dead units"
OUTPUTS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor is judged if one of them is found in its name.",
    default=".*relu_output",
    also=(
        r"(?i)re_?lu6?(_?\d+)?(_output|/outputs)",  # PyTorch, MXNet; Keras
        r"(^|/)Relu6?(_\d+)?:0$",  # operations of TensorFlow 1
    ),
    collection="relu_output",
)
# LeakyReLU, PReLU and RReLU pass negative values on; gradients are no outputs.
_ABOVE_0: Final = Activity(0.0)
_OTHERS: Final = re.compile(r"(?i:leaky|(?<![a-z])[pr]_?re_?lu)|[PR]ReLU|^gradient")


class DeadRelu(UnitsRule):
    """Met when more than `threshold_layer` percent of a ReLU layer's units are dead.

    A unit is dead if fewer than `threshold_inactivity` percent of its outputs are above 0. Outputs
    of the saved steps are pooled until there are 100 samples from at least 10 rows of the batch,
    judged, and then pooled anew; each worker and each mode by itself. Samples lie along the first
    axis. With four or more dimensions a unit is a channel, and each position a sample: the first
    axis behind the batch for names of PyTorch and MXNet, the last one for TensorFlow and Keras;
    for other names the last one if the two before it are of one length. With three dimensions each
    position is a unit, until the length of one axis changes between steps: then the other one
    holds the units. Fewer dimensions than two are one unit. Another shape begins a new pool.

    NaN is no output: units without 100 numbers are left out. With `literal` each step is judged by
    itself, each position is a unit, and NaN is not active. The default patterns leave out names of
    LeakyReLU, PReLU and RReLU.
    """

    READS = (
        "the collection relu_output (ours know it by the class of a module or layer), and outputs "
        "named after ReLU as PyTorch (ReLU_output_0, conv1.relu_output_0), MXNet "
        "(relu0_output_0), Keras (re_lu/outputs) and TensorFlow do: values."
    )
    PARAMS = (
        OUTPUTS,
        FloatParam(
            "threshold_inactivity",
            "A unit is dead when fewer of its outputs than this share are above 0.",
            default=1.0,
            minimum=0.0,
            maximum=100.0,
            unit="percent",
        ),
        THRESHOLD_LAYER,
        LITERAL,
    )
    QUANTITIES = (Quantity(DEAD, "dead units, percent of the layer"),)
    PAGE = Page(
        why="""
        A ReLU whose input is negative for every sample gives 0 and has a gradient of 0: it never
        comes back. A layer of dead units passes nothing on, and what stands before it learns
        nothing.
        """,
        save="""
        The collection `relu_output`, which the hooks fill by the classes of modules and layers:

            Hook(out_dir, include_collections=["relu_output"])

        Where activations are functions (`F.relu`) make them modules, or save their outputs with
        `hook.record_tensor_value("relu1", values)`.
        """,
        missing="""
        NaN is no sample. A step at which no layer has 100 samples since it was last judged is
        skipped, as is one that has reductions only: they do not tell one unit from another.
        """,
        remedy="""
        - See which layer is the first one: those behind it may only follow.
        - Lower the learning rate, or warm it up: one large update of the biases kills for good.
        - See whether biases are initialised to large negative values.
        - Normalise what comes in, by batch norm or of the data.
        - Use LeakyReLU, ELU or GELU, which have a gradient on both sides.
        """,
        limits="""
        Layers that are sparse on purpose fire: raise `threshold_layer`, or lower
        `threshold_inactivity`. Small batches delay the judgement: 8 samples need 13 saved steps.
        In a sequence of one fixed length each position is a unit, so channels of a one-dimensional
        convolution that are dead at most positions are counted, but not as one. Of an array
        `(batch, height, width, channels)` with a PyTorch name rows are taken for channels.
        """,
    )
    tensor_regex: tuple[str, ...]

    def __init__(
        self,
        base_trial: Any,
        tensor_regex: Any = None,
        threshold_inactivity: Any = 1.0,
        threshold_layer: Any = 50.0,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            tensor_regex=tensor_regex,
            threshold_inactivity=threshold_inactivity,
            threshold_layer=threshold_layer,
            literal=literal,
        )

    def invoke_at_step(self, step: int) -> bool:
        """Judge the outputs of ReLU at global step `step`."""
        names = by_role(self.base_trial, step, OUTPUTS, self.tensor_regex)
        if self.tensor_regex == OUTPUTS.whole_default:
            names = [name for name in names if not _OTHERS.search(name)]
        if not names:
            return self.not_judged("no outputs of ReLU at this step")
        return self.judge_layers(step, DEAD, self._layers(step, names))

    def _layers(self, step: int, names: list[str]) -> Iterator[tuple[Saved, Flags]]:
        """Yield what was saved of outputs, and where they are active."""
        for one in saved(self.base_trial, step, names):
            flags = told(one, step, _ABOVE_0)
            if flags is not None:
                yield one, flags
