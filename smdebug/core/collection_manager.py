"""CollectionManager: the collections of a hook, in order of creation."""

from rule_core.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection
from rule_core.model.collection_manager import CollectionManager

__all__ = [
    "Collection",
    "CollectionManager",
    "SMDebugError",
    "SMDebugTypeError",
    "SMDebugValueError",
]
