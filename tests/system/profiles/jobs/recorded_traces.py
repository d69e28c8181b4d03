"""Recorded traces of torch.profiler on a processor: trainings whose memory grows, or does not."""

from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from profile_jobs import RECORDED, faulty, healthy

STEPS: Final = 10
MIB: Final = 1 << 18  # floats
# Gets the number of a step, the model and the loss.
Keep = Callable[[int, Any, Any], object]


def make(folder: Path, keep: Callable[[], Keep]) -> None:
    """Train a step for each that is profiled, and keep of it what `keep` does."""
    import torch
    from torch import profiler

    model = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    keeping = keep()
    folder.mkdir(parents=True)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        profile_memory=True,
        schedule=profiler.schedule(wait=1, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(str(folder / "vm.pt.trace.json")),
    ) as running:
        for step in range(STEPS + 2):
            optimizer.zero_grad()
            loss = model(torch.ones(256, 64)).square().mean()
            loss.backward()
            optimizer.step()
            keeping(step, model, loss)
            running.step()


def nothing() -> Keep:
    """Keep nothing."""
    return lambda *_: None


def numbers() -> Keep:
    """Keep the losses as numbers."""
    losses: list[float] = []
    return lambda _, __, loss: losses.append(loss.item())


def scratch() -> Keep:
    """Take 50 MiB for a moment."""
    import torch

    return lambda *_: float(torch.ones(50 * MIB)[0])


def tensors(first: int = 1 << 30) -> Keep:
    """Keep 4 MiB of each step, or of the first steps."""
    import torch

    kept: list[Any] = []
    return lambda step, *_: kept.append(torch.ones(4 * MIB)) if step < first else None


def replaced() -> Keep:
    """Keep 8 MiB of the latest three steps."""
    import torch

    kept: deque[Any] = deque(maxlen=3)
    return lambda *_: kept.append(torch.ones(8 * MIB))


def detached() -> Keep:
    """Keep the outputs of validations without their graphs, 8 KiB of each step."""
    import torch

    kept: list[Any] = []
    return lambda _, model, __: kept.append(model(torch.ones(256, 64)).detach())


def graphs() -> Keep:
    """Add up losses of validations with their graphs, which keep the activations."""
    import torch

    sums: list[Any] = [0.0]

    def add(_: int, model: Any, __: object) -> None:
        sums[0] = sums[0] + model(torch.ones(8192, 64)).square().mean()

    return add


def outputs() -> Keep:
    """Keep the outputs of validations with their graphs."""
    import torch

    kept: list[Any] = []
    return lambda _, model, __: kept.append(model(torch.ones(8192, 64)))


def copies() -> Keep:
    """Keep 20 MiB in ever larger copies."""
    import torch

    kept = [torch.ones(MIB)]

    def grow(*_: object) -> None:
        kept[0] = torch.cat([kept[0], torch.ones(20 * MIB)])

    return grow


for _name, _text, _keep in (
    ("cpu_trace", "A training that keeps nothing.", nothing),
    ("cpu_trace_of_losses", "Losses kept as numbers.", numbers),
    ("cpu_trace_of_scratch", "Memory for a moment.", scratch),
    ("cpu_trace_of_full_cache", "A cache that is full after six steps.", partial(tensors, 6)),
    ("cpu_trace_of_latest_steps", "Tensors of the latest three steps.", replaced),
    ("cpu_trace_of_detached_outputs", "Small outputs without their graphs.", detached),
):
    healthy(partial(make, keep=_keep), _name, _text, RECORDED)
for _name, _text, _keep in (
    ("cpu_trace_of_kept_tensors", "Each step keeps a tensor of 4 MiB.", tensors),
    ("cpu_trace_of_growing_copies", "Each step appends 20 MiB to a tensor.", copies),
    ("cpu_trace_of_summed_losses", "Losses of validations are added up as tensors.", graphs),
    ("cpu_trace_of_kept_outputs", "Outputs of validations keep their graphs.", outputs),
):
    faulty(partial(make, keep=_keep), _name, _text, RECORDED, ("MemoryGrows",))
