"""Trial: the tensors that a training job saved."""

from rule_core.exceptions import NoMoreData, StepUnavailable, TensorUnavailable
from rule_core.model.collection import Collection
from rule_core.modes import ModeKeys
from rule_core.trials.tensor import StepState, Tensor
from rule_core.trials.trial import Trial

__all__ = [
    "Collection",
    "ModeKeys",
    "NoMoreData",
    "StepState",
    "StepUnavailable",
    "Tensor",
    "TensorUnavailable",
    "Trial",
]
