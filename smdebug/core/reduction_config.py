"""ReductionConfig: what a hook saves of a tensor: which reductions, its values, its shape."""

from rule_core.exceptions import SMDebugValueError
from rule_core.model.reduction_config import ReductionConfig, split

__all__ = ["ReductionConfig", "SMDebugValueError", "split"]
