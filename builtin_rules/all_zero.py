"""AllZero: some tensor consists of zeros, wholly or to a given share."""

from typing import Any

import numpy as np

from builtin_rules.selection import (
    COLLECTION_NAMES,
    LITERAL,
    TENSOR_REGEX,
    Saved,
    named,
    saved,
    saved_reductions,
    view,
)
from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Rule
from smdebug.rules.params import FloatParam, parse_params

_ALL = 100.0


class AllZero(Rule):
    """Met when ``100 * zeros / elements >= threshold`` for some selected tensor.

    Zero is exact; NaN is none. Every worker is judged, each step by itself. Tensors of one element
    and biases at the first step that has them (which start at zero) are passed over unless
    `tensor_regex` selects them by name; with `literal` they are not. Empty and non-numeric tensors
    are passed over. Where only reductions were saved, a threshold of 100 is judged by ``abs_max ==
    0`` or ``min == max == 0``.
    """

    READS = "the selected tensors: values, or the saved reductions abs_max, or min and max."
    PARAMS = (
        COLLECTION_NAMES,
        TENSOR_REGEX,
        FloatParam(
            "threshold",
            "Share of a tensor's elements that must be zero.",
            default=_ALL,
            minimum=0.0,
            maximum=_ALL,
            unit="percent",
        ),
        LITERAL,
    )

    def __init__(
        self,
        base_trial: Any,
        collection_names: Any = None,
        tensor_regex: Any = None,
        threshold: Any = _ALL,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        given = {
            "collection_names": collection_names,
            "tensor_regex": tensor_regex,
            "threshold": threshold,
            "literal": literal,
        }
        values: dict[str, Any] = parse_params(self.PARAMS, given, self.rule_name)
        self.collection_names: tuple[str, ...] = values["collection_names"] or ()
        self.tensor_regex: tuple[str, ...] = values["tensor_regex"] or ()
        self.threshold: float = values["threshold"]
        self.literal: bool = values["literal"]
        if not self.collection_names and not self.tensor_regex:
            msg = (
                "Rule 'AllZero' needs parameter 'collection_names' or 'tensor_regex', "
                "and neither was given."
            )
            raise SMDebugValueError(msg)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the selected tensors of global step `step`."""
        trial = self.base_trial
        by_name = set(named(trial, step, [], self.tensor_regex))
        names = sorted(by_name.union(named(trial, step, self.collection_names, [])))
        answers = [
            self._judge(one, step, strict=self.literal or one.name in by_name)
            for one in saved(trial, step, names)
        ]
        if all(answer is None for answer in answers):
            return self.not_judged("no tensor to judge at this step")
        return any(answers)

    def _judge(self, one: Saved, step: int, *, strict: bool) -> bool | None:
        """Say whether one tensor is zero, or None if that is not to be told."""
        if not strict and "bias" in one.name.lower() and one.tensor.steps()[0] == step:
            return None
        array = view(one, step)
        if array is None:
            return self._judge_reductions(one, step)
        if array.dtype.kind not in "biufcV" or array.size <= (0 if strict else 1):
            return None
        share = 100.0 * (array.size - int(np.count_nonzero(array))) / array.size
        if share < self.threshold:
            return False
        return self.found(step, one.name, one.worker, share, self.threshold)

    def _judge_reductions(self, one: Saved, step: int) -> bool | None:
        if self.threshold < _ALL:
            return None
        values = saved_reductions(one, step)
        extremes = [values.get(key) for key in (("min", False), ("max", False))]
        top = values.get(("max", True))
        if top is None and None in extremes:
            return None
        if top == 0 or extremes == [0, 0]:
            note = "Told from saved reductions."
            return self.found(step, one.name, one.worker, _ALL, self.threshold, note)
        return False
