"""RequiredTensors: the tensors that a rule wants to be there before it judges a step."""

from rule_core.exceptions import TensorUnavailable
from rule_core.rules.requirements import RequiredTensors

__all__ = ["RequiredTensors", "TensorUnavailable"]
