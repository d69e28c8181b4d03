"""TensorVariance: some tensor's variance lies above or below a bound."""

from typing import Any, Final

from builtin_rules.selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    Saved,
    begins,
    named,
    no_selector,
    saved,
    variance,
)
from smdebug.core.collection import CollectionKeys
from smdebug.exceptions import SMDebugValueError, TensorUnavailableForStep
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, set_parameters

LARGE: Final = "large variance"
SMALL: Final = "small variance"
_PARAMETERS: Final = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)


class TensorVariance(Rule):
    """Met when ``var(x) > max_threshold`` or ``var(x) < min_threshold`` for a selected tensor.

    The variance divides by the number of elements. Each bound is checked only if it is given.
    Every worker is judged, each step by itself, in all modes. Tensors with fewer than two elements
    and non-numeric ones are passed over, and so is what holds NaN or infinity: `ExplodingTensor`
    owns it. Where only reductions were saved, the variance or the standard deviation must be among
    them.

    Of parameters that collections select, `min_threshold` does not judge those that begin as one
    number: one-dimensional weights (the scales of norm layers), and any whose variance is exactly
    0 at the first step that has it (biases, LoRA's B). With `literal` it does.
    """

    READS = "the selected tensors: values, or the saved reduction variance or std."
    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        FloatParam(
            "max_threshold",
            "A variance above this meets the condition; not checked without it.",
            minimum=0.0,
            unit="squared unit of the tensor",
        ),
        FloatParam(
            "min_threshold",
            "A variance below this meets the condition; not checked without it.",
            minimum=0.0,
            unit="squared unit of the tensor",
        ),
        LITERAL,
    )
    QUANTITIES = (
        Quantity(LARGE, "variance, squared unit of the tensor", worse="above", log=True),
        Quantity(SMALL, "variance, squared unit of the tensor", worse="below", log=True),
    )
    PAGE = Page(
        why="""
        Weights or activations that spread ever wider are about to overflow; those that have drawn
        together to (almost) one number carry no information and saturate what comes after them.
        """,
        save="""
        The tensors that are selected, or their reduction `variance`, which is enough:

            Hook(
                out_dir,
                include_collections=["weights"],
                reduction_config=ReductionConfig(reductions=["variance"]),
            )
        """,
        missing="""
        Tensors with NaN or infinity are left to `ExplodingTensor`. Tensors of one element, empty
        and non-numeric ones, and steps without the tensors are skipped.
        """,
        remedy="""
        - Above the bound: lower the learning rate, clip gradients, add weight decay or a norm.
        - Below it: see whether the layer is dead or saturated (`DeadRelu`, `SaturatedActivation`),
          and whether its initialisation suits its activation.
        - Compare with the variance of the first steps before choosing bounds.
        """,
        limits="""
        The bounds are absolute, so one pair rarely suits tensors of different kinds: run the rule
        once for each kind, with `tensor_regex`, which also judges what collections do not: the
        scales of norm layers.
        """,
    )
    collection_names: tuple[str, ...]
    tensor_regex: tuple[str, ...]
    max_threshold: float | None
    min_threshold: float | None
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        max_threshold: Any = None,
        min_threshold: Any = None,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            collection_names=collection_names,
            tensor_regex=tensor_regex,
            max_threshold=max_threshold,
            min_threshold=min_threshold,
            literal=literal,
        )
        if not self.collection_names and not self.tensor_regex:
            raise no_selector(self.rule_name)
        _check_bounds(self.max_threshold, self.min_threshold)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        names = named(trial, step, self.collection_names, self.tensor_regex)
        if not names:
            return self.not_judged("none of the selected tensors at this step")
        by_name = names if self.literal else named(trial, step, [], self.tensor_regex)
        parameters = set(named(trial, step, _PARAMETERS, [])).difference(by_name)
        answers = [
            self._judge(one, step, spread, parameters)
            for one in saved(trial, step, names)
            if (spread := variance(one, step)) is not None
        ]
        if all(answer is None for answer in answers):
            return self.not_judged("no tensor has a variance to judge")
        return any(answers)

    def _judge(self, one: Saved, step: int, spread: float, parameters: set[str]) -> bool | None:
        """Say whether a variance lies outside the bounds, or None if it is not to be judged."""
        bounds = {LARGE: self.max_threshold, SMALL: self.min_threshold}
        if one.name in parameters and _begins_as_one_number(one, step, spread):
            del bounds[SMALL]
        met = None
        for quantity, limit in bounds.items():
            if limit is None:
                continue
            met = bool(met) | self.measured(
                step,
                quantity,
                spread,
                limit,
                met=spread > limit if quantity == LARGE else spread < limit,
                tensor=one.name,
                worker=one.worker,
            )
        return met


def _check_bounds(high: float | None, low: float | None) -> None:
    """Raise if no bound is given, or no variance lies between them."""
    if high is None and low is None:
        msg = (
            "Rule 'TensorVariance' needs parameter 'max_threshold' or 'min_threshold', "
            "and neither was given."
        )
        raise SMDebugValueError(msg)
    if high is not None and low is not None and low > high:
        msg = f"Parameter 'min_threshold' must be <= 'max_threshold', {high!r}, got {low!r}."
        raise SMDebugValueError(msg)


def _begins_as_one_number(one: Saved, step: int, spread: float) -> bool:
    """Say whether a parameter is a scale of a norm layer, or one that nothing has moved yet."""
    if spread == 0 and begins(one, step):
        return True
    try:
        flat = len(one.tensor.shape(step, worker=one.worker)) == 1
    except TensorUnavailableForStep:
        return False
    return flat and "bias" not in one.name.lower()
