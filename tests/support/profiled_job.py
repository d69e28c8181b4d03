"""Writes small jobs with system metrics and framework timelines, whose every number is known."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from profiler_writer import key, line
from timeline_writer import PYTHON, START_US, Event, step, write, write_text

START_S = START_US // 1_000_000


class Sample(NamedTuple):
    """A sample of system metrics; `at_s` counts from the job's start."""

    at_s: float
    value: float
    name: str | None = "cpu0"
    type: str = "cpu"
    dimension: str = "CPUUtilization"


def write_samples(
    root: Path, samples: Iterable[Sample], *, node: str = "algo-1", minute: int = 0
) -> Path:
    """Write a file of system metrics, named by the minute after the job's start."""
    lines = (
        line(one.value, START_S + one.at_s, one.dimension, one.name, node, one.type)
        for one in samples
    )
    return write_text(root, key(START_S + 60 * minute, node), b"".join(lines))


def tick(at_s: float, number: int) -> list[Sample]:
    """Return the samples of one moment, with values that depend on a number."""
    return [
        Sample(at_s, float(number % 101), "cpu0"),
        Sample(at_s, number * 7 % 53 / 10, "cpu1", dimension="I/OWaitPercentage"),
        Sample(at_s, number * 37 % 101 / 2, "gpu0", "gpu", "GPUUtilization"),
        Sample(at_s, 40.5, None, "memory", "Memory"),
        Sample(at_s, 3.0, "eth0", "network", "Platform"),
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
    for at, mode in enumerate(modes):
        number = counts[mode] = counts.get(mode, -1) + 1
        ts = first + at * every
        events += [
            step(number, ts, every - 500_000, mode),
            Event("Forward", "Forward", ts + 100, 1_000_000 + at, {"step_num": str(number)}),
            Event("cpu_functions", "aten::add", ts + 200, 50, {"layer_name": f"layer{at % 2}"}),
            loading(at % 2, ts + 2_000_000, 100 * (at + 1) ** 2),
        ]
    return events


def write_job(root: Path, *, nodes: int = 1) -> Path:
    """Write a job of two minutes: six steps of TRAIN and EVAL a node, samples every second."""
    for node in range(1, nodes + 1):
        for minute in (0, 1):
            seconds = range(60 * minute, 60 * (minute + 1))
            samples = [one for at in seconds for one in tick(at + 0.0371, at + 5 * node)]
            write_samples(root, [*samples, samples[-1]], node=f"algo-{node}", minute=minute)
        events = steps_of(["TRAIN"] * 4 + ["EVAL"] * 2, first=2_000_000 + 1000 * node)
        write(root, events, node=f"1{node}-algo-{node}", kind=PYTHON)
    return root
