"""What recording a profile costs in processor time: for `benchmarks/speed recording`.

Two equal trainings are trained in turns, one with a profile and one without, both with a hook that
saves nothing. The time is that of the processor, of the thread that trains and of the one that
writes, so that other work on the machine matters little. `docs/performance.md` has the table.
"""

import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import enumerate as enumerate_threads
from typing import Any, NamedTuple

import click
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import smdebug.pytorch as smd
from rule_core.clock import SystemClock
from rule_core.modes import ModeKeys
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.config_file import ConfigFile
from rule_core.profiler.recording.end_marks import SUPERVISED
from rule_core.profiler.recording.recorder import (
    BACKWARD,
    FORWARD,
    OPTIMIZER,
    ProfilerRecorder,
)

PAIRS = 300
STEPS = 10  # in a turn: most turns are shorter than the machine's time slices
SAMPLED_S = 20.0
pause = SystemClock().sleep
WIDTH, BATCH = 8, 4  # in small steps the difference is not lost in noise
COMMON_STEP_US = 10_000
LOOPS, LOOP_STEPS = 8, 500  # fewer events than may wait
WRITER = "smdebug-profiler"  # name of its thread
ALWAYS = {"StartStep": 0, "NumSteps": 1_000_000_000}
OVER = {"StartStep": 1, "NumSteps": 2}
RANGES = ("DataloaderProfilingConfig", "DetailedProfilingConfig", "PythonProfilingConfig")
CASES: dict[str, dict[str, Any] | None] = {
    "off": None,
    "timeline": {},
    "data loaders, in their range": {RANGES[0]: ALWAYS},
    "operators, in their range": {RANGES[1]: ALWAYS},
    "Python functions, in their range": {RANGES[2]: ALWAYS},
    "all three, after their ranges": dict.fromkeys(RANGES, OVER),
}


class Training:
    """A training of linear layers with batches of a loader, and a hook that saves nothing."""

    def __init__(self, folder: str, profile: dict[str, Any] | None) -> None:
        torch.manual_seed(0)
        layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU()] * 4
        self.model = nn.Sequential(*layers, nn.Linear(WIDTH, 10))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        data = TensorDataset(torch.randn((PAIRS + 1) * STEPS * BATCH, WIDTH))
        self.loader = DataLoader(data, batch_size=BATCH)
        self.batches: Iterator[Any] = iter(())
        config = None
        if profile is not None:
            config = {"ProfilingParameters": {"LocalPath": folder, **profile}}
        self.hook = smd.Hook(
            folder, include_workers="none", on_error="raise", profiler_config=config
        )
        self.hook.register_module(self.model)

    def turn(self) -> float:
        """Train for some steps, and return the seconds of processor time that they took."""
        began = time.thread_time()
        for (inputs,) in itertools.islice(self.batches, STEPS):
            self.optimizer.zero_grad()
            self.model(inputs).square().mean().backward()
            self.optimizer.step()
        return time.thread_time() - began


@contextmanager
def pair(profile: dict[str, Any] | None) -> Iterator[tuple[Training, Training]]:
    """Yield a training without a profile, and one with it."""
    # What was profiled after the hook may still be written at the end.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.environ[SUPERVISED] = folder  # no sampler
        plain, other = Training(folder, None), Training(folder, profile)
        plain.batches, other.batches = iter(plain.loader), iter(other.loader)
        yield plain, other
        other.hook.close()
        plain.hook.close()


class Costs(NamedTuple):
    """Microseconds of a step: more with a profile in each pair, of the writer, without."""

    more: list[float]
    writing: float
    without: float


def costs(profile: dict[str, Any] | None) -> Costs:
    """Return what the steps of two trainings take, after a turn that warms up."""
    with pair(profile) as (plain, other):
        turns = [(plain.turn(), other.turn()) for _ in range(PAIRS + 1)][1:]
        writers = [each.native_id for each in enumerate_threads() if each.name == WRITER]
        ticks = sum(_ticks(f"self/task/{writer}") for writer in writers)
    return Costs(
        [(more - seconds) / STEPS * 1e6 for seconds, more in turns],
        ticks / os.sysconf("SC_CLK_TCK") / STEPS / (PAIRS + 1) * 1e6,
        statistics.median(seconds for seconds, _ in turns) / STEPS * 1e6,
    )


def recorder_alone() -> float:
    """Return the microseconds of a step with three phases, without PyTorch, in the fastest loop."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ[SUPERVISED] = folder
        config = RecordingConfig(folder=folder, framework=True)
        recorder = ProfilerRecorder(ConfigFile(None, SystemClock(), config), 0, 1)
        for _ in range(LOOPS):
            began = time.thread_time()
            for step in range(LOOP_STEPS):
                recorder.begin_step(ModeKeys.TRAIN, step, step)
                for phase in (FORWARD, BACKWARD, OPTIMIZER):
                    recorder.begin(phase)
                    recorder.end(phase)
            times.append(time.thread_time() - began)
        recorder.close()
    return min(times) / LOOP_STEPS * 1e6


def closing() -> list[float]:
    """Return the seconds of processor time in which hooks with all profiles are closed."""
    times = []
    for _ in range(5):
        with pair(dict.fromkeys(RANGES, ALWAYS)) as (_, other):
            other.turn()
            began = time.process_time()
            other.hook.close()
            times.append(time.process_time() - began)
    return times


def sampler() -> tuple[float, float]:
    """Return the share of a core and the memory, in MB, that a sampler takes."""
    with tempfile.TemporaryDirectory() as folder:
        module = "rule_core.profiler.recording.sampler"
        process = subprocess.Popen(
            [sys.executable, "-m", module, folder, f"--parent={os.getpid()}"],
            stdin=subprocess.PIPE,
        )
        pause(3)  # it starts
        before = _ticks(str(process.pid))
        pause(SAMPLED_S)
        share = (_ticks(str(process.pid)) - before) / os.sysconf("SC_CLK_TCK") / SAMPLED_S
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.communicate(b"stop")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return share, int(peak.split()[1]) / 1e3


def _ticks(process: str) -> int:
    """Return the processor time of a process or thread, in ticks of the system's clock."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12])


def run() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    load = os.getloadavg()[0]
    click.echo(
        f"torch {torch.__version__}, 1 thread, load {load:.0f}; "
        f"{PAIRS} pairs of {STEPS} steps; medians with quartiles"
    )
    click.echo("| recording | more for a step | of 10 ms | writer | a step without |")
    click.echo("|---|---:|---:|---:|---:|")
    for name, profile in CASES.items():
        more, writing, without = costs(profile)
        low, middle, high = statistics.quantiles(more, n=4)
        click.echo(
            f"| {name} | {middle:+.0f} us ({low:+.0f} to {high:+.0f}) "
            f"| {middle / COMMON_STEP_US:+.2%} | {writing:.0f} us | {without:.0f} us |"
        )
    click.echo(f"recorder alone, in a tight loop: {recorder_alone():.1f} us a step")
    share, memory = sampler()
    click.echo(f"sampler, 500 ms: {share:.2%} of a core, {memory:.0f} MB")
    click.echo(f"close() after {STEPS} steps with all three: {statistics.median(closing()):.2f} s")


if __name__ == "__main__":
    run()
