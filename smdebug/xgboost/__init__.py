"""XGBoost: the hook, its configuration and the current hook, as `import smdebug.xgboost as smd`."""

from functools import partial

from smdebug.core.collection import Collection, CollectionKeys
from smdebug.core.current_hook import del_hook, get_hook_of, set_hook
from smdebug.core.modes import ModeKeys as modes  # noqa: N813 - the documented name
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig, SaveConfigMode
from smdebug.xgboost.hook import Hook

# ``get_hook(create_if_not_exists=False)``: the hook that was made last, or one by the JSON file.
get_hook = partial(get_hook_of, Hook)

__all__ = [
    "Collection",
    "CollectionKeys",
    "Hook",
    "ReductionConfig",
    "SaveConfig",
    "SaveConfigMode",
    "del_hook",
    "get_hook",
    "modes",
    "set_hook",
]
