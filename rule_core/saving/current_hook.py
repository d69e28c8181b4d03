"""The current hook, for code without a reference to it."""

import os
from typing import TypeVar

from rule_core.saving.hook import Hook

H = TypeVar("H", bound=Hook)
_current: list[Hook] = []


def set_hook(hook: Hook) -> None:
    """Set the current hook."""
    _current[:] = [hook]


def del_hook() -> None:
    """Unset the current hook."""
    _current.clear()


def get_hook_of(
    cls: type[H],
    json_config_path: str | os.PathLike[str] | None = None,
    create_if_not_exists: bool = False,
) -> H | None:
    """Return the current hook if it is a `cls`, else None or a new hook.

    Parameters
    ----------
    cls
        Class of the hook.
    json_config_path
        Configuration of a new hook; see `smdebug.core.hook.Hook.create_from_json_file`.
    create_if_not_exists
        Whether to create a hook. Without a configuration file None is returned all the same.
    """
    for hook in _current:
        if isinstance(hook, cls):
            return hook
    if not create_if_not_exists:
        return None
    try:
        hook = cls.create_from_json_file(json_config_path)
    except FileNotFoundError:
        return None
    set_hook(hook)
    return hook
