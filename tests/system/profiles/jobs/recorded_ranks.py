"""Recorded traces of plain torch.profiler: two processes that train together over Gloo.

The work of a rank is to wait, as for a disk, so that other work on the machine changes little.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import rank_worker
from profile_jobs import RECORDED, faulty, healthy

STEPS: Final = 12
EVEN: Final = [0.06] * STEPS


def make(folder: Path, loads: Sequence[Sequence[float]]) -> None:
    """Train; `loads` has the seconds that each rank prepares its batch in each step."""
    folder.mkdir(parents=True)
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, rank_worker.__file__, str(folder), str(len(loads))]
    workers = [
        subprocess.Popen([*command, str(rank), json.dumps(load)], env=environment)
        for rank, load in enumerate(loads)
    ]
    codes = [worker.wait() for worker in workers]
    if any(codes):
        msg = f"A rank ended with an error: {codes}."
        raise RuntimeError(msg)


def slower(factor: float) -> list[float]:
    """Return loads that take longer by a factor."""
    return [factor * load for load in EVEN]


_HEALTHY: Final[Mapping[str, tuple[str, Sequence[Sequence[float]]]]] = {
    "even_ranks": ("Two ranks with the same work.", (EVEN, EVEN)),
    "rank_slower_by_2_percent": ("A rank that takes 2 % longer.", (EVEN, slower(1.02))),
    "rank_with_one_checkpoint": (
        "A rank that writes a checkpoint in one step.",
        ([*EVEN[1:], 0.1], EVEN),
    ),
}
_FAULTY: Final[Mapping[str, tuple[str, Sequence[Sequence[float]]]]] = {
    "rank_with_slow_disk": ("A rank whose data take twice as long.", (EVEN, slower(2))),
    "rank_that_logs": (
        "Rank 0 evaluates and logs in each step, for 50 ms.",
        ([load + 0.05 for load in EVEN], EVEN),
    ),
    "rank_with_more_samples": ("A rank with half as many samples again.", (EVEN, slower(1.5))),
}

for _name, (_text, _loads) in _HEALTHY.items():
    healthy(partial(make, loads=_loads), _name, _text, RECORDED)
for _name, (_text, _loads) in _FAULTY.items():
    faulty(partial(make, loads=_loads), _name, _text, RECORDED, ("StragglerRank",))
