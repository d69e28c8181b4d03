"""Profiles of small PyTorch trainings: a configuration, and steps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from recorded_profiles import profiler_config

from smdebug.pytorch import Hook


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


def profiled(folder: Path, *models: Any, **settings: Any) -> Hook:
    """Return a hook that profiles models; settings are those of `ProfilingParameters`."""
    config = profiler_config(folder, **settings)
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
