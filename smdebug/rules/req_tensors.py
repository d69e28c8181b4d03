"""RequiredTensors: the tensors that must exist before a rule evaluates a step."""

from rule_core.exceptions import TensorUnavailable as TensorUnavailable
from rule_core.rules.requirements import RequiredTensors as RequiredTensors
