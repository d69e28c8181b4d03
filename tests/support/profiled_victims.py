"""Profiled trainings that are killed at random moments, each in a process of its own.

``profiled_victims.py FOLDER SEED COUNT`` imports PyTorch once, and forks for each of them.
"""

import os
import random
import signal
import sys
import threading
from pathlib import Path

import torch
from recorded_profiles import profiler_config
from torch.utils.data import DataLoader, TensorDataset

from smdebug.pytorch import Hook

RANGE = {"StartStep": 2, "NumSteps": 10_000}
SETTINGS = {
    "RotateMaxFileSizeInBytes": 4000,
    "DetailedProfilingConfig": RANGE,
    "DataloaderProfilingConfig": RANGE,
    "PythonProfilingConfig": RANGE,
}
LONGEST_S = 1.0
POLL_S = 0.05
WHOLE = ("pevents/**/*.json", "*.pt.trace.json.gz", "python_stats")


def train(folder: Path, has_begun: int) -> None:
    """Train until the end of the process; write to a pipe after the first step."""
    torch.set_num_threads(1)
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    hook = Hook(folder / "trial", profiler_config=profiler_config(folder, **SETTINGS))
    hook.register_module(module)
    data = TensorDataset(torch.ones(64, 4))
    step = 0
    while True:
        for (batch,) in DataLoader(data, batch_size=4):
            optimizer.zero_grad()
            module(batch).square().mean().backward()
            optimizer.step()
            if not step:
                os.write(has_begun, b".")
            step += 1


def has_whole_files(folder: Path) -> bool:
    """Return whether a training has published a file of each kind."""
    return all(any((folder / "profile").rglob(pattern)) for pattern in WHOLE)


def kill_at(folder: Path, after_s: float, *, is_late: bool) -> None:
    """Start a training, and kill it some time after its first step or its first whole files."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        train(folder, writer)
    os.read(reader, 1)
    while is_late and not has_whole_files(folder):
        threading.Event().wait(POLL_S)
    threading.Event().wait(after_s)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(reader)
    os.close(writer)


if __name__ == "__main__":
    root, seed, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    moments = random.Random(seed)
    for number in range(count):
        kill_at(root / str(number), moments.uniform(0.0, LONGEST_S), is_late=not number)
