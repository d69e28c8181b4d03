"""Reductions: scalars of a tensor, element-wise over every shape, in one pass over its bytes."""

from rule_core.exceptions import SMDebugValueError
from rule_core.model.reductions import Reduction, compute

__all__ = ["Reduction", "SMDebugValueError", "compute"]
