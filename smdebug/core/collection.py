"""Collection: a named set of tensors, selected by names and patterns."""

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import SCALAR_COLLECTIONS, Collection, CollectionKeys
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig

__all__ = [
    "SCALAR_COLLECTIONS",
    "Collection",
    "CollectionKeys",
    "ReductionConfig",
    "SMDebugTypeError",
    "SMDebugValueError",
    "SaveConfig",
]
