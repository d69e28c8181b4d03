"""Tensor: the values of one tensor over the steps of a trial."""

from rule_core.exceptions import (
    ShapeUnavailableForStep,
    SMDebugNotImplementedError,
    TensorUnavailableForStep,
)
from rule_core.modes import ModeKeys
from rule_core.trials.tensor import StepState, Tensor

__all__ = [
    "ModeKeys",
    "SMDebugNotImplementedError",
    "ShapeUnavailableForStep",
    "StepState",
    "Tensor",
    "TensorUnavailableForStep",
]
