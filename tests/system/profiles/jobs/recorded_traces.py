"""Recorded traces of torch.profiler on a processor: trainings whose memory grows, or does not."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

from profile_jobs import RECORDED, faulty, healthy

STEPS: Final = 10
MIB: Final = 1 << 18  # floats
Keep = Callable[[int, Any], object]


def make(folder: Path, keep: Callable[[], Keep]) -> None:
    """Train a step for each that is profiled; `keep` gets the number and the loss of a step."""
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
            keeping(step, loss)
            running.step()


def nothing() -> Keep:
    """Keep nothing."""
    return lambda _, __: None


def numbers() -> Keep:
    """Keep the losses as numbers."""
    losses: list[float] = []
    return lambda _, loss: losses.append(loss.item())


def scratch() -> Keep:
    """Take 50 MiB for a moment."""
    import torch

    return lambda _, __: float(torch.ones(50 * MIB)[0])


def tensors() -> Keep:
    """Keep 4 MiB of each step."""
    import torch

    kept: list[Any] = []
    return lambda _, __: kept.append(torch.ones(4 * MIB))


def copies() -> Keep:
    """Keep 20 MiB in ever larger copies."""
    import torch

    kept = [torch.ones(MIB)]

    def grow(_: int, __: object) -> None:
        kept[0] = torch.cat([kept[0], torch.ones(20 * MIB)])

    return grow


healthy(partial(make, keep=nothing), "cpu_trace", "A training that keeps nothing.", RECORDED)
healthy(partial(make, keep=numbers), "cpu_trace_of_losses", "Losses kept as numbers.", RECORDED)
healthy(partial(make, keep=scratch), "cpu_trace_of_scratch", "Memory for a moment.", RECORDED)
for _name, _text, _keep in (
    ("cpu_trace_of_kept_tensors", "Each step keeps a tensor of 4 MiB.", tensors),
    ("cpu_trace_of_growing_copies", "Each step appends 20 MiB to a tensor.", copies),
):
    faulty(partial(make, keep=_keep), _name, _text, RECORDED, ("MemoryGrows",))
