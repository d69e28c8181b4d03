"""Metrics of a host, computed from files of the kernel whose numbers are known."""

import os
from pathlib import Path

import pytest

from rule_core.profiler.recording.sampler.cgroup import Cgroup
from rule_core.profiler.recording.sampler.host import HostMeter

NET = "Inter-|   Receive\n face |bytes\n    lo: 900 1 0 0 0 0 0 0 900 1 0 0 0 0 0 0\n"
Values = dict[tuple[str, str, str], float]


class Kernel:
    """Files of a kernel, and a meter that reads them."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.cgroup = folder / "proc", folder / "cgroup"
        disks = [folder / "block" / name for name in ("sda", "dm-0")]
        for path in (self.proc / "net", self.cgroup, *disks):
            path.mkdir(parents=True)
        (self.cgroup / "cgroup.controllers").write_text("cpu")
        self.write()
        self.meter = HostMeter(self.proc, folder / "block", Cgroup(self.cgroup))

    def write(
        self, busy: int = 0, idle: int = 0, wait: int = 0, moved: int = 0, group_us: int = 0
    ) -> None:
        core = f"{busy} 0 0 {idle} {wait} 0 0 0 0 0"
        (self.proc / "stat").write_text(f"cpu  {core}\ncpu0 {core}\ncpu1 {core}\nctxt 5\n")
        (self.proc / "meminfo").write_text(
            "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 250 kB\n"
        )
        (self.proc / "net" / "dev").write_text(
            f"{NET}  eth0: {moved} 1 0 0 0 0 0 0 {2 * moved} 1 0 0 0 0 0 0\n"
        )
        disk = f"1 0 {moved} 0 1 0 {3 * moved} 0 0 0 0"
        (self.proc / "diskstats").write_text(
            f"8 0 sda {disk}\n8 1 sda1 {disk}\n253 0 dm-0 {disk}\n"
        )
        (self.cgroup / "cpu.stat").write_text(f"usage_usec {group_us}\n")

    def values(self, elapsed_s: float = 2.0) -> Values:
        readings = self.meter.readings(elapsed_s)
        return {(each.type, each.name, each.dimension): each.value for each in readings}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    return Kernel(tmp_path)


def test_processors_work_wait_or_idle(kernel: Kernel) -> None:
    kernel.write(busy=50, idle=30, wait=20)
    values = kernel.values()
    for core in ("cpu0", "cpu1"):
        assert values["cpu", core, "CPUUtilization"] == 50.0
        assert values["cpu", core, "I/OWaitPercentage"] == 20.0


def test_rates_count_whole_disks_and_real_interfaces(kernel: Kernel) -> None:
    kernel.write(moved=1000)
    values = kernel.values(elapsed_s=2.0)
    assert values["network", "ReceiveBytesPerSecond", "Algorithm"] == 500.0
    assert values["network", "TransmitBytesPerSecond", "Algorithm"] == 1000.0
    assert values["i/o", "ReadThroughputInBytesPerSecond", "Algorithm"] == 512 * 500.0
    assert values["i/o", "WriteThroughputInBytesPerSecond", "Algorithm"] == 512 * 1500.0


def test_memory(kernel: Kernel) -> None:
    assert kernel.values()["memory", "MemoryUsedPercent", "Memory"] == 75.0


def test_a_limit_of_processors_replaces_the_cores(kernel: Kernel) -> None:
    (kernel.cgroup / "cpu.max").write_text("150000 100000\n")
    kernel.write(busy=50, idle=30, wait=20, group_us=1_500_000)
    values = kernel.values(elapsed_s=2.0)
    cores = {name: value for (_, name, kind), value in values.items() if kind == "CPUUtilization"}
    # 1.5 s of the 3 s that 1.5 processors have in 2 s
    assert cores == pytest.approx({"cpu0": 50.0, "cpu1": 50.0})
    kernel.write(group_us=90_000_000)
    assert kernel.values()["cpu", "cpu0", "CPUUtilization"] == 100.0


def test_the_cores_are_those_that_the_process_may_use(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1})
    kernel.write(busy=1)
    assert {name for kind, name, _ in kernel.values() if kind == "cpu"} == {"cpu1"}


def test_counters_that_start_again_give_no_negative_rate(kernel: Kernel) -> None:
    kernel.write(busy=50, idle=50, moved=1000)
    kernel.values()
    kernel.write(busy=1, idle=1, moved=1)
    assert min(kernel.values().values()) >= 0.0


def test_missing_files_give_no_rows(tmp_path: Path) -> None:
    meter = HostMeter(tmp_path / "proc", tmp_path / "block", Cgroup(tmp_path))
    assert {each.type for each in meter.readings(1.0)} == {"network", "i/o"}
