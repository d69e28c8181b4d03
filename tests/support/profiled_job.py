"""Writes small jobs with system metrics and framework timelines, whose every number is known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from profiler_writer import Series, cpu, gpu, write_samples
from timeline_writer import PYTHON, Event, step, write


def each_second(numbers: ArrayLike, **more: Any) -> list[Series]:
    """Return series of all types that have a sample a second, whose values depend on numbers."""
    values = np.asarray(numbers)
    more = {"every_s": 1.0, **more}
    return [
        cpu(values % 101, **more),
        Series("cpu", "I/OWaitPercentage", "cpu1", values * 7 % 53 / 10, **more),
        gpu(values * 37 % 101 / 2, **more),
        Series("memory", "Memory", None, np.full(len(values), 40.5), **more),
        Series("network", "Platform", "eth0", np.full(len(values), 3.0), **more),
    ]


def loading(worker: int, ts: int, dur: int) -> Event:
    """Return the event of a batch that a data loader gets."""
    name = "_MultiProcessingDataLoaderIter::GetNext"
    args = {"pid": 11, "worker_id": worker, "num_workers": 2, "pin_memory": True}
    return Event("DataLoaderIter", name, ts, dur, args)


def steps_of(
    modes: Sequence[str], *, first: int = 2_000_000, every: int = 4_000_000
) -> list[Event]:
    """Return steps in these modes, each with a forward pass, an operator and a batch inside."""
    events = []
    counts: dict[str, int] = {}
    for index, mode in enumerate(modes):
        number = counts[mode] = counts.get(mode, -1) + 1
        ts = first + index * every
        events += [
            step(number, ts, every - 500_000, mode),
            Event("Forward", "Forward", ts + 100, 1_000_000 + index, {"step_num": str(number)}),
            Event("cpu_functions", "aten::add", ts + 200, 50, {"layer_name": f"layer{index % 2}"}),
            loading(index % 2, ts + 2_000_000, 100 * (index + 1) ** 2),
        ]
    return events


def write_job(root: Path, *, nodes: int = 1) -> Path:
    """Write a job of two minutes: six steps of TRAIN and EVAL a node, samples every second."""
    for node in range(1, nodes + 1):
        series = each_second(np.arange(120) + 5 * node, begin_s=0.0371, node=f"algo-{node}")
        twice = Series("network", "Platform", "eth0", [3.0] * 2, f"algo-{node}", 59.0371, 60.0)
        write_samples(root, *series, twice)
        events = steps_of(["TRAIN"] * 4 + ["EVAL"] * 2, first=2_000_000 + 1000 * node)
        write(root, events, node=f"1{node}-algo-{node}", kind=PYTHON)
    return root
