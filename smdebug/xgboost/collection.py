"""Collection: a named set of tensors, and the manager of a hook's collections."""

from rule_core.model.collection import Collection, CollectionKeys
from rule_core.model.collection_manager import CollectionManager

__all__ = ["Collection", "CollectionKeys", "CollectionManager"]
