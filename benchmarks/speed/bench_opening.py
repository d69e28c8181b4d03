"""What opening and following a trial of 100,000 steps takes: for docs/performance.md.

Each opening is a process of its own, in turns with the floor: list the index folders, read every
file in them, and do nothing with what they say. Seconds of processor time, without start-up.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path

import click

STEPS = 100_000
TENSORS = 3
ROUNDS = 7
LOOKS = 50


def run(steps: int = STEPS) -> None:
    """Print what opening takes beside the floor, what a look takes, and the memory of it."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, steps)
        pairs = [(_asked("opened", folder), _asked("floor", folder)) for _ in range(ROUNDS)]
        ratios = sorted(ours["s"] / floor["s"] for ours, floor in pairs)
        click.echo(f"opening {steps} steps of {TENSORS} tensors, s:", nl=False)
        click.echo(f" {statistics.median(ours['s'] for ours, _ in pairs):.2f}")
        click.echo(f"opening / floor: {ratios[0]:.1f} {statistics.median(ratios):.1f}", nl=False)
        click.echo(f" {ratios[-1]:.1f} (min, median, max of {ROUNDS} pairs)")
        found = _asked("followed", folder)
        click.echo(f"a look at the running trial, ms: {found['look_ms']:.2f}")
        click.echo(f"the same with one new step, ms: {found['new_ms']:.2f}")
        click.echo(f"memory, bytes a step: {_asked('held', folder)['bytes'] / steps:.0f}")


def write(folder: str, steps: int) -> None:
    """Write a trial that goes on."""
    from smdebug.core.modes import ModeKeys
    from smdebug.core.writer import TrialWriter

    writer = TrialWriter(folder, collections={"losses": "tensor0"})
    values = {f"tensor{number}": 1.0 for number in range(TENSORS)}
    for step in range(steps):
        writer.step(step, values, mode=ModeKeys.TRAIN)


def _asked(what: str, folder: str) -> dict[str, float]:
    """Return what another process measures."""
    command = [sys.executable, __file__, what, folder]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def opened(folder: str) -> dict[str, float]:
    """Open a trial and ask for its steps, its names and the steps of a tensor."""
    from smdebug.trials import create_trial

    began = time.process_time()
    trial = create_trial(folder)
    trial.steps()
    trial.tensor(trial.tensor_names()[0]).steps()
    return {"s": time.process_time() - began}


def floor(folder: str) -> dict[str, float]:
    """Read all index files."""
    began = time.process_time()
    for shard in sorted(Path(folder, "index").iterdir()):
        fd = os.open(shard, os.O_RDONLY)
        for name in os.listdir(fd):  # noqa: PTH208 - of an open folder
            file = os.open(name, os.O_RDONLY, dir_fd=fd)
            os.pread(file, 1 << 15, 0)
            os.close(file)
        os.close(fd)
    return {"s": time.process_time() - began}


def followed(folder: str) -> dict[str, float]:
    """Look again and again at a trial that has not ended, without news and with a new step."""
    from smdebug.core import locations
    from smdebug.trials import create_trial

    index = create_trial(folder).index
    last = Path(folder, locations.index_key(index.steps[-1], "worker_0"))
    index.refresh()
    began = time.process_time()
    for _ in range(LOOKS):
        index.has_ended()
        index.refresh()
    idle = time.process_time() - began
    new = 0.0
    for _ in range(LOOKS):
        step = index.steps[-1] + 1
        new_file = Path(folder, locations.index_key(step, "worker_0"))
        new_file.parent.mkdir(exist_ok=True)
        new_file.write_bytes(last.read_bytes())
        began = time.process_time()
        index.has_ended()
        index.refresh()
        new += time.process_time() - began
    return {"look_ms": idle / LOOKS * 1e3, "new_ms": new / LOOKS * 1e3}


def held(folder: str) -> dict[str, float]:
    """Return the memory that an open trial takes."""
    from smdebug.trials import create_trial

    tracemalloc.start()
    trial = create_trial(folder)
    trial.steps()
    return {"bytes": tracemalloc.get_traced_memory()[0]}


if __name__ == "__main__":
    if sys.argv[2:]:  # the other process
        measure = {"opened": opened, "floor": floor, "followed": followed, "held": held}
        click.echo(json.dumps(measure[sys.argv[1]](sys.argv[2])))
    else:
        run(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
