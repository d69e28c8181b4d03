"""BoundedCache: what was parsed last, up to a number of bytes."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedCache(Generic[T]):
    """Values by key; those that were not asked for longest are dropped first.

    Parameters
    ----------
    limit
        Bytes that are kept; None is all.
    size
        Returns how many bytes a value takes. One that takes more than `limit` is not kept.
    """

    def __init__(self, limit: int | None, size: Callable[[T], int]) -> None:
        self.limit = limit
        self.nbytes = 0
        self._size = size
        self._kept: OrderedDict[str, tuple[T, int]] = OrderedDict()

    def get(self, key: str) -> T | None:
        """Return a value, or None."""
        found = self._kept.get(key)
        if found is None:
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: str, value: T) -> None:
        """Keep a value, in the place of an older one."""
        self.drop(key)
        nbytes = self._size(value)
        if self.limit is not None and nbytes > self.limit:
            return
        self._kept[key] = (value, nbytes)
        self.nbytes += nbytes
        while self.limit is not None and self.nbytes > self.limit:
            _, (_, gone) = self._kept.popitem(last=False)
            self.nbytes -= gone

    def drop(self, key: str) -> None:
        """Forget a value, if it is kept."""
        if key in self._kept:
            self.nbytes -= self._kept.pop(key)[1]

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self.nbytes = 0
