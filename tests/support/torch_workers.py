"""One worker of a distributed training on gloo, run as a process of its own.

Usage: ``torch_workers.py MANNER WRAPPED INCLUDE ROOT``: `MANNER` is ``ddp`` or ``fsdp``, `WRAPPED`
says whether the model is ``before`` or ``after`` its wrapping when it is registered. Rank, size and
port are in the environment, as torchrun puts them there.
"""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import distributed, nn
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import smdebug.pytorch as smd

STEPS = 2


def model() -> Any:
    """Return the same layers in each worker."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))


def batch(rank: int, step: int) -> Any:
    """Return a worker's share of a step's rows."""
    return torch.randn(4, 4, generator=torch.Generator().manual_seed(10 * step + rank))


def wrapped(plain: Any, manner: str) -> Any:
    """Return the model as a distributed one."""
    if manner == "ddp":
        return DistributedDataParallel(plain)
    fully_shard(plain[0])
    fully_shard(plain)
    return plain


def local(tensor: Any) -> Any:
    """Return this worker's elements."""
    tensor = tensor.detach()
    return (tensor.to_local() if hasattr(tensor, "to_local") else tensor).clone().numpy()


def main(manner: str, when: str, include: str, root: str) -> None:
    """Train; save weights and gradients by PyTorch itself beside the trial."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    plain = model()
    hook = smd.Hook(
        root,
        save_config=smd.SaveConfig(save_interval=1),
        save_all=True,
        include_workers=include,
        on_error="raise",
    )
    if when == "before":
        hook.register_module(plain)
    training = wrapped(plain, manner)
    if when == "after":
        hook.register_module(training)
    optimizer = torch.optim.SGD(training.parameters(), 0.1)
    values: dict[str, Any] = {}
    for step in range(STEPS):
        optimizer.zero_grad()
        for name, parameter in plain.named_parameters():
            values[f"{step} Sequential_{name}"] = local(parameter)
        training(batch(rank, step)).square().sum().backward()
        for name, parameter in plain.named_parameters():
            values[f"{step} gradient/Sequential_{name}"] = local(parameter.grad)
        optimizer.step()
    hook.close()
    np.savez(Path(root).parent / f"by_torch_{rank}.npz", **values)
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(*sys.argv[1:])
