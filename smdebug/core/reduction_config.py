"""ReductionConfig: whether a hook saves a tensor's values, its shape or reductions."""

from rule_core.exceptions import SMDebugValueError
from rule_core.model.reduction_config import ReductionConfig, split

__all__ = ["ReductionConfig", "SMDebugValueError", "split"]
