"""What the preset `llm` costs in CPU time: for `scripts/bench preset`, and `docs/hooks.md`.

Two trainings of the same weights take turns at each step, with one thread; ten steps of each make a
ratio. CPU time of the whole process, with the thread that writes, is counted, since other processes
of the machine change it little, and both sides alike.
"""

import math
import statistics
import tempfile
import time
from collections.abc import Callable

import click
import torch
from bench_hook import STEPS, Training, hooked

MODEL = "transformer"
RATIOS = 24
CASES = (None, "preset llm, every 10 steps", "preset llm, every step")


def cpu_seconds(training: Training, wait: Callable[[], object]) -> float:
    """Train for a step, wait until all is written, and return the CPU time that it took."""
    began = time.process_time()
    training.steps(1)
    wait()
    return time.process_time() - began


def nothing() -> None:
    """Wait for nothing."""


def ratios(case: str | None) -> list[float]:
    """Return ratios of times, with the hook / without; without a case both do the same."""
    with tempfile.TemporaryDirectory() as folder:
        plain, other = Training(MODEL), Training(MODEL)
        if case is None:
            return paired(plain, other, nothing)
        with hooked(other, case, folder) as wait:
            return paired(plain, other, wait)


def paired(plain: Training, other: Training, wait: Callable[[], object]) -> list[float]:
    """Return ratios of the times of two trainings, after one that warms up."""
    found = []
    for _ in range(RATIOS + 1):
        times = [(cpu_seconds(plain, nothing), cpu_seconds(other, wait)) for _ in range(STEPS)]
        found.append(sum(more for _, more in times) / sum(seconds for seconds, _ in times))
    return found[1:]


def percent(values: list[float]) -> str:
    """Return the median as a slow-down, with its 95 % interval, from ranks."""
    ordered, count = sorted(values), len(values)
    low = max(0, math.floor(count / 2 - 0.98 * math.sqrt(count)))
    middle = statistics.median(ordered)
    return f"{middle - 1:+.1%} ({ordered[low] - 1:+.1%} to {ordered[-1 - low] - 1:+.1%})"


def run() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    click.echo(f"torch {torch.__version__}, 1 thread; {RATIOS} times {STEPS} steps of each")
    for case in CASES:
        click.echo(f"| {case or 'the same twice'} | {percent(ratios(case))} |")


if __name__ == "__main__":
    run()
