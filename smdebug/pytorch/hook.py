"""Hook: saves tensors of a PyTorch training job."""

from rule_core.frameworks.pytorch.hook import Hook
from rule_core.model.collection import CollectionKeys
from rule_core.model.collection_manager import CollectionManager
from rule_core.saving.current_hook import set_hook

__all__ = ["CollectionKeys", "CollectionManager", "Hook", "set_hook"]
