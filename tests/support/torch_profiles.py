"""Profiles of small PyTorch trainings: a configuration, steps, and the events recorded."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from rule_core.profiler.traces.event import TraceEvent
from rule_core.trials.profiler_trial import ProfilerTrial
from smdebug.pytorch import Hook


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def profiled(folder: Path, *models: Any, **settings: Any) -> Hook:
    """Return a hook that profiles models; settings are those of `ProfilingParameters`."""
    config = {"ProfilingParameters": {"LocalPath": str(folder / "profile"), **settings}}
    hook = Hook(folder / "trial", profiler_config=config, on_error="raise")
    for module in models:
        hook.register_module(module)
    return hook


def steps(module: Any, count: int, before: Callable[[int], object] = lambda _: None) -> None:
    """Train a model for some steps, and call a function before each."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for step in range(count):
        before(step)
        optimizer.zero_grad()
        module(torch.ones(3, 4)).square().mean().backward()
        optimizer.step()


def events(folder: Path, *phases: str) -> list[TraceEvent]:
    """Return the recorded events of phases, by default all, in the order of their ends."""
    trial = ProfilerTrial("job", str(folder / "profile"))
    trial.refresh()
    return [
        event
        for event in trial.framework_events(0, 1 << 60)
        if not phases or event.event_phase in phases
    ]


def args_of(folder: Path, phase: str, *names: str) -> list[tuple[Any, ...]]:
    """Return args of the events of a phase."""
    return [
        tuple((event.event_args or {}).get(name) for name in names)
        for event in events(folder, phase)
    ]
