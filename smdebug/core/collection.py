"""Collection: a named set of tensors, selected by names and patterns."""

from rule_core.exceptions import (
    SMDebugTypeError as SMDebugTypeError,
    SMDebugValueError as SMDebugValueError,
)
from rule_core.model.collection import (
    SCALAR_COLLECTIONS as SCALAR_COLLECTIONS,
    Collection as Collection,
    CollectionKeys as CollectionKeys,
)
from rule_core.model.reduction_config import ReductionConfig as ReductionConfig
from rule_core.model.save_config import SaveConfig as SaveConfig
