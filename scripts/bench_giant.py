"""One giant trial, measured in the process with its rules, or by two workers: time, and growth.

Each round judges the trial in both ways, in turn; the table has medians, and the ratio is the
median of those within a round. The driver is the process with the rules: its processor time is what
more workers cannot reduce.

    .venv/bin/python scripts/bench giant
"""

import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import click
import numpy as np

from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.runner import Runner
from rule_runner.fleet.executors import open_executor
from rule_runner.logs import configure
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

if TYPE_CHECKING:
    from concurrent.futures import Executor

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
    wall
        On the clock.
    driver, workers
        Of the processor, in the process with the rules and in the others.
    """

    wall: float
    driver: float
    workers: float


def write_trial(root: Path, steps: int) -> None:
    """Write a trial of random gradients."""
    pool = np.random.default_rng(0).standard_normal(1 << 20, np.float32)
    for number in range(WORKERS):
        with TrialWriter(
            root,
            collections={"gradients": "^gradient/"},
            worker=f"worker_{number:03d}",
            num_workers=WORKERS,
            end_job=number == WORKERS - 1,
        ) as trial:
            for step in range(steps):
                first = (step * WORKERS + number) % (1 << 19)
                gradients = {
                    f"gradient/{tensor}": pool[first + tensor : first + tensor + ELEMENTS]
                    for tensor in range(TENSORS)
                }
                trial.step(step, gradients, mode=ModeKeys.TRAIN)


def judge(root: Path, rules: Sequence[str], measure_on: str | None) -> Took:
    """Evaluate a trial; return how long it took."""
    with tempfile.TemporaryDirectory() as output:
        request = EvaluationRequest(
            trial=str(root),
            rules=tuple(RuleRequest(name=name) for name in rules),
            output=output,
            report=False,
            keep_going=True,
        )
        wall, driver, workers = time.perf_counter(), time.process_time(), _of_children()
        executor: Executor | None
        with nullcontext() if measure_on is None else open_executor(measure_on) as executor:
            Runner(resolve(request), executor=executor, handle_signals=False).run()
        return Took(
            time.perf_counter() - wall, time.process_time() - driver, _of_children() - workers
        )


def _of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(steps: Sequence[int] = STEPS, rounds: int = ROUNDS) -> None:
    """Print the table."""
    configure(-1)
    click.echo(
        f"{WORKERS} workers, {TENSORS} tensors of {ELEMENTS} elements, {rounds} rounds; in s"
    )
    head = ("alone", "CPU", "local:2", "driver", "workers", "ratio")
    click.echo(f"{'':24}" + "".join(f"{title:>9}" for title in head))
    for count in steps:
        with tempfile.TemporaryDirectory() as folder:
            write_trial(Path(folder), count)
            for name, rules in RULES.items():
                times = [
                    (judge(Path(folder), rules, None), judge(Path(folder), rules, "local:2"))
                    for _ in range(rounds)
                ]
                figures = [
                    median(alone.wall for alone, _ in times),
                    median(alone.driver for alone, _ in times),
                    median(shared.wall for _, shared in times),
                    median(shared.driver for _, shared in times),
                    median(shared.workers for _, shared in times),
                    median(alone.wall / shared.wall for alone, shared in times),
                ]
                line = "".join(f"{figure:>9.2f}" for figure in figures)
                click.echo(f"{f'{count} steps, {name}':24}{line}")
