"""Trainings that log their speed, by a clock that is wound: steady, uneven, or slower for good."""

from pathlib import Path

import numpy as np
from training.timed_logs import Cost, timed, tokens_in_a_second
from training_runs import faulty, healthy

SLOW = {"ThroughputDrop"}
TOKEN = 1e-5  # seconds


def steps_in_a_second(seconds: float, _: int, steps: int) -> dict[str, float]:
    return {"it/s": steps / seconds}


def milliseconds(seconds: float, _: int, steps: int) -> dict[str, float]:
    return {"iter_time_ms": 1000 * seconds / steps}


def samples(seconds: float, tokens: int, _: int) -> dict[str, float]:
    return {"samples_per_second": tokens / 512 / seconds, "mfu": 40.0 * tokens * TOKEN / seconds}


def from_step(step: int, factor: float) -> Cost:
    return lambda number, tokens: tokens * TOKEN * (factor if number >= step else 1.0)


@faulty("speed in steps", "from step 120 on a list grows with each step", SLOW)
def list_grows(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (1 + 0.02 * max(0, min(60, step - 120)))
    timed(root, cost, logs=steps_in_a_second, seed=21)
    return 120


@faulty("time of steps in milliseconds", "a device is throttled at step 130: 18 %", SLOW)
def device_throttled(root: Path) -> int:
    timed(root, from_step(130, 1.22), logs=milliseconds, seed=22)
    return 130


@faulty("samples and utilization", "a share moves to a slow disk at step 150", SLOW)
def slow_disk(root: Path) -> int:
    timed(root, from_step(150, 1.6), logs=samples, noise=0.08, steps=260, seed=23)
    return 150


@healthy("speed in steps, no noise at all")
def without_noise(root: Path) -> int:
    return timed(root, logs=steps_in_a_second, noise=0.0, seed=24)


@healthy("time of steps, noise of 10 %, the longest of them three times as long")
def long_steps(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (3.0 if step % 17 == 0 else 1.0)
    return timed(root, cost, logs=milliseconds, noise=0.1, seed=25, steps=300)


@healthy("samples in a second and a utilization of 40 percent")
def samples_in_a_second(root: Path) -> int:
    return timed(root, logs=samples, seed=26)


@healthy("the first epoch fills a cache, later ones are faster")
def cache_is_filled(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (1.3 if step < 80 else 1.0)
    return timed(root, cost, logs=tokens_in_a_second, noise=0.04, seed=28)


@healthy("an evaluation of a minute after each hundred steps")
def evaluations_of_a_minute(root: Path) -> int:
    pause = lambda step: 60.0 if step % 100 == 0 else 0.0
    return timed(root, logs=steps_in_a_second, pause=pause, steps=450, seed=29)


@healthy("a neighbour takes a third of the machine for fifteen steps")
def neighbour(root: Path) -> int:
    cost = lambda step, tokens: tokens * TOKEN * (1.5 if 120 <= step < 135 else 1.0)
    return timed(root, cost, logs=tokens_in_a_second, seed=30)


@healthy("batches of unequal sizes, tokens in a second")
def unequal_batches(root: Path) -> int:
    sizes = np.random.default_rng(31).integers(1000, 9000, 400)
    cost = lambda _, tokens: 0.01 + tokens * TOKEN
    tokens = lambda step: int(sizes[step])
    return timed(root, cost, logs=tokens_in_a_second, tokens=tokens, steps=350, seed=31)


@healthy("faster from the middle on")
def faster(root: Path) -> int:
    return timed(root, from_step(120, 0.7), logs=milliseconds, seed=32)


@healthy("noise of 30 %")
def noise_of_thirty(root: Path) -> int:
    return timed(root, logs=tokens_in_a_second, noise=0.3, steps=400, seed=33)


@healthy("rows of five steps, five percent slower after half")
def five_percent_slower(root: Path) -> int:
    return timed(root, from_step(500, 1.05), logs=samples, log_every=5, steps=1000, seed=34)
