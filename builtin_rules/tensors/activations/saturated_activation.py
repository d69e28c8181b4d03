"""SaturatedActivation: most units of a tanh or sigmoid layer are saturated."""

from typing import Final

from builtin_rules.statistics.layer_units import THRESHOLD_LAYER, UnitsRule
from builtin_rules.statistics.parameters import Declared, names, percentage
from builtin_rules.statistics.tensor_selection import COLLECTION_NAMES, LITERAL, tensor_names
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import (
    Activity,
    FloatParam,
    PatternsParam,
    Quantity,
    TensorInput,
    WantedMeasure,
)

SATURATED: Final = "saturated units"
KINDS: Final = ("sigmoid", "tanh")
KINDS_COLLECTIONS: Final = tuple(f"{kind}_input" for kind in KINDS)
INPUTS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor is judged if one of them matches in its name.",
    default=".*tanh_input|.*sigmoid_input",
    also=(r"(?i)(tanh|sigmoid)(_?\d+)?(_input|/inputs)",),  # PyTorch, MXNet; Keras
)
# Activations with similar names that saturate elsewhere.
_EXCLUDED: Final = r"(?i)hard_?(tanh|sigmoid)|log_?sigmoid"


def _bound(name: str, default: float) -> Declared[float]:
    """Return the parameter of one bound of the range of unsaturated inputs."""
    _, kind, end = name.split("_")
    side = {"min": "above", "max": "below"}[end]
    meaning = f"An input of {kind} is active only {side} this."
    return Declared(FloatParam(name, meaning, default=default, unit=f"input of {kind}"))


class SaturatedActivation(UnitsRule):
    """Met when more than `threshold_layer` percent of a tanh or sigmoid layer's units saturate.

    A unit is saturated if fewer than `threshold_inactivity` percent of its inputs lie strictly
    between the two bounds of its activation. The activation of a tensor is known from the
    collection sigmoid_input or tanh_input, or else from its name; other tensors are skipped with a
    warning. It is a note until the layer fails at three judgements in a row. Samples, units,
    pooling, given thresholds and `literal` are as in `DeadRelu`. NaN is not an input, infinity is
    saturated.

    The tensors of `collection_names` and of `tensor_regex` are selected. The default patterns
    exclude Hardtanh, Hardsigmoid and LogSigmoid.
    """

    READS = (
        "the collections tanh_input and sigmoid_input (our hooks fill them by the class of a "
        "module or layer), inputs named after tanh and sigmoid as PyTorch (Tanh_input_0), MXNet "
        "(tanh0_input_0) and Keras (tanh/inputs) do, and collection_names: values."
    )
    SAVED = ("tanh_input", "sigmoid_input")
    collection_names = names(COLLECTION_NAMES)
    tensor_regex = names(INPUTS)
    threshold_tanh_min = _bound("threshold_tanh_min", -9.4999)
    threshold_tanh_max = _bound("threshold_tanh_max", 9.4999)
    threshold_sigmoid_min = _bound("threshold_sigmoid_min", -23.0)
    threshold_sigmoid_max = _bound("threshold_sigmoid_max", 16.99999)
    threshold_inactivity = percentage(
        "A unit is saturated if a smaller share of its inputs than this is in the range.", 1.0
    )
    threshold_layer = THRESHOLD_LAYER
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(SATURATED, "saturated units, percent of the layer"),)

    def _prepare(self) -> None:
        super()._prepare()
        standard = self.tensor_regex == INPUTS.whole_default
        self._inputs = TensorInput(
            "inputs of tanh or sigmoid",
            (*self.collection_names, *(KINDS_COLLECTIONS if standard else ())),
            self.tensor_regex,
            _EXCLUDED if standard else "",
        )
        self.required_inputs = (self._inputs,)
        self._ranges = {kind: self._range(kind) for kind in KINDS}
        self._warned = False

    def _range(self, kind: str) -> Activity:
        low, high = f"threshold_{kind}_min", f"threshold_{kind}_max"
        bounds = getattr(self, low), getattr(self, high)
        if bounds[0] < bounds[1]:
            return Activity(*bounds)
        raise SMDebugValueError(
            f"Parameter {low!r} must be smaller than {high!r}, got {bounds[0]!r} and {bounds[1]!r}."
        )

    @property
    def wants(self) -> list[WantedMeasure]:
        """The elements of inputs that are within the range of their kind."""
        return [WantedMeasure(activity, self._inputs) for activity in self._ranges.values()]

    def invoke_at_step(self, step: int) -> bool:
        """Judge the inputs of tanh and sigmoid at global step `step`."""
        members = {
            kind: tensor_names(self.base_trial, step, [f"{kind}_input"], []) for kind in KINDS
        }
        return self.judge_layers(
            step, self._inputs, lambda name: self._ranges.get(self._kind(name, members))
        )

    def _kind(self, name: str, members: dict[str, list[str]]) -> str:
        """Return the activation that a tensor is an input of, or "" with a warning."""
        for kind in KINDS:
            if name in members[kind]:
                return kind
        for kind in KINDS:
            if kind in name.lower():
                return kind
        if not self._warned:
            self._warned = True
            self.logger.warning("The name of %r contains neither tanh nor sigmoid: skipped.", name)
        return ""
