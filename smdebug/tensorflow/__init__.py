"""TensorFlow: what scripts imported from here, for Keras 3 on any backend; nothing else is served.

Hooks of sessions and estimators went with TensorFlow 1, and a loop with a gradient tape of its own
takes `smdebug.core.hook.Hook` and its `save_tensor`.
"""

from smdebug.keras import (
    Collection,
    CollectionKeys,
    KerasHook,
    ReductionConfig,
    SaveConfig,
    SaveConfigMode,
    del_hook,
    get_hook,
    modes,
    set_hook,
)

__all__ = [
    "Collection",
    "CollectionKeys",
    "KerasHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
