"""SamplerProcess: samples a node until the training ends."""

import argparse
import fcntl
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rule_core.environment import ON_SAGEMAKER
from rule_core.exceptions import SMDebugError
from rule_core.profiler.recording import layout
from rule_core.profiler.recording.sampler.gpu import GpuMeter, open_gpus
from rule_core.profiler.recording.sampler.host import HostMeter
from rule_core.profiler.recording.sampler.system_files import SystemFiles
from rule_core.profiler.recording.steady_time import SteadyTime

if TYPE_CHECKING:
    from rule_core.profiler.recording.sampler.readings import Meter

NICENESS: Final = 10
DEVICE: Final = "/dev/nvidiactl"  # exists where NVIDIA's driver runs
LOOK_S: Final = 1.0  # how often the parent is looked for
_MS: Final = 1e-3


class SamplerProcess:
    """Samples at a fixed rate until it is stopped or its parent ends.

    Parameters
    ----------
    files
        Receives the samples.
    interval_s
        Seconds between two samples.
    parent
        The process that started this one.
    """

    def __init__(self, files: SystemFiles, interval_s: float, parent: int) -> None:
        self._files = files
        self._interval_s = interval_s
        self._parent = parent
        self._stops = threading.Event()
        self._meters: list[Meter] = [HostMeter()]
        self._gpus = open_gpus()
        self._printed: set[str] = set()
        if isinstance(self._gpus, GpuMeter):
            self._meters.append(self._gpus)
        elif Path(DEVICE).exists():
            self._print(self._gpus)

    def stop(self, *_: object) -> None:
        """Stop after the sample in hand."""
        self._stops.set()

    def run(self) -> None:
        """Sample; return once it is stopped or the parent has ended."""
        now_us = SteadyTime()
        tick = last = time.monotonic()
        while self._waits_for(tick := self._next(tick)):
            now = time.monotonic()
            elapsed_s, last = now - last, now
            time_us = now_us()
            readings = [reading for meter in self._meters for reading in meter.readings(elapsed_s)]
            self._files.add(time_us, readings)
            for problem in self._gpus.problems if isinstance(self._gpus, GpuMeter) else ():
                self._print(problem)
        self._files.close()
        if self._has_parent() and ON_SAGEMAKER not in os.environ:
            self._files.end()

    def _next(self, tick: float) -> float:
        """Return the time of the next sample; samples that were missed are skipped."""
        late = max(time.monotonic() - tick, 0.0)
        return tick + self._interval_s * (1 + late // self._interval_s)

    def _waits_for(self, moment: float) -> bool:
        """Wait until a moment; return False if sampling ends before it."""
        while (remaining := moment - time.monotonic()) > 0:
            if self._stops.wait(min(remaining, LOOK_S)) or not self._has_parent():
                return False
        return not self._stops.is_set() and self._has_parent()

    def _has_parent(self) -> bool:
        return os.getppid() == self._parent

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
        sampler = SamplerProcess(files, args.interval_ms * _MS, args.parent)
        signal.signal(signal.SIGTERM, sampler.stop)
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
