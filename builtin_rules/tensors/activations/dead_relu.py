"""DeadRelu: most units of a ReLU layer output (almost) nothing but 0."""

from typing import Final

from builtin_rules.statistics.layer_units import THRESHOLD_LAYER, UnitsRule
from builtin_rules.statistics.parameters import Declared, names, percentage
from builtin_rules.statistics.tensor_selection import LITERAL, by_role
from smdebug.rules.extensions import Activity, PatternsParam, Quantity, WantedMeasure

DEAD: Final = "dead units"
OUTPUTS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor is judged if one of them matches in its name.",
    default=".*relu_output",
    also=(
        r"(?i)re_?lu6?(_?\d+)?(_output|/outputs)",  # PyTorch, MXNet; Keras
        r"(^|/)Relu6?(_\d+)?:0$",  # operations of TensorFlow 1
    ),
    collection="relu_output",
)
# LeakyReLU, PReLU and RReLU output negative values; gradients are not outputs.
_ABOVE_0: Final = Activity(0.0)
_OTHERS: Final = r"(?i:leaky|(?<![a-z])[pr]_?re_?lu)|[PR]ReLU|^gradient"


class DeadRelu(UnitsRule):
    """Met when more than `threshold_layer` percent of a ReLU layer's units are dead.

    A unit is dead if fewer than `threshold_inactivity` percent of its outputs are above 0. Outputs
    of saved steps are pooled until there are 100 samples from at least 10 rows of the batch, then
    judged, and a new pool starts; each worker and mode is judged separately. Samples are along the
    first axis. With four or more dimensions, a unit is a channel and each position a sample. The
    channel axis is the second one for PyTorch and MXNet names and the last one for TensorFlow and
    Keras; for other names it is the last one if the two before it are of equal length. With three
    dimensions, each position is a unit until the length of one axis changes between steps; then the
    other axis holds the units. With fewer than two dimensions there is a single unit. A different
    shape starts a new pool.

    It is a note unless more than 90 % are dead, at three judgements in a row: healthy layers behind
    a maximum over points, or of small transformers, have up to four fifths of units that are silent
    for a while.

    NaN is not counted as an output; units with fewer than 100 numbers are left out. If a threshold
    is given, each step is judged separately, and nothing is a note. With `literal` besides, each
    position is a unit and NaN is inactive. The default patterns exclude LeakyReLU, PReLU and RReLU.
    """

    READS = (
        "the collection relu_output (our hooks fill it by the class of a module or layer), outputs "
        "named after ReLU as PyTorch (ReLU_output_0, conv1.relu_output_0), MXNet "
        "(relu0_output_0), Keras (re_lu/outputs) and TensorFlow do: values."
    )
    tensor_regex = names(OUTPUTS)
    threshold_inactivity = percentage(
        "A unit is dead if a smaller share of its outputs than this is above 0.", 1.0
    )
    threshold_layer = THRESHOLD_LAYER
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(DEAD, "dead units, percent of the layer"),)
    CERTAIN = 90.0

    def _prepare(self) -> None:
        super()._prepare()
        self._outputs = by_role("outputs of ReLU", OUTPUTS, self.tensor_regex, _OTHERS)
        self.required_inputs = (self._outputs,)

    @property
    def wants(self) -> list[WantedMeasure]:
        """The elements of outputs that are above 0."""
        return [WantedMeasure(_ABOVE_0, self._outputs)]

    def invoke_at_step(self, step: int) -> bool:
        """Judge the outputs of ReLU at global step `step`."""
        return self.judge_layers(step, self._outputs, lambda _: _ABOVE_0)
