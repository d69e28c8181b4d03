"""Recorded trainings whose steps are slow now and then, or whose first step is late.

Each is a training of a small model with numpy on this machine, with the hook and its profile.
"""

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from profile_jobs import RECORDED, faulty, healthy

from rule_core.clock import SystemClock
from smdebug import modes
from smdebug.core.hook import Hook

STEPS: Final = 160
STEP_S: Final = 0.008
CLOCK: Final = SystemClock()
Stall = Callable[[int], float]


def wait(seconds: float) -> None:
    """Wait, as for a disk or another machine."""
    CLOCK.sleep(seconds)


def make(
    folder: Path,
    stall: Stall = lambda _: 0.0,
    start_s: float = 0.0,
    steps: int = STEPS,
    evaluations: int = 0,
) -> None:
    """Train; `stall` gives the seconds that a step takes besides its work."""
    config = {
        "ProfilingIntervalInMilliseconds": 100,
        "ProfilingParameters": {"LocalPath": str(folder)},
    }
    with Hook(folder.with_name("trial"), profiler_config=config, on_error="raise") as hook:
        random = np.random.default_rng(0)
        weights = random.normal(size=(64, 8))
        wait(start_s)
        for step in range(steps):
            is_evaluation = bool(evaluations) and step % evaluations == evaluations - 1
            hook.set_mode(modes.EVAL if is_evaluation else modes.TRAIN)
            began = time.perf_counter()
            hook.save_scalar("loss", 1.0)
            x = random.normal(size=(256, 64))
            weights -= 1e-4 * x.T @ (x @ weights)
            wait(max(0.0, STEP_S * (3 if is_evaluation else 1) - (time.perf_counter() - began)))
            wait(stall(step))
            hook.step()


def every(period: int, seconds: float) -> Stall:
    """Stall in every nth step."""
    return lambda step: seconds if step % period == period - 1 else 0.0


def once(first: int, count: int, seconds: float) -> Stall:
    """Stall in some steps, one after the other."""
    return lambda step: seconds if first <= step < first + count else 0.0


def drifting(seconds: float) -> Stall:
    """Take longer from step to step."""
    return lambda step: seconds * step / STEPS


def noisy(seconds: float) -> Stall:
    """Take longer at random, never by much."""
    values = np.random.default_rng(1).uniform(0, seconds, 10 * STEPS)
    return lambda step: float(values[step])


_HEALTHY: Final[Mapping[str, tuple[str, Stall, dict[str, float]]]] = {
    "even_steps": ("Steps of the same length.", every(STEPS * 9, 0), {}),
    "noisy_steps": ("Steps between 8 and 12 ms.", noisy(0.004), {}),
    "few_checkpoints": ("Three checkpoints that stall a step each.", every(50, 0.05), {}),
    "one_pause": ("One pause of half a second.", once(80, 1, 0.5), {}),
    "drifting_steps": ("Steps that become longer by a half.", drifting(0.004), {}),
    "with_evaluations": (
        "Evaluations that take three times as long.",
        every(999, 0),
        {"evaluations": 8},
    ),
    "a_second_before_the_first_step": (
        "A start that takes a second.",
        every(999, 0),
        {"start_s": 1.0},
    ),
    "short_stalls": ("Every tenth step takes a quarter longer.", every(10, 0.002), {}),
    "slow_first_batches": (
        "A loader that is slow for its first eight batches, while caches fill.",
        once(0, 8, 0.1),
        {},
    ),
    "one_long_validation": (
        "A validation of one and a half seconds inside of a step.",
        once(100, 1, 1.5),
        {},
    ),
    "two_seconds_before_the_first_step": (
        "Imports and a warm-up that take two of three tolerated seconds.",
        every(999, 0),
        {"start_s": 2.0},
    ),
    "two_kinds_of_batches": (
        "Every second batch has longer samples, and takes half as long again.",
        every(2, 0.004),
        {},
    ),
}
_FAULTY: Final[Mapping[str, tuple[str, Stall, dict[str, float], str]]] = {
    "checkpoint_stalls": ("A checkpoint in every tenth step.", every(10, 0.2), {}, "StepOutlier"),
    "slow_log_server": ("Every seventh step waits for a log.", every(7, 0.12), {}, "StepOutlier"),
    "stalls_after_an_hour": (
        "Stalls in a row, late in the job.",
        once(120, 14, 0.2),
        {},
        "StepOutlier",
    ),
    "every_fifth_step": ("Every fifth step loads a new file.", every(5, 0.12), {}, "StepOutlier"),
    "slow_evaluations_excepted": (
        "Stalls beside evaluations.",
        every(9, 0.2),
        {"evaluations": 20},
        "StepOutlier",
    ),
    "garbage_collection": (
        "Every eleventh step collects garbage.",
        every(11, 0.2),
        {},
        "StepOutlier",
    ),
    "long_start": (
        "Four seconds before the first step.",
        every(999, 0),
        {"start_s": 4.0},
        "MaxInitializationTime",
    ),
    "very_long_start": (
        "Six seconds before the first step.",
        every(999, 0),
        {"start_s": 6.0},
        "MaxInitializationTime",
    ),
    "download_before_the_first_step": (
        "A download of five seconds, and checkpoints now and then.",
        every(50, 0.05),
        {"start_s": 5.0},
        "MaxInitializationTime",
    ),
    "long_start_with_evaluations": (
        "Nine seconds before the first step of a job with evaluations.",
        every(999, 0),
        {"start_s": 9.0, "evaluations": 8},
        "MaxInitializationTime",
    ),
    "cache_that_is_too_small": (
        "From step 60 on, two of seven steps read from the disk again.",
        lambda step: 0.09 if step >= 60 and step % 7 in {2, 5} else 0.0,
        {},
        "StepOutlier",
    ),
    "sleeping_loader": (
        "A loader that sleeps before each eighth batch.",
        every(8, 0.15),
        {},
        "StepOutlier",
    ),
}

for _name, (_text, _stall, _more) in _HEALTHY.items():
    healthy(partial(make, stall=_stall, **_more), _name, _text, RECORDED)
for _name, (_text, _stall, _more, _rule) in _FAULTY.items():
    faulty(partial(make, stall=_stall, **_more), _name, _text, RECORDED, (_rule,))
