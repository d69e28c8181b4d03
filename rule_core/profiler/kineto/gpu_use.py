"""GPUUse: how busy a GPU was, and how much of its memory was in use, every 100 ms."""

from array import array
from typing import Final

import numpy as np

from rule_core.profiler.traces.intervals import Floats, union

WINDOW_US: Final = 100_000
_UNMERGED: Final = 1 << 20  # intervals


class GPUUse:
    """The kernels of one GPU, and the memory in use on it; times are those of the trace.

    Kernels are kept as disjoint intervals, at most 16 bytes for each.

    Attributes
    ----------
    memory
        By window, the time of its last sample and the memory in use then, in bytes.
    """

    def __init__(self) -> None:
        self.memory: dict[int, tuple[float, int]] = {}
        self._bounds = array("d")
        self._merge_at = 2 * _UNMERGED

    def add_kernel(self, start: float, end: float) -> None:
        """Add a time in which the GPU was busy."""
        self._bounds.append(start)
        self._bounds.append(end)
        if len(self._bounds) >= self._merge_at:
            merged = union(np.frombuffer(self._bounds).reshape(-1, 2).copy())
            self._bounds = array("d", merged.ravel().tobytes())
            self._merge_at = len(self._bounds) + 2 * _UNMERGED

    def add_memory(self, time: float, window: int, used: int) -> None:
        """Add a sample of the memory in use."""
        if time >= self.memory.get(window, (time, 0))[0]:
            self.memory[window] = time, used

    @property
    def has_kernels(self) -> bool:
        """Whether the GPU was ever busy."""
        return len(self._bounds) > 0

    def busy(self, edges: Floats) -> Floats:
        """Return the busy time between neighbouring edges.

        Parameters
        ----------
        edges
            Ascending times, shape ``(n + 1,)``.

        Returns
        -------
        NDArray
            Microseconds, shape ``(n,)``.
        """
        intervals = union(np.frombuffer(self._bounds).reshape(-1, 2))
        if not len(intervals):
            return np.zeros(len(edges) - 1)
        lengths = intervals[:, 1] - intervals[:, 0]
        before = np.concatenate(([0.0], np.cumsum(lengths)))
        index = np.searchsorted(intervals[:, 0], edges, "right") - 1
        inside = np.clip(edges - intervals[index, 0], 0.0, lengths[index])
        so_far = np.where(index >= 0, before[index] + inside, 0.0)
        busy: Floats = np.diff(so_far)
        return busy
