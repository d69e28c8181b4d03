"""The current hook: the one that was made last, for code that has no reference to it."""

from typing import TypeVar

from smdebug.core.hook import Hook

H = TypeVar("H", bound=Hook)
_current: list[Hook] = []


def set_hook(hook: Hook) -> None:
    """Make a hook the current one."""
    _current[:] = [hook]


def del_hook() -> None:
    """Forget the current hook."""
    _current.clear()


def get_hook_of(cls: type[H], create_if_not_exists: bool = False) -> H | None:
    """Return the current hook if it is one of `cls`; else make one, if asked to."""
    for hook in _current:
        if isinstance(hook, cls):
            return hook
    if not create_if_not_exists:
        return None
    hook = cls.create_from_json_file()
    set_hook(hook)
    return hook
