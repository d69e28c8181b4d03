"""A small PyTorch training whose profile a hook records."""

from pathlib import Path
from typing import Any

import torch

from rule_runner.debugger import FrameworkProfile, ProfilerConfig
from smdebug import modes
from smdebug.pytorch import Hook


def train(
    folder: Path, profile: FrameworkProfile, *, steps: int = 20, interval_ms: int = 100
) -> list[Any]:
    """Train with a profile; return the trained parameters.

    Every fourth step is an evaluation.
    """
    config = ProfilerConfig(
        framework_profile_params=profile, system_monitor_interval_millis=interval_ms
    )
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hook = Hook(folder, profiler_config=config, on_error="raise")
    hook.register_module(model)
    for step in range(steps):
        hook.set_mode(modes.EVAL if step % 4 == 3 else modes.TRAIN)
        loss = model(torch.randn(4, 8)).square().mean()
        if step % 4 < 3:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    hook.close()
    return [parameter.detach().clone() for parameter in model.parameters()]
