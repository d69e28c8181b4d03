"""Trial: the tensors that a training job saved."""

from rule_core.exceptions import (
    NoMoreData as NoMoreData,
    StepUnavailable as StepUnavailable,
    TensorUnavailable as TensorUnavailable,
)
from rule_core.model.collection import Collection as Collection
from rule_core.modes import ModeKeys as ModeKeys
from rule_core.trials.tensor import StepState as StepState, Tensor as Tensor
from rule_core.trials.trial import Trial as Trial
