"""One worker of a distributed training on gloo whose hook has a preset, run as a process.

Usage: ``preset_workers.py MANNER WORKERS ROOT``: `MANNER` is ``ddp`` or ``fsdp``; `WORKERS` says
which of them save: ``one``, ``all``, ``closing`` (all, but one closes its hook early), ``failing``
(the hook of one fails early) or ``alone`` (one has no hook). Rank, size and port are in the
environment, as torchrun puts them there. Prints the norms of all gradients.
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


def main(manner: str, workers: str, root: str) -> None:
    """Train; print the norm of each step's gradients, computed from all shards."""
    torch.set_num_threads(1)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    training = wrapped(model(), manner)
    hook = smd.Hook(
        root,
        preset="llm",
        save_config=smd.SaveConfig(save_interval=1),
        include_workers="one" if workers in {"one", "alone"} else "all",
        on_error="raise",
    )
    if workers != "alone" or rank == 0:
        hook.register_module(training)
    optimizer = torch.optim.SGD(training.parameters(), 0.1)
    norms: list[float] = []
    for step in range(STEPS):
        optimizer.zero_grad()
        training(batch(rank, step)).square().sum().backward()
        norms.append(sum(_squares(item.grad) for item in training.parameters()) ** 0.5)
        nn.utils.clip_grad_norm_(training.parameters(), 0.5)
        optimizer.step()
        if rank and step == 1 and workers == "failing":
            hook._raises = False
            hook._fail(RuntimeError("the hook of one worker is off"))
        if rank and step == 1 and workers == "closing":
            hook.close()
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
