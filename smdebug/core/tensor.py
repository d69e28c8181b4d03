"""Tensor: the values of one tensor over the steps of a trial."""

from rule_core.exceptions import (
    ShapeUnavailableForStep as ShapeUnavailableForStep,
    SMDebugNotImplementedError as SMDebugNotImplementedError,
    TensorUnavailableForStep as TensorUnavailableForStep,
)
from rule_core.modes import ModeKeys as ModeKeys
from rule_core.trials.tensor import StepState as StepState, Tensor as Tensor
