"""Hook: saves tensors of a PyTorch training job."""

from rule_core.frameworks.pytorch.hook import Hook as Hook
from rule_core.model.collection import CollectionKeys as CollectionKeys
from rule_core.model.collection_manager import CollectionManager as CollectionManager
from rule_core.saving.current_hook import set_hook as set_hook
