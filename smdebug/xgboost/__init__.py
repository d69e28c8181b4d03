"""XGBoost: the hook, its configuration and the current hook, as `import smdebug.xgboost as smd`."""

from smdebug.core.collection import Collection, CollectionKeys
from smdebug.core.current_hook import del_hook, get_hook_of, set_hook
from smdebug.core.modes import ModeKeys as modes  # noqa: N813 - the documented name
from smdebug.core.reduction_config import ReductionConfig
from smdebug.core.save_config import SaveConfig, SaveConfigMode
from smdebug.xgboost.hook import Hook


def get_hook(create_if_not_exists: bool = False) -> Hook | None:
    """Return the hook that was made last, or one by the JSON configuration if there is none.

    Parameters
    ----------
    create_if_not_exists
        Whether to make one, as `Hook.create_from_json_file` does.
    """
    return get_hook_of(Hook, create_if_not_exists)


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
