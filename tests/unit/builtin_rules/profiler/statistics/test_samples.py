"""Samples of a window by device, node and moment."""

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial
from profiler_writer import BEGIN_US, Series, cpu, gpu, memory

from builtin_rules.profiler.statistics.samples import (
    CPU,
    GPU,
    Device,
    by_device,
    by_node,
    means,
    moments,
    of_dimension,
    sums,
)
from rule_core.profiler.system.samples import SystemSamples


def samples(*series: Series) -> SystemSamples:
    return FakeProfilerTrial(*series).system_samples(0, 2 * BEGIN_US)


@pytest.mark.parametrize(
    ("time_ms", "starts"),
    [
        ([0], [0]),
        ([0, 0, 0], [0]),
        ([0, 20], [0]),
        ([0, 21], [0, 1]),
        ([0, 500, 500, 1000], [0, 1, 3]),
        ([0, 15, 30, 45, 60], [0, 2, 4]),
        ([0, 15, 30, 500, 515, 530, 1000], [0, 2, 3, 5, 6]),
    ],
)
def test_moments(time_ms: list[int], starts: list[int]) -> None:
    assert moments(np.array(time_ms) * 1000).tolist() == starts


def test_values_by_device() -> None:
    found = by_device(
        samples(
            gpu([1.0, np.inf, 2.0]),
            gpu([3.0], node="algo-2"),
            gpu([4.0], None),  # type: ignore[arg-type] - samples may have no name
            memory([9.0]),
            # One device under two types, as no real tool writes.
            Series("other", "GPUUtilization", "gpu0", [5.0], begin_s=9.0),
        ),
        GPU,
    )
    assert {device: values.tolist() for device, values in found.items()} == {
        Device("algo-1", "gpu0"): [1.0, 2.0, 5.0],
        Device("algo-2", "gpu0"): [3.0],
        Device("algo-1", GPU): [4.0],
    }


def test_no_values() -> None:
    nothing = samples()
    assert (by_device(nothing, GPU), by_node(nothing), means(nothing), sums(nothing)) == (
        {},
        {},
        {},
        {},
    )


def test_means_and_sums_at_each_moment_of_each_node() -> None:
    found = of_dimension(
        samples(
            cpu([10.0, 20.0]),
            cpu([30.0], "cpu1", begin_s=0.02),
            cpu([7.0], node="algo-2", begin_s=0.01),
        ),
        CPU,
    )
    assert {node: values.tolist() for node, values in means(found).items()} == {
        "algo-1": [20.0, 20.0],
        "algo-2": [7.0],
    }
    assert sums(found)["algo-1"].tolist() == [40.0, 20.0]
