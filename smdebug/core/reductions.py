"""Reductions: scalars computed from all elements of a tensor."""

from rule_core.exceptions import SMDebugValueError as SMDebugValueError
from rule_core.model.reductions import Reduction as Reduction, compute as compute
