"""Collection: a named set of tensors, and the manager of a hook's collections."""

from rule_core.model.collection import Collection as Collection, CollectionKeys as CollectionKeys
from rule_core.model.collection_manager import CollectionManager as CollectionManager
