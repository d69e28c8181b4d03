"""TensorVariance: the variance of a tensor is above or below a bound."""

import re
from typing import Final

from builtin_rules.statistics.parameters import Declared, names, non_negative
from builtin_rules.statistics.selecting_rule import SelectingRule
from builtin_rules.statistics.tensor_selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    TensorKey,
    any_met,
    shapes,
    tensor_names,
    variances,
)
from smdebug.core.collection import CollectionKeys
from smdebug.core.reductions import Reduction
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Quantity

LARGE: Final = "large variance"
SMALL: Final = "small variance"
SETTLED_VALUES: Final = 10  # saved values of a parameter from its first one on
_LENGTHS: Final = re.compile(r"original0$|weight_g$|magnitude")  # of weight norm, and DoRA
_PARAMETERS: Final = (CollectionKeys.WEIGHTS, CollectionKeys.BIASES)


class TensorVariance(SelectingRule):
    """Met when ``var(x) > max_threshold`` or ``var(x) < min_threshold`` for a selected tensor.

    The variance divides by the number of elements. A bound is checked only if it is given. Every
    worker and every step is judged separately, in all modes. Non-numeric tensors and those with
    fewer than two elements are skipped, as are tensors with NaN or infinity, which
    `ExplodingTensor` reports. If only reductions were saved, the variance or the standard deviation
    must be among them.

    Of parameters selected by collection, `min_threshold` does not apply to those that start as a
    constant: one-dimensional weights (the scales of norm layers), lengths of weight norm, and any
    with a variance of exactly 0 at their first step (biases, LoRA's B). Parameters that start below
    it must stay so for ten saved steps: heads may start close to zero. With `literal`, it applies
    to all at once.
    """

    READS = "the selected tensors: values, or the saved reduction variance or std."
    collection_names = names(COLLECTION_NAMES)
    tensor_regex = names(TENSOR_REGEX)
    max_threshold = non_negative(
        "A variance above this meets the condition. Not checked if unset.",
        None,
        "squared unit of the tensor",
    )
    min_threshold = non_negative(
        "A variance below this meets the condition. Not checked if unset.",
        None,
        "squared unit of the tensor",
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (
        Quantity(LARGE, "variance, squared unit of the tensor", worse="above", log=True),
        Quantity(SMALL, "variance, squared unit of the tensor", worse="below", log=True),
    )
    STATISTIC = Reduction("variance", absolute=False)

    def _prepare(self) -> None:
        super()._prepare()
        self._small: dict[TensorKey, int] = {}  # for how many values from the first one on
        high, low = self.max_threshold, self.min_threshold
        if high is None and low is None:
            msg = (
                "Rule 'TensorVariance' needs parameter 'max_threshold' or 'min_threshold', "
                "and neither was given."
            )
            raise SMDebugValueError(msg)
        if high is not None and low is not None and low > high:
            msg = f"Parameter 'min_threshold' must be <= 'max_threshold', {high!r}, got {low!r}."
            raise SMDebugValueError(msg)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        names = tensor_names(trial, step, self.collection_names, self.tensor_regex)
        if not names:
            return self.not_judged("none of the selected tensors at this step")
        by_name = names if self.literal else tensor_names(trial, step, [], self.tensor_regex)
        parameters = set(tensor_names(trial, step, _PARAMETERS, [])).difference(by_name)
        saved = trial.saved_by(step, names)
        known_shapes = shapes(trial, step, saved)
        answers = [
            self._judge(key, step, spread, known_shapes.get(key), is_parameter=key[0] in parameters)
            for key, spread in variances(trial, step, saved, known_shapes).items()
        ]
        return any_met(self, answers, "no tensor has a variance to judge")

    def _judge(
        self,
        key: TensorKey,
        step: int,
        spread: float,
        shape: tuple[int, ...] | None,
        *,
        is_parameter: bool,
    ) -> bool | None:
        """Return whether a variance is outside the bounds, or None if no bound applies."""
        bounds = {LARGE: self.max_threshold, SMALL: self.min_threshold}
        if is_parameter and self._starts_constant(key[0], step, spread, shape):
            del bounds[SMALL]
        is_small = self.min_threshold is not None and spread < self.min_threshold
        self._small[key] = self._small.get(key, 0) + 1 if is_small else SETTLED_VALUES
        lasts = self.literal or not is_parameter or self._small[key] >= SETTLED_VALUES
        answers = [
            self.record(key, step, quantity, spread, limit, met=outside)
            for quantity, limit in bounds.items()
            if limit is not None
            for outside in [spread > limit if quantity == LARGE else is_small and lasts]
        ]
        return any(answers) if answers else None

    def _starts_constant(
        self, name: str, step: int, spread: float, shape: tuple[int, ...] | None
    ) -> bool:
        """Return whether a parameter is a scale of a norm layer or still has its initial constant.

        Parameters
        ----------
        shape
            The shape, or None if it was not saved.
        """
        if spread == 0 and self.base_trial.tensor(name).first_step == step:
            return True
        is_flat = shape is not None and len(shape) == 1
        return (is_flat and "bias" not in name.lower()) or _LENGTHS.search(name) is not None
