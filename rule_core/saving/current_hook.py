"""The current hook, for code without a reference to it."""

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


def get_hook_of(cls: type[H], create_if_not_exists: bool = False) -> H | None:
    """Return the current hook if it is a `cls`, else None or a new hook."""
    for hook in _current:
        if isinstance(hook, cls):
            return hook
    if not create_if_not_exists:
        return None
    hook = cls.create_from_json_file()
    set_hook(hook)
    return hook
