"""SaturatedActivation: most units of some tanh or sigmoid layer have inputs far out."""

import re
from collections.abc import Iterator
from typing import Any, Final

from builtin_rules.activity import Activity, Flags
from builtin_rules.selection import COLLECTION_NAMES, LITERAL, Saved, named, saved, told
from builtin_rules.units import THRESHOLD_LAYER, UnitsRule
from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Page, Quantity
from smdebug.rules.params import FloatParam, PatternsParam, set_parameters

SATURATED: Final = "saturated units"
KINDS: Final = ("sigmoid", "tanh")
INPUTS: Final = PatternsParam(
    "tensor_regex",
    "Patterns: a tensor is judged if one of them is found in its name.",
    default=".*tanh_input|.*sigmoid_input",
    also=(r"(?i)(tanh|sigmoid)(_?\d+)?(_input|/inputs)",),  # PyTorch, MXNet; Keras
)
# Others with these names in theirs: they saturate elsewhere.
_OTHERS: Final = re.compile(r"(?i)hard_?(tanh|sigmoid)|log_?sigmoid")


def _bound(name: str, default: float) -> FloatParam:
    """Return the parameter of one end of a range in which inputs are not saturated."""
    _, kind, end = name.split("_")
    side = {"min": "above", "max": "below"}[end]
    meaning = f"An input of {kind} is active only {side} this."
    return FloatParam(name, meaning, default=default, unit=f"input of {kind}")


class SaturatedActivation(UnitsRule):
    """Met when more than `threshold_layer` percent of a tanh or sigmoid layer's units saturate.

    A unit is saturated if fewer than `threshold_inactivity` percent of its inputs lie strictly
    between the two bounds of its activation. A tensor is judged by the bounds of sigmoid or tanh if
    it belongs to the collection sigmoid_input or tanh_input, or else has that word in its name;
    others are passed over, with a warning. What samples and units are, how saved steps are pooled
    and what `literal` changes: as in `DeadRelu`. NaN is no input, infinity is saturated.

    Selected are the tensors of `collection_names` and those of `tensor_regex`. The default patterns
    leave out names of Hardtanh, Hardsigmoid and LogSigmoid.
    """

    READS = (
        "the collections tanh_input and sigmoid_input (ours know them by the class of a module or "
        "layer), inputs named after tanh and sigmoid as PyTorch (Tanh_input_0), MXNet "
        "(tanh0_input_0) and Keras (tanh/inputs) do, and collection_names: values."
    )
    PARAMS = (
        COLLECTION_NAMES,
        INPUTS,
        _bound("threshold_tanh_min", -9.4999),
        _bound("threshold_tanh_max", 9.4999),
        _bound("threshold_sigmoid_min", -23.0),
        _bound("threshold_sigmoid_max", 16.99999),
        FloatParam(
            "threshold_inactivity",
            "A unit is saturated when fewer of its inputs than this share lie in the range.",
            default=1.0,
            minimum=0.0,
            maximum=100.0,
            unit="percent",
        ),
        THRESHOLD_LAYER,
        LITERAL,
    )
    QUANTITIES = (Quantity(SATURATED, "saturated units, percent of the layer"),)
    PAGE = Page(
        why="""
        Far out tanh and sigmoid are flat: their derivative is almost 0, so the layer and all that
        stands before it stop learning.
        """,
        save="""
        The collections `tanh_input` and `sigmoid_input`, which the hooks fill by the classes of
        modules and layers:

            Hook(out_dir, include_collections=["tanh_input", "sigmoid_input"])

        Of Keras layers with an activation of their own (`Dense(..., activation="tanh")`) the input
        of the activation is not seen: give the activation a layer.
        """,
        missing="""
        NaN is no sample; infinity is saturated. A step at which no layer has 100 samples since it
        was last judged is skipped, as is one that has reductions only.
        """,
        remedy="""
        - Scale the data: raw features of hundreds saturate the first layer.
        - Initialise for the activation (Xavier for tanh and sigmoid), with a gain near 1.
        - Lower the learning rate, or clip gradients; add weight decay.
        - Normalise before the activation, or use ReLU or GELU between layers.
        """,
        limits="""
        The default ranges are wide: beyond them float32 knows no gradient to speak of. Training
        suffers long before; `threshold_tanh_min=-3`, `threshold_tanh_max=3` (and -6, 6 for
        sigmoid) find that. Gates inside of recurrent layers are not seen by hooks.
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        threshold_tanh_min: Any = -9.4999,
        threshold_tanh_max: Any = 9.4999,
        threshold_sigmoid_min: Any = -23.0,
        threshold_sigmoid_max: Any = 16.99999,
        threshold_inactivity: Any = 1.0,
        threshold_layer: Any = 50.0,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            collection_names=collection_names,
            tensor_regex=tensor_regex,
            threshold_tanh_min=threshold_tanh_min,
            threshold_tanh_max=threshold_tanh_max,
            threshold_sigmoid_min=threshold_sigmoid_min,
            threshold_sigmoid_max=threshold_sigmoid_max,
            threshold_inactivity=threshold_inactivity,
            threshold_layer=threshold_layer,
            literal=literal,
        )
        self._ranges = {kind: self._range(kind) for kind in KINDS}
        self._warned = False

    def _range(self, kind: str) -> Activity:
        low, high = f"threshold_{kind}_min", f"threshold_{kind}_max"
        bounds = getattr(self, low), getattr(self, high)
        if bounds[0] < bounds[1]:
            return Activity(*bounds)
        msg = (
            f"Parameter {low!r} must be smaller than {high!r}, got {bounds[0]!r} and {bounds[1]!r}."
        )
        raise SMDebugValueError(msg)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the inputs of tanh and sigmoid at global step `step`."""
        trial = self.base_trial
        names = set(named(trial, step, [], self.tensor_regex))
        if self.tensor_regex == INPUTS.whole_default:
            names = {name for name in names if not _OTHERS.search(name)}
            names.update(named(trial, step, [f"{kind}_input" for kind in KINDS], []))
        names.update(named(trial, step, self.collection_names, []))
        if not names:
            return self.not_judged("no inputs of tanh or sigmoid at this step")
        return self.judge_layers(step, SATURATED, self._layers(step, sorted(names)))

    def _layers(self, step: int, names: list[str]) -> Iterator[tuple[Saved, Flags]]:
        """Yield what was saved of inputs, and where they are active."""
        members = {kind: named(self.base_trial, step, [f"{kind}_input"], []) for kind in KINDS}
        for one in saved(self.base_trial, step, names):
            kind = self._kind(one.name, members)
            flags = told(one, step, self._ranges[kind]) if kind else None
            if flags is not None:
                yield one, flags

    def _kind(self, name: str, members: dict[str, list[str]]) -> str:
        """Return which activation's input a tensor is, or "" and warn."""
        for kind in KINDS:
            if name in members[kind]:
                return kind
        for kind in KINDS:
            if kind in name.lower():
                return kind
        if not self._warned:
            self._warned = True
            self.logger.warning("Neither tanh nor sigmoid is in the name of %r: passed over.", name)
        return ""
