"""Collection: a collection that modules of PyTorch can be added to."""

from rule_core.frameworks.pytorch.collection import Collection as Collection
from rule_core.model.collection import CollectionKeys as CollectionKeys
from rule_core.model.collection_manager import CollectionManager as CollectionManager
