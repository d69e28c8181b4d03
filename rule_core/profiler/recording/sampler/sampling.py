"""SamplerProcess: samples a node until the training ends."""

import argparse
import fcntl
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from rule_core.clock import SteadyTime
from rule_core.environment import ON_SAGEMAKER
from rule_core.exceptions import SMDebugError
from rule_core.profiler.recording import layout
from rule_core.profiler.recording.sampler.gpu import GpuMeter, open_gpus
from rule_core.profiler.recording.sampler.host import HostMeter
from rule_core.profiler.recording.sampler.process import STOP
from rule_core.profiler.recording.sampler.system_files import SystemFiles

NICENESS: Final = 10
DEVICE: Final = "/dev/nvidiactl"  # exists where NVIDIA's driver runs
LEAST_S: Final = 1e-3
LOOK_S: Final = 1.0  # how often the parent is looked for
_MS: Final = 1e-3


class Control:
    """What the parent says through a pipe: `STOP`, or nothing more because it has died.

    Parameters
    ----------
    pipe
        File descriptor.
    parent
        The process that started this one. Its children may keep the pipe open after its death.

    Attributes
    ----------
    is_stopped
        Whether the parent has requested the end.
    """

    def __init__(self, pipe: int, parent: int) -> None:
        self.is_stopped = False
        self._pipe = pipe
        self._parent = parent

    def wait(self, seconds: float) -> bool:
        """Wait; return whether sampling has to end before that time."""
        if self.is_stopped or os.getppid() != self._parent:
            return True
        if not select.select([self._pipe], [], [], seconds)[0]:
            return False
        self.is_stopped = os.read(self._pipe, len(STOP)) == STOP
        return True


class SamplerProcess:
    """Samples at a fixed rate until it is stopped or its parent ends.

    Parameters
    ----------
    files
        Receives the samples.
    interval_s
        Seconds between two samples.
    control
        Tells when to end.
    """

    def __init__(self, files: SystemFiles, interval_s: float, control: Control) -> None:
        self._files = files
        self._interval_s = interval_s
        self._control = control
        self._host = HostMeter()
        self._gpus = open_gpus()
        self._printed: set[str] = set()
        if isinstance(self._gpus, str) and Path(DEVICE).exists():
            self._print(self._gpus)

    def run(self) -> None:
        """Sample; return once it is stopped or the parent has ended."""
        now_us = SteadyTime()
        tick = last = began = time.monotonic()
        while self._waits_for(tick := self._next(tick)):
            now = time.monotonic()
            self._sample(now_us(), now - last)
            last = now
        if last == began and self._control.is_stopped:  # a short training has one sample too
            self._sample(now_us(), max(time.monotonic() - began, LEAST_S))
        self._files.close()
        if self._control.is_stopped and ON_SAGEMAKER not in os.environ:
            self._files.end()

    def _sample(self, time_us: int, elapsed_s: float) -> None:
        readings = self._host.readings(elapsed_s)
        if isinstance(self._gpus, GpuMeter):
            readings += self._gpus.readings()
            for problem in self._gpus.problems:
                self._print(problem)
        self._files.add(time_us, readings)

    def _next(self, tick: float) -> float:
        """Return the time of the next sample; samples that were missed are skipped."""
        late = max(time.monotonic() - tick, 0.0)
        return tick + self._interval_s * (1 + late // self._interval_s)

    def _waits_for(self, moment: float) -> bool:
        """Wait until a moment; return False if sampling ends before it."""
        while (remaining := moment - time.monotonic()) > 0:
            if self._control.wait(min(remaining, LOOK_S)):
                return False
        return not self._control.wait(0.0)

    def _print(self, text: str) -> None:
        if text not in self._printed:
            self._printed.add(text)
            sys.stderr.write(f"rule-runner: {text}\n")


def main() -> None:
    """Sample as the arguments say; an error is printed in one sentence."""
    parser = argparse.ArgumentParser(prog="sampler", description=__doc__)
    parser.add_argument("folder", help="folder or S3 address of the recording")
    parser.add_argument("--interval-ms", type=int, default=500)
    parser.add_argument("--node", type=int, default=1, help="number of the node, from 1")
    parser.add_argument("--parent", type=int, required=True, help="ID of the parent process")
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the training too
    with suppress(OSError):
        os.nice(NICENESS)
    try:
        if not is_alone(args.folder, args.node):
            return
        files = SystemFiles(args.folder, args.node)
        files.name_node(layout.host_name())
        files.remove_end_mark()
        control = Control(sys.stdin.fileno(), args.parent)
        sampler = SamplerProcess(files, args.interval_ms * _MS, control)
        try:
            sampler.run()
        finally:
            files.discard_staging()
    except (OSError, SMDebugError) as err:  # of the disk or of S3
        sys.stderr.write(f"rule-runner: System metrics are no longer sampled: {err}.\n")


def is_alone(folder: str, node: int) -> bool:
    """Return whether no other sampler of this node writes into a folder.

    The lock is held until the process ends. Recordings in S3 are not locked.
    """
    if folder.strip().lower().startswith("s3"):
        return True
    path = Path(folder, "system", f".sampler-{node}.lock")
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return False
    return True
