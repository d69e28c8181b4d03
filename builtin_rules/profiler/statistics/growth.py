"""Bounded histories of values: thinned values of the whole job, and the latest ones exactly."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.statistics.samples import Device, Floats
from smdebug.rules.extensions import box_statistics

GROWTH: Final = 1.25
DIGITS: Final = 4  # decimals of percentages in single precision
# 36 hours of two samples per second; at most 84 MB per dimension for 64 GPUs.
MAX_POINTS: Final = 1 << 18


class ThinnedValues:
    """Values for quantiles: all of them up to a limit, then every second, every fourth, ...

    Uses 4 bytes per value, and a quarter more while growing.

    Parameters
    ----------
    limit
        The largest number of values; even.
    """

    def __init__(self, limit: int = MAX_POINTS) -> None:
        self.count = 0
        self._limit = limit
        self._stride = 1
        self._room = np.empty(0, np.float32)
        self._size = 0

    @property
    def values(self) -> NDArray[np.float32]:
        """The remaining values in order; a view."""
        return self._room[: self._size]

    def extend(self, values: Floats) -> None:
        """Append values."""
        remaining = values[-self.count % self._stride :: self._stride]
        self.count += len(values)
        while len(remaining):
            free = self._limit - self._size
            self._append(remaining[:free])
            remaining = remaining[free:]
            if self._size == self._limit:
                self._size //= 2
                self._room = self._room[::2].copy()
                self._stride *= 2
                remaining = remaining[::2]

    def _append(self, values: Floats) -> None:
        size = self._size + len(values)
        if size > len(self._room):
            room = np.empty(max(size, min(int(size * GROWTH), self._limit)), np.float32)
            room[: self._size] = self.values
            self._room = room
        self._room[self._size : size] = values
        self._size = size


class DeviceHistory(ThinnedValues):
    """The samples of one device: all of them, thinned if there are very many, and the latest.

    Parameters
    ----------
    keep
        The number of latest values to keep exactly.

    Attributes
    ----------
    newest
        The latest values, at most `keep`, in order.
    """

    def __init__(self, keep: int) -> None:
        super().__init__()
        self._keep = keep
        self.newest: Floats = np.empty(0)
        self.largest = -np.inf

    def extend(self, values: Floats) -> None:
        """Append at least one value."""
        super().extend(values)
        joined = np.concatenate((self.newest, values)) if len(values) < self._keep else values
        self.newest = joined[-self._keep :].copy()
        self.largest = max(self.largest, float(values.max()))

    def has_percentile_below(self, percent: float, limit: float) -> bool:
        """Return whether a percentile of all values, with linear interpolation, is below a limit.

        It lies between two values that are next to each other in order, so it is computed only if
        the number of values below the limit leaves it open.
        """
        below = int(np.count_nonzero(self.values < np.float64(limit)))
        lower = int((len(self.values) - 1) * percent / 100)  # at most one off, by rounding
        if lower <= below <= lower + 2:
            return float(np.percentile(self.values, percent)) < limit
        return below > lower

    def box(self) -> dict[str, float]:
        """Return quartiles and whiskers of all values, rounded to their precision."""
        return {name: round(value, DIGITS) for name, value in box_statistics(self.values).items()}


class DeviceHistories(dict[Device, DeviceHistory]):
    """The histories of devices by device, each with `keep` values; see `DeviceHistory`."""

    def __init__(self, keep: int) -> None:
        super().__init__()
        self._keep = keep

    @property
    def points(self) -> int:
        """The largest number of values of a device so far."""
        return max((history.count for history in self.values()), default=0)

    def percentiles(self, devices: Iterable[Device], *percents: float) -> dict[Device, list[float]]:
        """Return percentiles of the latest values of devices, with linear interpolation."""
        by_length: defaultdict[int, list[Device]] = defaultdict(list)
        for device in devices:
            by_length[len(self[device].newest)].append(device)
        percentiles: dict[Device, list[float]] = {}
        for alike in by_length.values():
            newest = np.array([self[device].newest for device in alike])
            rows = np.percentile(newest, percents, axis=1).T.tolist()
            percentiles.update(zip(alike, rows, strict=True))
        return percentiles

    def extend(self, new: Mapping[Device, Floats]) -> None:
        """Append the values of a window, at least one for each of its devices."""
        for device, values in new.items():
            self.setdefault(device, DeviceHistory(self._keep)).extend(values)
