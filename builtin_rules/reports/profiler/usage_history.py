"""UsageHistory: how much of each device was used over the whole job, in bounded memory.

Time is divided into `BUCKETS` intervals, which double in length whenever the job outgrows them. The
minimum and maximum of each interval are exact, so no peak is lost. The median is that of a
histogram with bins of one percentage point.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from builtin_rules.profiler.statistics.samples import (
    CPU,
    GPU,
    GPU_MEMORY,
    IO_WAIT,
    MEMORY_USED,
    Floats,
    Ints,
    finite,
)
from smdebug.rules.extensions import SeriesKey, SystemSamples

BUCKETS: Final = 240
FIRST_US: Final = 1_000_000  # initial length of a bucket
BINS: Final = 101  # of percentages; larger values are in the last one
TRACKS: Final = 600  # 58 MB
_PER_DEVICE: Final[Mapping[str, str]] = {GPU: "use", GPU_MEMORY: "memory"}
_PER_NODE: Final[Mapping[str, str]] = {CPU: "all cores", IO_WAIT: "I/O wait of all cores"}


class UsageTrack(NamedTuple):
    """One line of a chart: a GPU, its memory, the cores of a node, or its memory."""

    node: str
    kind: str  # the dimension, or `MEMORY_USED`
    device: str


@dataclass(frozen=True, slots=True)
class UsageBand:
    """The usage of one track over time.

    Attributes
    ----------
    time_us
        The middle of each interval with samples; shape ``(n,)``.
    low, middle, high
        Minimum, median and maximum of each interval, in percent; shape ``(n,)``.
    samples
        The total number of samples.
    """

    time_us: Floats
    low: Floats
    middle: Floats
    high: Floats
    samples: int


class UsageHistory:
    """The usage of all devices over time.

    Parameters
    ----------
    begin_us
        Start of the job, in epoch microseconds.

    Attributes
    ----------
    left_out
        The number of devices left out because there were too many.
    """

    def __init__(self, begin_us: int) -> None:
        self._begin = begin_us
        self._length = FIRST_US
        self._tracks: dict[UsageTrack, int] = {}
        self._track_of = np.empty(0, np.int64)  # by number of the series; -1: none
        self._low = np.empty((0, BUCKETS))
        self._high = np.empty((0, BUCKETS))
        self._counts = np.empty((0, BUCKETS, BINS), np.uint32)
        self.left_out = 0

    def add(self, samples: SystemSamples) -> None:
        """Add the samples of a window."""
        self._number(samples.keys)
        chosen = finite(samples.where(self._track_of[samples.series] >= 0))
        if not len(chosen):
            return
        self._stretch(int(chosen.time_us[-1]))
        bucket = np.maximum(chosen.time_us - self._begin, 0) // self._length
        place: Ints = self._track_of[chosen.series] * BUCKETS + bucket
        order = np.argsort(place, kind="stable")
        place, values = place[order], chosen.value[order]
        first = np.flatnonzero(np.diff(place, prepend=-1))
        cells = place[first]
        low, high = self._low.reshape(-1), self._high.reshape(-1)
        low[cells] = np.minimum(low[cells], np.minimum.reduceat(values, first))
        high[cells] = np.maximum(high[cells], np.maximum.reduceat(values, first))
        bins = np.clip(np.floor(values), 0, BINS - 1).astype(np.int64)
        cells, counts = np.unique(place * BINS + bins, return_counts=True)
        self._counts.reshape(-1)[cells] += counts.astype(np.uint32)

    def _number(self, keys: tuple[SeriesKey, ...]) -> None:
        """Assign track numbers to new series."""
        count = len(self._track_of)
        if len(keys) == count:
            return
        new = [self._track(key) for key in keys[count:]]
        self._track_of = np.concatenate((self._track_of, np.array(new, np.int64)))
        added = len(self._tracks) - len(self._low)
        if added:
            self._low = np.concatenate((self._low, np.full((added, BUCKETS), np.inf)))
            self._high = np.concatenate((self._high, np.full((added, BUCKETS), -np.inf)))
            room = np.zeros((added, BUCKETS, BINS), np.uint32)
            self._counts = np.concatenate((self._counts, room))

    def _track(self, key: SeriesKey) -> int:
        if key.dimension in _PER_DEVICE:
            track = UsageTrack(key.node, key.dimension, key.name or key.dimension)
        elif key.dimension in _PER_NODE:
            track = UsageTrack(key.node, key.dimension, _PER_NODE[key.dimension])
        elif key.name == MEMORY_USED:
            track = UsageTrack(key.node, MEMORY_USED, "memory")
        else:
            return -1
        if track not in self._tracks and len(self._tracks) >= TRACKS:
            self.left_out += 1
            return -1
        return self._tracks.setdefault(track, len(self._tracks))

    def _stretch(self, time_us: int) -> None:
        """Double the length of the buckets until they cover a time."""
        while time_us - self._begin >= BUCKETS * self._length:
            self._length *= 2
            merge_buckets(self._low.T, np.minimum, np.inf)
            merge_buckets(self._high.T, np.maximum, -np.inf)
            merge_buckets(self._counts.swapaxes(0, 1), np.add, 0)

    def bands(self) -> Iterator[tuple[UsageTrack, UsageBand]]:
        """Yield the usage of each track with samples, ordered by node."""
        for track in sorted(self._tracks, key=_in_order):
            index = self._tracks[track]
            counts = self._counts[index]
            totals = counts.sum(axis=1)
            filled = np.flatnonzero(totals)
            low, high = self._low[index, filled], self._high[index, filled]
            middle = np.clip(_medians(counts[filled], totals[filled]), low, high)
            time_us = self._begin + (filled.astype(np.float64) + 0.5) * self._length
            yield track, UsageBand(time_us, low, middle, high, int(totals.sum()))


def merge_buckets(buckets: NDArray[Any], combine: np.ufunc, empty: float) -> None:
    """Merge neighbouring buckets along the first axis, in place; the second half is empty."""
    half = combine(buckets[::2], buckets[1::2])
    buckets[: len(half)], buckets[len(half) :] = half, empty


def _in_order(track: UsageTrack) -> tuple[str, int, str]:
    """Return a sort key: by node, processors first, ``gpu10`` after ``gpu9``."""
    kinds = (CPU, IO_WAIT, MEMORY_USED, GPU, GPU_MEMORY)
    return track.node, kinds.index(track.kind), f"{len(track.device):04}{track.device}"


def _medians(counts: NDArray[np.uint32], totals: Ints) -> Floats:
    """Return the median of each histogram: the middle of its bin, or 100 for the last one."""
    below = np.cumsum(counts, axis=1) * 2 < totals[:, None]
    bins = below.sum(axis=1).astype(np.float64)
    medians: Floats = np.where(bins < BINS - 1, bins + 0.5, bins)
    return medians
