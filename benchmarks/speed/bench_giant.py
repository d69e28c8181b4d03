"""One giant trial, measured in the process with its rules, or by two workers: time, and growth.

Each round judges the trial alone and on each executor, in turn; the table has medians, and ratio
and overhead are medians of those within a round. The driver is the process with the rules: its
processor time is what more workers cannot reduce. Workers are all other processes of an executor,
also those that manage it. Without Ray, its lines are left out.

    .venv/bin/python benchmarks/speed giant
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

import click
import numpy as np

from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.runner import Runner
from rule_runner.executors import open_executor
from rule_runner.logs import configure
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

EXECUTORS = {"local:2": "concurrent", "ray:2": "ray"}  # with the libraries that they need
WORKERS, TENSORS, ELEMENTS = 64, 100, 64
STEPS = (100, 500)
ROUNDS = 3
RULES = {
    "one rule": ["VanishingGradient"],
    "three rules": ["VanishingGradient", "ExplodingTensor", "GradientNormSpike"],
}


class Took(NamedTuple):
    """Seconds of an evaluation.

    Attributes
    ----------
    start
        On the clock, until the executor was open.
    wall
        On the clock, in all.
    driver, workers
        Of the processor, in the process with the rules and in the others.
    """

    start: float
    wall: float
    driver: float
    workers: float


def write_trial(root: Path, steps: int, workers: int = WORKERS, tensors: int = TENSORS) -> None:
    """Write a trial of random gradients."""
    pool = np.random.default_rng(0).standard_normal(1 << 20, np.float32)
    for number in range(workers):
        with TrialWriter(
            root,
            collections={"gradients": "^gradient/"},
            worker=f"worker_{number:03d}",
            num_workers=workers,
            end_job=number == workers - 1,
        ) as trial:
            for step in range(steps):
                first = (step * workers + number) % (1 << 19)
                gradients = {
                    f"gradient/{tensor}": pool[first + tensor : first + tensor + ELEMENTS]
                    for tensor in range(tensors)
                }
                trial.step(step, gradients, mode=ModeKeys.TRAIN)


def judge(root: Path, rules: Sequence[str], measure_on: str | None) -> Took:
    """Evaluate a trial; return how long it took."""
    with ExitStack() as stack:
        output = stack.enter_context(tempfile.TemporaryDirectory())
        request = EvaluationRequest(
            trial=str(root),
            rules=tuple(RuleRequest(name=name) for name in rules),
            output=output,
            report=False,
            keep_going=True,
        )
        began, driver = time.perf_counter(), time.process_time()
        executor = stack.enter_context(open_executor(measure_on)) if measure_on else None
        opened = time.perf_counter()
        Runner(resolve(request), executor=executor).run()
        return Took(
            opened - began,
            time.perf_counter() - began,
            time.process_time() - driver,
            sum(_processor_times()),
        )


def _processor_times() -> Iterator[float]:
    """Yield the processor time of each process that this one, or its children, have started."""
    parents, times = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            process = int(path.parent.name)
            parents[process] = int(fields[1])
            times[process] = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    own = {os.getpid()}
    while children := {child for child, parent in parents.items() if parent in own} - own:
        own |= children
    yield from (times[process] for process in own - {os.getpid()})


def run(steps: Sequence[int] = STEPS, rounds: int = ROUNDS) -> None:
    """Print the table."""
    configure(-1)
    executors = [spec for spec, library in EXECUTORS.items() if find_spec(library)]
    for spec in EXECUTORS.keys() - executors:
        click.echo(f"{spec} is left out: {EXECUTORS[spec]} is not installed.")
    click.echo(
        f"{WORKERS} workers, {TENSORS} tensors of {ELEMENTS} elements, {rounds} rounds; in s"
    )
    head = ("alone", "CPU", "shared", "start", "driver", "workers", "ratio", "overhead")
    click.echo(f"{'':32}" + "".join(f"{title:>9}" for title in head))
    for count in steps:
        with tempfile.TemporaryDirectory() as folder:
            write_trial(Path(folder), count)
            for name, rules in RULES.items():
                times = [
                    [judge(Path(folder), rules, spec) for spec in (None, *executors)]
                    for _ in range(rounds)
                ]
                for number, spec in enumerate(executors, start=1):
                    pairs = [(took[0], took[number]) for took in times]
                    line = "".join(f"{figure:>9.2f}" for figure in _figures(pairs))
                    click.echo(f"{f'{count} steps, {name}, {spec}':32}{line}")


def _figures(pairs: Sequence[tuple[Took, Took]]) -> Iterator[float]:
    """Yield the figures of a line, from each round's evaluation alone and on an executor."""
    yield median(alone.wall for alone, _ in pairs)
    yield median(alone.driver for alone, _ in pairs)
    for field in ("wall", "start", "driver", "workers"):
        yield median(getattr(shared, field) for _, shared in pairs)
    yield median(alone.wall / shared.wall for alone, shared in pairs)
    yield median((shared.driver + shared.workers) / alone.driver for alone, shared in pairs)
