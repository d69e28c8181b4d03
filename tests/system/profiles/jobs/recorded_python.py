"""Recorded trainings with Python code that is slow now and then, with profiles of its functions.

No rule reads Python profiles: rules see that steps are slow, and `rule-runner profile python` names
the functions.
"""

import gc
import json
import re
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from profile_jobs import RECORDED, faulty, healthy
from recorded_profiles import end_script

from rule_core.clock import SystemClock
from smdebug import modes
from smdebug.core.hook import Hook

STEPS: Final = 130
STEP_S: Final = 0.008
PROFILED: Final = (20, 60)
CLOCK: Final = SystemClock()
Work = Callable[[int], object]


def make(folder: Path, work: Callable[[], Work]) -> None:
    """Train; `work` is what Python does in each step besides."""
    from rule_runner.debugger import FrameworkProfile, ProfilerConfig, PythonProfilingConfig

    start, count = PROFILED
    profile = FrameworkProfile(
        str(folder), python_profiling_config=PythonProfilingConfig(start, count)
    )
    config = ProfilerConfig(framework_profile_params=profile, system_monitor_interval_millis=100)
    random = np.random.default_rng(0)
    weights = random.normal(size=(64, 8))
    working = work()
    with Hook(folder.with_name("trial"), profiler_config=config, on_error="raise") as hook:
        hook.set_mode(modes.TRAIN)
        for step in range(STEPS):
            hook.save_scalar("loss", 1.0)
            x = random.normal(size=(256, 64))
            weights -= 1e-4 * x.T @ (x @ weights)
            CLOCK.sleep(STEP_S)
            working(step)
            hook.step()
    end_script()


def collecting() -> Work:
    """Collect garbage by hand in each seventh step, among a million objects."""
    objects = [[number] for number in range(1_000_000)]

    def collect_garbage(step: int) -> None:
        if step % 7 == 6 and objects:
            gc.collect()

    return collect_garbage


def parsing() -> Work:
    """Parse a long log again in each eighth step."""
    log = [json.dumps({"step": step, "loss": 1.0, "rates": [0.1] * 40}) for step in range(6000)]

    def read_log(step: int) -> None:
        log.append(json.dumps({"step": step, "loss": 1.0}))
        if step % 8 == 7:
            for line in log:
                json.loads(line)

    return read_log


def augmenting(period: int, pixels: int) -> Work:
    """Change pixels one by one, in each step or in some."""
    picture = [number % 256 for number in range(pixels)]

    def brighten(step: int) -> None:
        if step % period == period - 1:
            picture[:] = [min(255, int(1.01 * pixel) + 1) % 256 for pixel in picture]

    return brighten


def tokenizing() -> Work:
    """Split and compress a text in each ninth step."""
    text = "the quick brown fox, jumps over: the lazy dog; " * 20_000
    words = re.compile(r"\w+")

    def tokenize(step: int) -> None:
        if step % 9 == 8:
            zlib.compress(" ".join(words.findall(text)).encode())

    return tokenize


def logging() -> Work:
    """Keep a line for each step."""
    lines: list[str] = []
    return lambda step: lines.append(json.dumps({"step": step, "loss": 1.0}))


_HEALTHY: Final[Mapping[str, tuple[str, Any]]] = {
    "python_in_each_step": (
        "The same loop over pixels in each step.",
        partial(augmenting, 1, 10_000),
    ),
    "python_logs": ("A line of a log in each step.", logging),
    "python_now_and_then": (
        "A loop over a few pixels in each sixth step.",
        partial(augmenting, 6, 4_000),
    ),
}
_FAULTY: Final[Mapping[str, tuple[str, Any]]] = {
    "python_collects_garbage": ("Garbage is collected by hand in each seventh step.", collecting),
    "python_parses_its_log": ("Each eighth step parses the log again.", parsing),
    "python_changes_pixels": (
        "Each sixth step changes a picture pixel by pixel.",
        partial(augmenting, 6, 400_000),
    ),
    "python_tokenizes": ("Each ninth step tokenizes a text in the training.", tokenizing),
}

for _name, (_text, _work) in _HEALTHY.items():
    healthy(partial(make, work=_work), _name, _text, RECORDED)
for _name, (_text, _work) in _FAULTY.items():
    faulty(partial(make, work=_work), _name, _text, RECORDED, ("StepOutlier",))
