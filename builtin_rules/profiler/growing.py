"""Arrays that grow with the job, within a bound: all values, thinned, and the newest, exactly."""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.samples import Device, Floats
from smdebug.profiler.analysis.rules.utils import box_statistics

GROWTH: Final = 1.25
DIGITS: Final = 4  # behind the point, of percentages in single precision
# 36 hours of two samples a second; of 64 GPUs at most 84 MB for each dimension.
POINTS_KEPT: Final = 1 << 18


class Thinned:
    """Values for quantiles: all of them up to a bound, then every second, every fourth, ...

    It costs 4 bytes a value, and a quarter more while it grows.

    Parameters
    ----------
    limit
        How many values are kept at most; an even number.
    """

    def __init__(self, limit: int = POINTS_KEPT) -> None:
        self.count = 0
        self._limit = limit
        self._stride = 1
        self._room = np.empty(0, np.float32)
        self._size = 0

    @property
    def values(self) -> NDArray[np.float32]:
        """The values that are kept, in their order; a view."""
        return self._room[: self._size]

    def extend(self, values: Floats) -> None:
        """Add values behind all others."""
        kept = values[-self.count % self._stride :: self._stride]
        self.count += len(values)
        while len(kept):
            part, kept = kept[: self._limit - self._size], kept[self._limit - self._size :]
            self._append(part)
            if self._size == self._limit:
                self._size //= 2
                self._room = self._room[::2].copy()
                self._stride *= 2
                kept = kept[::2]

    def _append(self, values: Floats) -> None:
        size = self._size + len(values)
        if size > len(self._room):
            room = np.empty(max(size, min(int(size * GROWTH), self._limit)), np.float32)
            room[: self._size] = self.values
            self._room = room
        self._room[self._size : size] = values
        self._size = size


class Series:
    """What is remembered of one series of samples.

    Parameters
    ----------
    keep
        How many of the newest values are kept exactly.

    Attributes
    ----------
    newest
        The newest values, `keep` at most, the latest last.
    """

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._all = Thinned()
        self.newest: Floats = np.empty(0)
        self.largest = -np.inf

    @property
    def count(self) -> int:
        """How many values there were."""
        return self._all.count

    @property
    def values(self) -> NDArray[np.float32]:
        """All values, thinned if there were very many."""
        return self._all.values

    def extend(self, values: Floats) -> None:
        """Add values behind all others; at least one."""
        self._all.extend(values)
        joined = np.concatenate((self.newest, values)) if len(values) < self._keep else values
        self.newest = joined[-self._keep :].copy()
        self.largest = max(self.largest, float(values.max()))

    def percentiles(self, *percents: float) -> list[float]:
        """Return percentiles of the newest values, interpolated between neighbours."""
        found: list[float] = np.percentile(self.newest, percents).tolist()
        return found

    def box(self) -> dict[str, float]:
        """Return quartiles and whiskers of all values, to the digits that are kept of them."""
        return {name: round(one, DIGITS) for name, one in box_statistics(self.values).items()}


def extend_all(
    known: dict[Device, Series], new: Mapping[Device, Floats], make: Callable[[], Series]
) -> None:
    """Add the values of a window to their series, which begin when they are first seen."""
    for device, values in new.items():
        if device not in known:
            known[device] = make()
        known[device].extend(values)
