"""One worker of a distributed training on gloo whose hook has a preset, run as a process.

Usage: ``preset_workers.py MANNER INCLUDE ROOT``: `MANNER` is ``ddp`` or ``fsdp``. Rank, size and
port are in the environment, as torchrun puts them there. Prints the norms of all gradients.
"""

import json
import os
import sys
from typing import Any

import torch
from torch import distributed, nn
from torch_workers import batch, model, wrapped

import smdebug.pytorch as smd

STEPS = 3


def main(manner: str, include: str, root: str) -> None:
    """Train; print the norm of each step's gradients, computed from all shards."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    training = wrapped(model(), manner)
    hook = smd.Hook(
        root,
        preset="llm",
        save_config=smd.SaveConfig(save_interval=1),
        include_workers=include,
        on_error="raise",
    )
    hook.register_module(training)
    optimizer = torch.optim.SGD(training.parameters(), 0.1)
    norms: list[float] = []
    for step in range(STEPS):
        optimizer.zero_grad()
        training(batch(rank, step)).square().sum().backward()
        norms.append(sum(_squares(item.grad) for item in training.parameters()) ** 0.5)
        nn.utils.clip_grad_norm_(training.parameters(), 0.5)
        optimizer.step()
        if include == "all" and rank and step == 1:
            hook._fail(RuntimeError("the hook of one worker is off"))  # the others must not wait
    if hook.is_off:
        hook._raises = False
    hook.close()
    print(json.dumps(norms))
    distributed.barrier()
    distributed.destroy_process_group()


def _squares(gradient: Any) -> float:
    full = gradient.full_tensor() if hasattr(gradient, "full_tensor") else gradient
    return float(full.double().square().sum())


if __name__ == "__main__":
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    main(*sys.argv[1:])
