"""One rank of a small training over Gloo, under plain torch.profiler; a process of its own.

Usage: ``rank_worker.py FOLDER RANKS RANK SECONDS``: `SECONDS` is a list in JSON of how long the
rank prepares its batch in each step. The ranks meet at a file in `FOLDER`, to which each writes its
trace.
"""

import json
import sys
from pathlib import Path

from rule_core.clock import SystemClock

CLOCK = SystemClock()
WARM_UP = 2


def main(folder: Path, ranks: int, rank: int, seconds: list[float]) -> None:
    """Train a step for each of the seconds, and two before them."""
    import torch
    from torch import distributed, profiler

    torch.set_num_threads(1)
    meeting = f"file://{(folder / 'meeting').resolve()}"
    distributed.init_process_group("gloo", meeting, world_size=ranks, rank=rank)
    model = torch.nn.Linear(64, 64)
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        schedule=profiler.schedule(wait=1, warmup=1, active=len(seconds), repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(str(folder), f"rank{rank}"),
    ) as running:
        for load in [0.0] * WARM_UP + seconds:
            CLOCK.sleep(load)
            model(torch.ones(16, 64)).square().mean().backward()
            for parameter in model.parameters():
                distributed.all_reduce(parameter.grad)
            running.step()
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4]))
