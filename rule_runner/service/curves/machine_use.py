"""MachineUse: turns samples of system metrics into one curve for each node, or each GPU."""

import enum
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rule_core.profiler.system.columns import SystemColumns
from rule_core.profiler.system.samples import SeriesKey, SeriesTable

LARGEST: Final = 1e30  # as in the statistics of profiler rules
_TICK_S: Final = 0.02  # samples of one tick are closer
_MS_PER_S: Final = 1000


class ProfileKind(enum.StrEnum):
    """What a curve of a profile shows; curves of one kind share a chart."""

    STEP_TIME = "step_time"
    PHASE = "phase"
    GPU = "gpu"
    CPU = "cpu"
    GPU_MEMORY = "gpu_memory"
    MEMORY = "memory"
    IO_WAIT = "io_wait"
    DISK = "disk"
    NETWORK = "network"


_OF_DEVICE: Final = {
    "GPUUtilization": ProfileKind.GPU,
    "GPUMemoryUtilization": ProfileKind.GPU_MEMORY,
}
_OF_NODE: Final = {
    "CPUUtilization": ProfileKind.CPU,
    "I/OWaitPercentage": ProfileKind.IO_WAIT,
}
_BY_NAME: Final = {
    "MemoryUsedPercent": (ProfileKind.MEMORY, ""),
    "ReceiveBytesPerSecond": (ProfileKind.NETWORK, "received"),
    "TransmitBytesPerSecond": (ProfileKind.NETWORK, "sent"),
    "ReadThroughputInBytesPerSecond": (ProfileKind.DISK, "read"),
    "WriteThroughputInBytesPerSecond": (ProfileKind.DISK, "written"),
}


class CurveKey(NamedTuple):
    """A curve: its kind, its node, and the device or quantity of that node."""

    kind: ProfileKind
    node: str
    detail: str = ""

    @property
    def name(self) -> str:
        """The name of the curve among those of its kind."""
        return f"{self.node} {self.detail}".strip()


class UseCurve(NamedTuple):
    """The values of a curve in one file.

    Attributes
    ----------
    time_ms
        Milliseconds since the epoch, ascending; shape ``(n,)``.
    values
        The mean over the cores of a node, or the value of a device; shape ``(n,)``.
    """

    key: CurveKey
    time_ms: NDArray[np.int64]
    values: NDArray[np.float64]


class MachineUse:
    """Turns the files of system metrics into curves.

    Attributes
    ----------
    series
        Numbers the series of the files.
    """

    def __init__(self) -> None:
        self.series = SeriesTable()
        self._keys: dict[CurveKey, int] = {}
        self._curve_of = np.empty(0, np.int64)  # by number of the series; -1: none

    def curves(self, columns: SystemColumns) -> Iterator[UseCurve]:
        """Yield the curves of a file; values that are not finite, or absurdly large, are dropped.

        Parameters
        ----------
        columns
            The samples of the file, whose series `series` has numbered.
        """
        self._number()
        curve = self._curve_of[columns.series]
        chosen = np.flatnonzero((curve >= 0) & (np.abs(columns.value) < LARGEST))
        order = chosen[np.argsort(curve[chosen], kind="stable")]
        numbers, starts = np.unique(curve[order], return_index=True)
        keys = list(self._keys)
        for key_index, samples in zip(numbers, np.split(order, starts[1:]), strict=False):
            yield _curve(keys[key_index], columns.time_s[samples], columns.value[samples])

    def _number(self) -> None:
        """Assign curves to new series."""
        new = self.series.keys[len(self._curve_of) :]
        numbers = [
            -1 if key is None else self._keys.setdefault(key, len(self._keys))
            for key in map(_key_of, new)
        ]
        self._curve_of = np.concatenate((self._curve_of, np.array(numbers, np.int64)))


def _key_of(series: SeriesKey) -> CurveKey | None:
    """Return the curve that a series belongs to; None if it is in no chart."""
    name = series.name or ""
    if kind := _OF_DEVICE.get(series.dimension):
        return CurveKey(kind, series.node, name)
    if kind := _OF_NODE.get(series.dimension):
        return CurveKey(kind, series.node)
    kind, device = _BY_NAME.get(name, (None, ""))
    return CurveKey(kind, series.node, device) if kind else None


def _curve(key: CurveKey, time_s: NDArray[np.float64], values: NDArray[np.float64]) -> UseCurve:
    """Return the mean of the samples of each tick."""
    starts = np.flatnonzero(np.diff(time_s, prepend=-np.inf) > _TICK_S)
    counts = np.diff(np.append(starts, len(values)))
    means = np.add.reduceat(values, starts) / counts
    return UseCurve(key, (time_s[starts] * _MS_PER_S).astype(np.int64), means)
