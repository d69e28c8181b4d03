"""Recorded loads of a host whose training decodes its data, beside generated samples of a GPU.

The cores and the waits for the disk are those of this machine while the training runs, as the
sampler of the hook records them. There is no GPU: its samples are added at the same moments.
"""

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
from profile_jobs import HOST_RECORDED, faulty, healthy

from rule_core.clock import SystemClock
from smdebug import modes
from smdebug.core.hook import Hook

SECONDS: Final = 3.5
PIXELS: Final = 1 << 20
CLOCK: Final = SystemClock()
UNEVEN: Final = {"StepOutlier": "Other work on the machine makes decoding slow now and then."}
SPARE: Final = {"BatchSize": "Processors, GPU and memory that wait have capacity to spare."}


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Keep this thread on one core, as loaders often are."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def make(folder: Path, gpu: float, memory: float, decode_ms: float) -> None:
    """Train, decode for some of each 20 ms, and add a GPU with this load and memory in use."""
    config = {
        "ProfilingIntervalInMilliseconds": 100,
        "ProfilingParameters": {"LocalPath": str(folder)},
    }
    picture = zlib.compress(np.arange(PIXELS, dtype=np.uint16).tobytes())
    began = CLOCK.monotonic()
    with (
        Hook(folder.with_name("trial"), profiler_config=config, on_error="raise") as hook,
        on_one_core(),
    ):
        hook.set_mode(modes.TRAIN)
        while CLOCK.monotonic() - began < SECONDS:
            step_began = CLOCK.monotonic()
            hook.save_scalar("loss", 1.0)
            while 1000 * (CLOCK.monotonic() - step_began) < decode_ms:
                zlib.decompress(picture)
            CLOCK.sleep(max(0.0, 0.02 - (CLOCK.monotonic() - step_began)))
            hook.step()
    for path in (folder / "system" / "incremental").rglob("*.json"):
        _add_gpu(path, gpu, memory)


def _add_gpu(path: Path, gpu: float, memory: float) -> None:
    """Add samples of a GPU to a file, at the moments of those of its first core."""
    random = np.random.default_rng(5)
    lines: list[str] = []
    for line in path.read_text().splitlines():
        lines.append(line)
        sample = json.loads(line)
        if (sample["Dimension"], sample["Name"]) == ("CPUUtilization", "cpu0"):
            for dimension, mean in (("GPUUtilization", gpu), ("GPUMemoryUtilization", memory)):
                value = float(np.clip(random.normal(mean, 1), 0, 100))
                added = {"Type": "gpu", "Name": "gpu0", "Dimension": dimension, "Value": value}
                lines.append(json.dumps({**sample, **added}))
    path.write_text("\n".join(lines) + "\n")


_HEALTHY: Final[Mapping[str, tuple[str, float, float, float]]] = {
    "decodes_ahead_of_the_gpu": (
        "A core that decodes all the time, and a GPU that is busy.",
        93,
        80,
        20,
    ),
    "decodes_little": ("A training that decodes a little, and a GPU that is busy.", 90, 75, 4),
}
_FAULTY: Final[Mapping[str, tuple[str, float, float, float]]] = {
    "decodes_in_one_thread": (
        "A thread that decodes all the time, and a GPU that waits for it.",
        4,
        60,
        20,
    ),
    "decodes_large_pictures": (
        "A thread that decodes large pictures one after the other, and an idle GPU.",
        2,
        85,
        60,
    ),
    "decodes_for_a_small_model": (
        "A thread that decodes all the time for a small model.",
        6,
        12,
        40,
    ),
}

for _name, (_text, _gpu, _memory, _decode_ms) in _HEALTHY.items():
    healthy(
        partial(make, gpu=_gpu, memory=_memory, decode_ms=_decode_ms),
        _name,
        _text,
        HOST_RECORDED,
        UNEVEN,
    )
for _name, (_text, _gpu, _memory, _decode_ms) in _FAULTY.items():
    faulty(
        partial(make, gpu=_gpu, memory=_memory, decode_ms=_decode_ms),
        _name,
        _text,
        HOST_RECORDED,
        ("CPUBottleneck", "LowGPUUtilization"),
        {**SPARE, **UNEVEN},
    )
