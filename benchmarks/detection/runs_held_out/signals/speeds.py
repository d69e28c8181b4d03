"""Trainings that log their speed: some become slower, or report what cannot be; healthy ones."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from training.timed_logs import Cost, timed, tokens_in_a_second
from training_runs import faulty, healthy

SLOW = {"ThroughputDrop"}
TOKEN = 1e-5  # seconds


def seconds_of_a_step(seconds: float, _: int, steps: int) -> dict[str, float]:
    return {"step_time": seconds / steps}


def both(seconds: float, tokens: int, steps: int) -> dict[str, float]:
    return seconds_of_a_step(seconds, tokens, steps) | tokens_in_a_second(seconds, tokens, steps)


def utilization(peak: float = 1.0) -> Callable[[float, int, int], dict[str, float]]:
    return lambda seconds, tokens, _: {
        "mfu": 45.0 / peak * tokens * TOKEN / seconds,
        "train_samples_per_second": tokens / 512 / seconds,
    }


def slower_from(step: int, factor: float) -> Cost:
    return lambda number, tokens: tokens * TOKEN * (factor if number >= step else 1.0)


@faulty("speed in tokens", "from step 140 on another job takes a fifth of the machine", SLOW)
def another_job(root: Path) -> int:
    timed(root, slower_from(140, 1.25), logs=tokens_in_a_second)
    return 140


@faulty("time of steps, noise of 5 %", "a fan fails at step 160: a third slower", SLOW)
def fan_fails(root: Path) -> int:
    timed(root, slower_from(160, 1.35), logs=seconds_of_a_step, noise=0.05, steps=260, seed=1)
    return 160


@faulty("utilization in percent", "the peak of another precision: 135 percent", SLOW)
def peak_of_another_precision(root: Path) -> int:
    return timed(root, logs=utilization(1 / 3), seed=2)


@healthy("speed in tokens, noise of 3 %")
def steady(root: Path) -> int:
    return timed(root, logs=tokens_in_a_second, seed=3)


@healthy("time of steps, an evaluation of ten seconds after each fiftieth")
def evaluations_between(root: Path) -> int:
    pause = lambda step: 10.0 if step % 50 == 0 else 0.0
    return timed(root, logs=seconds_of_a_step, pause=pause, steps=400, seed=4)


@healthy("speed in tokens, a checkpoint after each tenth step, noise of 8 %")
def checkpoints_between(root: Path) -> int:
    pause = lambda step: 0.2 if step % 10 == 0 else 0.0
    return timed(root, logs=tokens_in_a_second, pause=pause, noise=0.08, steps=300, seed=5)


@healthy("a machine with other work: noise of 20 %")
def machine_with_other_work(root: Path) -> int:
    return timed(root, logs=both, noise=0.2, steps=400, seed=6)


@healthy("sequences of unequal lengths: the time of a step varies, tokens in a second do not")
def sequences_of_unequal_lengths(root: Path) -> int:
    lengths = np.random.default_rng(7).integers(2000, 16000, 500)
    return timed(root, logs=both, tokens=lambda step: int(lengths[step]), steps=400, seed=7)


@healthy("longer sequences from step 150 on: longer steps, equal tokens")
def longer_sequences(root: Path) -> int:
    tokens = lambda step: 8192 if step < 150 else 16384
    return timed(root, logs=both, tokens=tokens, steps=300, seed=8)


@healthy("the first steps compile")
def compiled(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (1 + 30.0 * (step <= 3))
    return timed(root, cost, logs=tokens_in_a_second, seed=9)


@healthy("a backup slows down eight steps")
def backup(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (2.0 if 150 <= step < 158 else 1.0)
    return timed(root, cost, logs=tokens_in_a_second, seed=10)


@healthy("a utilization of 45 percent, samples in a second")
def utilized(root: Path) -> int:
    return timed(root, logs=utilization(), noise=0.05, seed=11, steps=300)


@healthy("a cold cache: the first hundred steps are slower")
def cold_cache(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (1.5 if step < 100 else 1.0)
    return timed(root, cost, logs=seconds_of_a_step, steps=320, seed=12)


@healthy("a row for each ten steps, the data loader refills from time to time")
def loader_refills(root: Path) -> int:
    pause = lambda step: 0.5 if step % 64 == 0 else 0.0
    return timed(root, logs=both, pause=pause, log_every=10, steps=2000, seed=13)


@healthy("four percent slower from the middle on")
def a_little_slower(root: Path) -> int:
    return timed(root, slower_from(150, 1.04), logs=tokens_in_a_second, steps=300, seed=14)


@healthy("few rows: forty")
def few_rows(root: Path) -> int:
    return timed(root, logs=both, steps=40, noise=0.1, seed=15)


@healthy("the speed wavers by 10 % with the temperature, over two hundred steps")
def wavers(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (1 + 0.05 * float(np.sin(step / 32)))
    return timed(root, cost, logs=tokens_in_a_second, steps=600, seed=16)
