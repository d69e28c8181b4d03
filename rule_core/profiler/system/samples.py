"""SystemSamples: system metrics in columns, so that millions of samples fit in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_SERIES: Final = 100_000  # per reader, so that a corrupt file cannot fill the memory


class SeriesKey(NamedTuple):
    """The identity of a series of samples.

    Attributes
    ----------
    node
        Such as ``algo-1``.
    type
        Such as ``cpu``, ``gpu``, ``memory``, ``network``, ``i/o``.
    dimension
        Such as ``CPUUtilization``.
    name
        Such as ``cpu0``; None if the samples have none.
    """

    node: str
    type: str
    dimension: str
    name: str | None


class SeriesTable:
    """The series that a reader has seen, with permanent numbers in order of appearance."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, str, str | None], int] = {}
        self._keys: tuple[SeriesKey, ...] = ()

    @property
    def keys(self) -> tuple[SeriesKey, ...]:
        """The series, by number."""
        if len(self._keys) < len(self._numbers):
            self._keys = tuple(SeriesKey(*key) for key in self._numbers)
        return self._keys

    def numbers(self, keys: Sequence[tuple[str, str, str, str | None]]) -> NDArray[np.int32]:
        """Return the numbers of series, adding new ones.

        Parameters
        ----------
        keys
            Node, type, dimension and name, as in `SeriesKey`.

        Returns
        -------
        NDArray
            Shape ``(len(keys),)``; -1 for those beyond `MOST_SERIES`.
        """
        numbers = self._numbers
        try:
            return np.fromiter(map(numbers.__getitem__, keys), np.int32, len(keys))
        except KeyError:
            new = (key for key in dict.fromkeys(keys) if key not in numbers)
            for key in islice(new, MOST_SERIES - len(numbers)):
                numbers[key] = len(numbers)
        return np.fromiter((numbers.get(key, -1) for key in keys), np.int32, len(keys))


@dataclass(frozen=True, slots=True)
class SystemSamples:
    """Samples of system metrics in columns, ascending in time (equal times keep file order).

    Attributes
    ----------
    time_us
        Whole microseconds since the epoch, rounded down; shape ``(n,)``.
    value
        In the unit of the dimension; shape ``(n,)``.
    series
        Index into `keys`; shape ``(n,)``.
    keys
        All series seen so far, even without a sample here. The tuple only grows, and a series keeps
        its number for the life of a trial or reader.
    """

    time_us: NDArray[np.int64]
    value: NDArray[np.float64]
    series: NDArray[np.int32]
    keys: tuple[SeriesKey, ...]

    def __len__(self) -> int:
        return len(self.time_us)

    def of(
        self,
        dimension: str | None = None,
        node: str | None = None,
        type: str | None = None,  # noqa: A002 - the name of the column
    ) -> "SystemSamples":
        """Return the samples of this dimension, node and type; None matches any."""
        matches = [
            dimension in {None, key.dimension}
            and node in {None, key.node}
            and type in {None, key.type}
            for key in self.keys
        ]
        return self.where(np.array(matches, bool)[self.series])

    def where(self, chosen: NDArray[np.bool_]) -> "SystemSamples":
        """Return the samples where `chosen`, of shape ``(n,)``, is True."""
        return SystemSamples(
            self.time_us[chosen], self.value[chosen], self.series[chosen], self.keys
        )


def joined(
    parts: Sequence[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int32]]],
    keys: tuple[SeriesKey, ...],
    *,
    distinct: bool = False,
) -> SystemSamples:
    """Concatenate the samples of several files.

    Parameters
    ----------
    parts
        Time, value and series of each file, in the order of the files.
    keys
        The series.
    distinct
        Whether to remove duplicate samples, for files that overlap.
    """
    if not parts:
        return SystemSamples(np.empty(0, np.int64), np.empty(0), np.empty(0, np.int32), keys)
    time_us, value, series = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if distinct:
        rows = np.rec.fromarrays([time_us, series, value])
        chosen = np.sort(np.unique(rows, return_index=True)[1])
        time_us, value, series = time_us[chosen], value[chosen], series[chosen]
    order = np.argsort(time_us, kind="stable")
    return SystemSamples(time_us[order], value[order], series[order], keys)
