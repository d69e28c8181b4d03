"""TensorVariance: the variance of a tensor is above or below a bound."""

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
from smdebug.core.reductions import Reduction
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Quantity

LARGE: Final = "large variance"
SMALL: Final = "small variance"


class TensorVariance(SelectingRule):
    """Met when ``var(x) > max_threshold`` or ``var(x) < min_threshold`` for a selected tensor.

    The variance divides by the number of elements. A bound is checked only if it is given. Every
    worker and every step is judged separately, in all modes. Non-numeric tensors and those with
    fewer than two elements are skipped, as are tensors with NaN or infinity, which
    `ExplodingTensor` reports. If only reductions were saved, the variance or the standard deviation
    must be among them.

    Users give the bounds, so they apply to every selected tensor, and `literal` changes nothing.
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
        high, low = self.max_threshold, self.min_threshold
        if high is None and low is None:
            raise SMDebugValueError(
                "Rule 'TensorVariance' needs parameter 'max_threshold' or 'min_threshold', "
                "and neither was given."
            )
        if high is not None and low is not None and low > high:
            raise SMDebugValueError(
                f"Parameter 'min_threshold' must be <= 'max_threshold', {high!r}, got {low!r}."
            )

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        names = tensor_names(trial, step, self.collection_names, self.tensor_regex)
        if not names:
            return self.not_judged("none of the selected tensors at this step")
        saved = trial.saved_by(step, names)
        answers = [
            self._judge(key, step, spread)
            for key, spread in variances(trial, step, saved, shapes(trial, step, saved)).items()
        ]
        return any_met(self, answers, "no tensor has a variance to judge")

    def _judge(self, key: TensorKey, step: int, spread: float) -> bool:
        """Return whether a variance is outside the bounds that were given."""
        high, low = self.max_threshold, self.min_threshold
        answers = [
            self.record(key, step, quantity, spread, limit, met=outside)
            for quantity, limit, outside in (
                (LARGE, high, high is not None and spread > high),
                (SMALL, low, low is not None and spread < low),
            )
            if limit is not None
        ]
        return any(answers)
