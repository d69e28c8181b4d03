"""The system samples of one window, by device and by moment of a node."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.rules.extensions import SeriesKey, SystemSamples

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CPU: Final = "CPUUtilization"
GPU: Final = "GPUUtilization"
GPU_MEMORY: Final = "GPUMemoryUtilization"
IO_WAIT: Final = "I/OWaitPercentage"
NETWORK: Final = "Algorithm"
MEMORY_USED: Final = "MemoryUsedPercent"  # a name, not a dimension
NO_GPU: Final = "no GPU utilisation in this window"
# Larger values are meaningless, and their sums and squares overflow.
LARGEST_VALUE: Final = 1e30
# The largest time difference of samples of one moment.
MOMENT_US: Final = 20_000


class Device(NamedTuple):
    """One device of one node: a GPU, a core."""

    node: str
    name: str


def finite(samples: SystemSamples) -> SystemSamples:
    """Return the samples without non-finite and absurdly large values."""
    return samples.where(np.abs(samples.value) < LARGEST_VALUE)


def of_series(samples: SystemSamples, is_selected: Callable[[SeriesKey], bool]) -> SystemSamples:
    """Return the finite samples of some series."""
    chosen = np.array([is_selected(key) for key in samples.keys], bool)
    return finite(samples.where(chosen[samples.series]))


def of_dimension(samples: SystemSamples, dimension: str) -> SystemSamples:
    """Return the finite samples of a dimension."""
    return of_series(samples, lambda key: key.dimension == dimension)


def by_device(samples: SystemSamples, dimension: str) -> dict[Device, Floats]:
    """Return the values of a dimension in order of time, by sorted device."""
    samples_of_dimension = of_dimension(samples, dimension)
    order = np.argsort(samples_of_dimension.series, kind="stable")
    numbers, starts = np.unique(samples_of_dimension.series[order], return_index=True)
    values: dict[Device, Floats] = {}
    if len(numbers):
        for number, part in zip(
            numbers, np.split(samples_of_dimension.value[order], starts[1:]), strict=True
        ):
            key = samples_of_dimension.keys[number]
            device = Device(key.node, key.name or dimension)
            earlier = values.get(device)
            values[device] = part if earlier is None else np.concatenate((earlier, part))
    return {device: values[device] for device in sorted(values)}


def by_node(samples: SystemSamples) -> dict[str, NDArray[np.bool_]]:
    """Return a mask of its samples for each node that has any."""
    numbers: dict[str, int] = {}
    node_of = np.array([numbers.setdefault(key.node, len(numbers)) for key in samples.keys], int)
    nodes = node_of[samples.series]
    present = np.unique(nodes)
    names = list(numbers)
    return {names[number]: nodes == number for number in present}


def moments(time_us: Ints) -> Ints:
    """Return the indices at which moments start.

    A sample more than `MOMENT_US` after the first one of a moment starts the next.

    Parameters
    ----------
    time_us
        Ascending; at least one.
    """
    breaks = np.flatnonzero(np.diff(time_us) > MOMENT_US) + 1
    starts = np.concatenate((np.zeros(1, np.int64), breaks))
    lasts = np.append(breaks, len(time_us)) - 1
    chained = time_us[lasts] - time_us[starts] > MOMENT_US
    if not chained.any():
        return starts
    extra: list[int] = []
    for start, last in zip(starts[chained].tolist(), lasts[chained].tolist(), strict=True):
        times, index = time_us[: last + 1], start
        while (index := int(np.searchsorted(times, times[index] + MOMENT_US, "right"))) <= last:
            extra.append(index)
    return np.sort(np.concatenate((starts, np.array(extra, np.int64))))


def means(samples: SystemSamples) -> dict[str, Floats]:
    """Return the mean over the devices of each node at each moment."""
    return {node: sums / counts for node, (sums, counts) in _at_moments(samples).items()}


def sums(samples: SystemSamples) -> dict[str, Floats]:
    """Return the sum over the samples of each node at each moment."""
    return {node: sums for node, (sums, _) in _at_moments(samples).items()}


def _at_moments(samples: SystemSamples) -> Mapping[str, tuple[Floats, Any]]:
    """Return the sum and the number of the samples of each node at each moment."""
    by_name = {}
    for node, is_of_node in by_node(samples).items():
        starts = moments(samples.time_us[is_of_node])
        values = samples.value[is_of_node]
        counts = np.diff(np.append(starts, len(values)))
        by_name[node] = np.add.reduceat(values, starts), counts
    return by_name
