"""Hook: saves what a PyTorch training job computes, by names and collections of smdebug's."""

from rule_core.frameworks.pytorch.hook import Hook
from rule_core.model.collection import CollectionKeys
from rule_core.model.collection_manager import CollectionManager
from rule_core.saving.current_hook import set_hook

__all__ = ["CollectionKeys", "CollectionManager", "Hook", "set_hook"]
