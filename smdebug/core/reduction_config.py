"""ReductionConfig: whether a hook saves a tensor's values, its shape or reductions."""

from rule_core.exceptions import SMDebugValueError as SMDebugValueError
from rule_core.model.reduction_config import ReductionConfig as ReductionConfig, split as split
