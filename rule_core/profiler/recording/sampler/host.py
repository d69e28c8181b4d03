"""HostMeter: processors, memory, network and disks, from the files of the kernel."""

import math
import os
from pathlib import Path
from typing import Final

from rule_core.profiler.recording.sampler.cgroup import Cgroup
from rule_core.profiler.recording.sampler.readings import MetricValue, numbers_in, text_of

PROC: Final = Path("/proc")
BLOCK_DEVICES: Final = Path("/sys/block")
# Devices whose traffic is that of others.
_STACKED: Final = ("loop", "ram", "zram", "dm-", "md")
_SECTOR: Final = 512  # bytes, whatever the device has
_IDLE, _IO_WAIT, _STEAL = 3, 4, 7  # columns of /proc/stat, of which the further ones are guests
_READ, _WRITTEN = 5, 9  # columns of /proc/diskstats
_RECEIVED, _SENT = 0, 8  # columns of /proc/net/dev
_ALGORITHM: Final = "Algorithm"
_CPU_DIMENSIONS: Final = ("CPUUtilization", "I/OWaitPercentage")
_TRAFFIC: Final = (
    ("network", "ReceiveBytesPerSecond"),
    ("network", "TransmitBytesPerSecond"),
    ("i/o", "ReadThroughputInBytesPerSecond"),
    ("i/o", "WriteThroughputInBytesPerSecond"),
)
Times = tuple[int, ...]


class HostMeter:
    """Reads the system metrics of a node.

    Inside a control group with a limit of processors, there are as many cores as the limit allows,
    and all have the group's utilization of it. Memory is that of the group if it has a limit.

    Parameters
    ----------
    proc, block_devices
        Where the kernel's files are.
    cgroup
        The control group.
    """

    def __init__(
        self, proc: Path = PROC, block_devices: Path = BLOCK_DEVICES, cgroup: Cgroup | None = None
    ) -> None:
        self._proc = proc
        self._cgroup = cgroup or Cgroup()
        self._disks = frozenset(
            path.name
            for path in (block_devices.iterdir() if block_devices.is_dir() else ())
            if not path.name.startswith(_STACKED)
        )
        self._cores: dict[str, Times] = self._read_cores()
        self._group_s = self._cgroup.cpu_seconds()
        self._traffic = self._read_traffic()

    def readings(self, elapsed_s: float) -> list[MetricValue]:
        """Return the values now; rates are over the seconds since the last call."""
        return [*self._cpu(elapsed_s), *self._memory(), *self._rates(elapsed_s)]

    # -- processors ----------------------------------------------------------------------------

    def _cpu(self, elapsed_s: float) -> list[MetricValue]:
        before, self._cores = self._cores, self._read_cores()
        used = {
            name: _shares(before.get(name, times), times) for name, times in self._cores.items()
        }
        return [
            MetricValue("cpu", name, dimension, value)
            for name, shares in self._limited(used, elapsed_s).items()
            for dimension, value in zip(_CPU_DIMENSIONS, shares, strict=True)
        ]

    def _limited(
        self, used: dict[str, tuple[float, float]], elapsed_s: float
    ) -> dict[str, tuple[float, float]]:
        """Return the utilization of the group's limit instead, if it has one."""
        before, self._group_s = self._group_s, self._cgroup.cpu_seconds()
        limit = self._cgroup.cpus()
        if limit is None or before is None or self._group_s is None or not used:
            return used
        busy = min(100.0, 100 * (self._group_s - before) / (limit * elapsed_s))
        waiting = sum(wait for _, wait in used.values()) / len(used)
        return {f"cpu{number}": (busy, waiting) for number in range(math.ceil(limit))}

    def _read_cores(self) -> dict[str, Times]:
        """Return the times of the processors that this process may use."""
        allowed = {f"cpu{number}" for number in os.sched_getaffinity(0)}
        cores = {}
        for line in text_of(self._proc / "stat").splitlines():
            name, *fields = line.split()
            if name in allowed:
                cores[name] = tuple(map(int, fields[: _STEAL + 1]))
        return cores

    # -- memory --------------------------------------------------------------------------------

    def _memory(self) -> list[MetricValue]:
        percent = self._cgroup.memory_used_percent()
        if percent is None:
            percent = self._host_memory()
        if percent is None:
            return []
        return [MetricValue("memory", "MemoryUsedPercent", "Memory", percent)]

    def _host_memory(self) -> float | None:
        sizes = numbers_in(self._proc / "meminfo")
        total, available = sizes.get("MemTotal"), sizes.get("MemAvailable")
        return 100 * (total - available) / total if total and available is not None else None

    # -- network and disks ---------------------------------------------------------------------

    def _rates(self, elapsed_s: float) -> list[MetricValue]:
        before, self._traffic = self._traffic, self._read_traffic()
        return [
            MetricValue(kind, name, _ALGORITHM, max(now - earlier, 0) / elapsed_s)
            for (kind, name), earlier, now in zip(_TRAFFIC, before, self._traffic, strict=True)
        ]

    def _read_traffic(self) -> tuple[int, ...]:
        """Return the bytes of each kind in `_TRAFFIC` so far."""
        return *self._read_network(), *self._read_disks()

    def _read_network(self) -> tuple[int, int]:
        """Return the bytes that all interfaces but the loopback have received and sent."""
        received = sent = 0
        for line in text_of(self._proc / "net" / "dev").splitlines()[2:]:
            name, _, numbers = line.partition(":")
            fields = numbers.split()
            if name.strip() != "lo" and len(fields) > _SENT:
                received += int(fields[_RECEIVED])
                sent += int(fields[_SENT])
        return received, sent

    def _read_disks(self) -> tuple[int, int]:
        """Return the bytes that were read from and written to whole disks."""
        read = written = 0
        for line in text_of(self._proc / "diskstats").splitlines():
            fields = line.split()
            if len(fields) > _WRITTEN and fields[2] in self._disks:
                read += _SECTOR * int(fields[_READ])
                written += _SECTOR * int(fields[_WRITTEN])
        return read, written


def _shares(before: Times, after: Times) -> tuple[float, float]:
    """Return how much of the time between two readings a core worked and waited, in percent."""
    spent = [max(new - old, 0) for old, new in zip(before, after, strict=False)]
    total = sum(spent)
    if not total or len(spent) <= _IO_WAIT:
        return 0.0, 0.0
    idle, waiting = spent[_IDLE], spent[_IO_WAIT]
    return 100 * (total - idle - waiting) / total, 100 * waiting / total
