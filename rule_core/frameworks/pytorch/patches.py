"""Patches of PyTorch's functions, and objects that see the calls of patched functions."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, ClassVar


class Patch:
    """A function that is replaced until `restore`, under its own name and documentation.

    Parameters
    ----------
    owner, name
        A module or class, and the name of its function.
    wrap
        Returns what replaces the original.
    """

    def __init__(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        self._owner, self._name = owner, name
        self._original = vars(owner)[name]
        self._patch = functools.wraps(self._original)(wrap(self._original))
        setattr(owner, name, self._patch)

    def restore(self) -> None:
        """Restore the original, unless others have replaced the function since."""
        if vars(self._owner).get(self._name) is self._patch:
            setattr(self._owner, self._name, self._original)


class Watcher:
    """Base class of objects that see calls of functions, which are patched while any watches."""

    _watching: ClassVar[list[Any]]
    _patches: ClassVar[list[Patch]]

    def __init_subclass__(cls) -> None:
        cls._watching, cls._patches = [], []

    @classmethod
    def patched(cls) -> Iterator[Patch]:
        """Patch the functions, and yield the patches."""
        raise NotImplementedError

    def watch(self) -> None:
        """Start watching."""
        if not self._watching:
            self._patches.extend(self.patched())
        if self not in self._watching:
            self._watching.append(self)

    def unwatch(self) -> None:
        """Stop watching; the last one restores the functions."""
        if self in self._watching:
            self._watching.remove(self)
            while self._patches and not self._watching:
                self._patches.pop().restore()


def remove_all(handles: list[Any]) -> None:
    """Remove callbacks from modules, parameters or optimizers by their handles."""
    while handles:
        handles.pop().remove()
