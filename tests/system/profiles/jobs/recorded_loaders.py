"""Recorded PyTorch trainings whose data loaders have few, enough or too many worker processes."""

import os
import warnings
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from profile_jobs import RECORDED, faulty, healthy

from rule_core.clock import SystemClock

CLOCK: Final = SystemClock()
CORES: Final = len(os.sched_getaffinity(0))
SECONDS: Final = 4.5
DECODE_S: Final = 0.004
UNEVEN: Final = {"StepOutlier": "A step waits for its batch, and batches come in bursts."}


def make(
    folder: Path,
    workers: int,
    *,
    persistent: bool = False,
    epochs: int = 1,
    slow_samples: int = 0,
    decode_s: float = DECODE_S,
    step_s: float = 0.0,
) -> None:
    """Train for a few seconds on samples that take a while to decode, the first ones longest.

    A step waits for `step_s`, as for a GPU.
    """
    import torch

    from rule_runner.debugger import DataloaderProfilingConfig, FrameworkProfile, ProfilerConfig
    from smdebug import modes
    from smdebug.pytorch import Hook

    class Samples(torch.utils.data.Dataset[torch.Tensor]):
        def __len__(self) -> int:
            return 4096

        def __getitem__(self, index: int) -> torch.Tensor:
            CLOCK.sleep(0.03 if index < slow_samples else decode_s)
            return torch.full((8,), float(index % 7))

    every_step = DataloaderProfilingConfig(start_step=0, num_steps=100_000)
    profile = FrameworkProfile(str(folder), dataloader_profiling_config=every_step)
    config = ProfilerConfig(framework_profile_params=profile, system_monitor_interval_millis=100)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    hook = Hook(folder.with_name("trial"), profiler_config=config, on_error="raise")
    hook.register_module(model)
    hook.set_mode(modes.TRAIN)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create")  # on purpose
        loader = torch.utils.data.DataLoader(
            Samples(), batch_size=8, num_workers=workers, persistent_workers=persistent
        )
        for _ in range(epochs):
            began = CLOCK.monotonic()
            for batch in loader:
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
                CLOCK.sleep(step_s)
                if CLOCK.monotonic() - began > SECONDS / epochs:
                    break
    hook.close()


_HEALTHY: Final[Mapping[str, tuple[str, int]]] = {
    "a_loader_for_each_core": ("A worker for each core.", CORES),
    "two_loaders_for_each_core": ("Two workers for each core.", 2 * CORES),
    "three_loaders_for_two_cores": ("Three workers for two cores.", (3 * CORES + 1) // 2),
}
_FAULTY: Final[Mapping[str, tuple[str, int]]] = {
    "few_loaders": ("Workers for at most half of the cores.", max(1, CORES // 2)),
    "no_loaders": ("The training decodes its samples itself.", 0),
    "many_loaders": ("Three workers for each core.", 3 * CORES),
    "far_too_many_loaders": ("Six workers for each core.", 6 * CORES),
}

for _name, (_text, _workers) in _HEALTHY.items():
    healthy(partial(make, workers=_workers), _name, _text, RECORDED, UNEVEN)
for _name, (_text, _workers) in _FAULTY.items():
    faulty(partial(make, workers=_workers), _name, _text, RECORDED, ("Dataloader",), UNEVEN)
healthy(
    partial(make, workers=CORES, slow_samples=32),
    "loaders_that_start_slowly",
    "A worker for each core, and samples that come slowly at the start.",
    RECORDED,
    UNEVEN,
)
healthy(
    partial(make, workers=2 * CORES, epochs=3),
    "loaders_for_each_epoch",
    "Two workers for each core, begun anew in each epoch.",
    RECORDED,
    UNEVEN,
)
for _name, _text, _workers in (
    ("one_loader_is_enough", "One worker, which is faster than the model.", 1),
    ("data_in_memory", "Data in memory, which need no workers.", 0),
):
    healthy(
        partial(make, workers=_workers, decode_s=0.0, step_s=0.1), _name, _text, RECORDED, UNEVEN
    )
faulty(
    partial(make, workers=0, decode_s=0.02),
    "decoding_in_one_thread",
    "The training decodes large samples itself, in a single thread.",
    RECORDED,
    ("Dataloader",),
    UNEVEN,
)
healthy(
    partial(make, workers=CORES, persistent=True, epochs=3),
    "loaders_that_stay",
    "Workers that stay from epoch to epoch.",
    RECORDED,
    UNEVEN,
)
faulty(
    partial(make, workers=4 * CORES, persistent=True, epochs=3),
    "many_loaders_that_stay",
    "Four workers for each core, which stay from epoch to epoch.",
    RECORDED,
    ("Dataloader",),
    UNEVEN,
)
