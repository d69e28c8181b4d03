"""SampledTimes: when the steps of a run were written, in bounded memory."""

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_SAMPLES: Final = 1 << 17


class SampledTimes:
    """A time for each of many steps, in seconds since the epoch; 0 is unknown.

    Of up to `MAX_SAMPLES` steps, each time is kept. Of more, every second, fourth or so is kept,
    and the last.
    """

    def __init__(self) -> None:
        self._stride = 1
        self._count = 0
        self._last = 0.0
        self._samples = array("d")  # of the steps at multiples of the stride

    def __len__(self) -> int:
        return self._count

    def append(self, time: float) -> None:
        """Add the time of one step."""
        if self._count % self._stride == 0:
            self._samples.append(time)
            self._thin_out()
        self._count += 1
        self._last = time

    def extend(self, times: NDArray[np.float64]) -> None:
        """Add the times of several steps."""
        if not len(times):
            return
        self._samples.frombytes(times[-self._count % self._stride :: self._stride].tobytes())
        self._count += len(times)
        self._last = float(times[-1])
        self._thin_out()

    def _thin_out(self) -> None:
        while len(self._samples) > MAX_SAMPLES:
            self._samples = self._samples[::2]
            self._stride *= 2

    def __getitem__(self, position: int) -> float:
        """Return the time of a step, or of the nearest one before whose time is kept."""
        if position == self._count - 1:
            return self._last
        return self._samples[position // self._stride]
