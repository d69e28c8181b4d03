"""CollectionManager: the collections of a hook, in order of creation."""

from rule_core.exceptions import (
    SMDebugError as SMDebugError,
    SMDebugTypeError as SMDebugTypeError,
    SMDebugValueError as SMDebugValueError,
)
from rule_core.model.collection import Collection as Collection
from rule_core.model.collection_manager import CollectionManager as CollectionManager
