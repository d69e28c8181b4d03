"""System samples of one window as rules look at them: by device, and by moment of a node."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from smdebug.profiler.system_samples import SystemSamples

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

CPU: Final = "CPUUtilization"
GPU: Final = "GPUUtilization"
GPU_MEMORY: Final = "GPUMemoryUtilization"
IO_WAIT: Final = "I/OWaitPercentage"
NETWORK: Final = "Algorithm"
MEMORY_USED: Final = "MemoryUsedPercent"  # a name, not a dimension
NO_GPU: Final = "no GPU utilisation in this window"
# Values beyond are no numbers of use, and sums and squares of them none at all.
LARGEST: Final = 1e30
# Samples of one moment have times that differ by this at most.
MOMENT_US: Final = 20_000


class Device(NamedTuple):
    """One device of one node: a GPU, a core."""

    node: str
    name: str


def sensible(samples: SystemSamples) -> SystemSamples:
    """Return the samples without those that are no finite numbers, or absurdly large ones."""
    return samples.where(np.abs(samples.value) < LARGEST)


def of_dimension(samples: SystemSamples, dimension: str) -> SystemSamples:
    """Return the sensible samples of a dimension."""
    return sensible(samples.of(dimension=dimension))


def by_device(samples: SystemSamples, dimension: str) -> dict[Device, Floats]:
    """Return the values of a dimension by device, each in the order of time; devices sorted."""
    found = of_dimension(samples, dimension)
    order = np.argsort(found.series, kind="stable")
    numbers, starts = np.unique(found.series[order], return_index=True)
    values: dict[Device, Floats] = {}
    if len(numbers):
        for number, part in zip(numbers, np.split(found.value[order], starts[1:]), strict=True):
            key = found.keys[number]
            device = Device(key.node, key.name or dimension)
            known = values.get(device)
            values[device] = part if known is None else np.concatenate((known, part))
    return {device: values[device] for device in sorted(values)}


def by_node(samples: SystemSamples) -> dict[str, NDArray[np.bool_]]:
    """Return for each node that has samples which of them are its own."""
    numbers: dict[str, int] = {}
    node_of = np.array([numbers.setdefault(key.node, len(numbers)) for key in samples.keys], int)
    nodes = node_of[samples.series]
    present = np.unique(nodes)
    names = list(numbers)
    return {names[number]: nodes == number for number in present}


def moments(time_us: Whole) -> Whole:
    """Return the indices at which a new moment begins.

    A sample more than `MOMENT_US` after the first one of a moment begins the next.

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
    more: list[int] = []
    for start, last in zip(starts[chained].tolist(), lasts[chained].tolist(), strict=True):
        times, at = time_us[: last + 1], start
        while (at := int(np.searchsorted(times, times[at] + MOMENT_US, "right"))) <= last:
            more.append(at)
    return np.sort(np.concatenate((starts, np.array(more, np.int64))))


def means(samples: SystemSamples) -> dict[str, Floats]:
    """Return by node the mean over its devices at each moment."""
    return {node: sums / counts for node, (sums, counts) in _at_moments(samples).items()}


def sums(samples: SystemSamples) -> dict[str, Floats]:
    """Return by node the sum over its samples at each moment."""
    return {node: sums for node, (sums, _) in _at_moments(samples).items()}


def _at_moments(samples: SystemSamples) -> Mapping[str, tuple[Floats, Any]]:
    """Return by node the sum and the number of the samples at each moment."""
    found = {}
    for node, own in by_node(samples).items():
        starts = moments(samples.time_us[own])
        values = samples.value[own]
        counts = np.diff(np.append(starts, len(values)))
        found[node] = np.add.reduceat(values, starts), counts
    return found
