"""Reductions: scalars computed from all elements of a tensor."""

from rule_core.exceptions import SMDebugValueError
from rule_core.model.reductions import Reduction, compute

__all__ = ["Reduction", "SMDebugValueError", "compute"]
