"""A small PyTorch training whose profile a hook records."""

from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, TensorDataset

from rule_runner.debugger import FrameworkProfile, ProfilerConfig
from smdebug import modes
from smdebug.pytorch import Hook


def hook_of(folder: Path, profile: FrameworkProfile, interval_ms: int = 100) -> Hook:
    config = ProfilerConfig(
        framework_profile_params=profile, system_monitor_interval_millis=interval_ms
    )
    return Hook(folder, profiler_config=config, on_error="raise")


def train(
    folder: Path,
    profile: FrameworkProfile | None,
    *,
    steps: int = 20,
    interval_ms: int = 100,
    workers: int = 0,
) -> list[Any]:
    """Train with a profile; return the trained parameters.

    Every fourth step is an evaluation. Without a profile there is no hook.
    """
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(4 * steps, 8))
    batches = DataLoader(data, batch_size=4, num_workers=workers)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = None if profile is None else hook_of(folder, profile, interval_ms)
    if hook is not None:
        hook.register_module(model)
    for step, (batch,) in enumerate(batches):
        if hook is not None:
            hook.set_mode(modes.EVAL if step % 4 == 3 else modes.TRAIN)
        loss = model(batch).square().mean()
        if step % 4 < 3:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    if hook is not None:
        hook.close()
    return [parameter.detach().clone() for parameter in model.parameters()]
