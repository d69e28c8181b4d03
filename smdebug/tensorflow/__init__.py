"""TensorFlow: the names of `smdebug.keras`."""

from rule_core.absent_names import absent_names
from rule_core.frameworks.keras.collection import Collection
from rule_core.frameworks.keras.hook import KerasHook, get_hook
from rule_core.model.collection import CollectionKeys
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys as modes  # noqa: N813 - the documented name
from rule_core.saving.current_hook import del_hook, set_hook
from rule_core.trials.create_trial import create_trial

__all__ = [
    "Collection",
    "CollectionKeys",
    "KerasHook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "create_trial",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]

_KERAS = "smdebug.tensorflow.KerasHook with Keras 3"
__getattr__ = absent_names(__name__, {"SessionHook": _KERAS, "EstimatorHook": _KERAS})
