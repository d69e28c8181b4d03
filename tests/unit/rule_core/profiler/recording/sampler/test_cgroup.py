"""Limits of control groups, of both versions, on files as the kernel writes them."""

import os
from pathlib import Path

import pytest

from rule_core.profiler.recording.sampler.cgroup import Cgroup

STAT_V2 = "anon 1\ninactive_file 100\nactive_file 7\n"


def write(root: Path, files: dict[str, str]) -> Cgroup:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Cgroup(root)


@pytest.fixture(autouse=True)
def _four_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 4)


def v2(root: Path, **files: str) -> Cgroup:
    names = {name.replace("_", ".", 1): text for name, text in files.items()}
    return write(root, {"cgroup.controllers": "cpu memory", **names})


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("150000 100000\n", 1.5),
        ("max 100000\n", None),
        ("400000 100000\n", None),
        ("100000 0\n", None),
        ("nonsense", None),
        ("", None),
    ],
)
def test_processors_of_version_2(tmp_path: Path, text: str, limit: float | None) -> None:
    assert v2(tmp_path, cpu_max=text).cpus() == limit


@pytest.mark.parametrize(("quota", "limit"), [("150000\n", 1.5), ("-1\n", None), ("", None)])
def test_processors_of_version_1(tmp_path: Path, quota: str, limit: float | None) -> None:
    files = {"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_period_us": "100000\n"}
    assert write(tmp_path, files).cpus() == limit


def test_processor_time(tmp_path: Path) -> None:
    group = v2(tmp_path / "2", cpu_stat="usage_usec 2500000\nuser_usec 1\n")
    assert group.cpu_seconds() == 2.5
    assert write(tmp_path / "1", {"cpuacct/cpuacct.usage": "2500000000\n"}).cpu_seconds() == 2.5
    assert v2(tmp_path / "0").cpu_seconds() is None


def test_memory_without_pages_that_can_be_dropped(tmp_path: Path) -> None:
    group = v2(tmp_path / "2", memory_max="1000\n", memory_current="600\n", memory_stat=STAT_V2)
    assert group.memory_used_percent() == 50.0
    files = {
        "memory/memory.limit_in_bytes": "1000\n",
        "memory/memory.usage_in_bytes": "600\n",
        "memory/memory.stat": "inactive_file 1\ntotal_inactive_file 100\n",
    }
    assert write(tmp_path / "1", files).memory_used_percent() == 50.0


@pytest.mark.parametrize("limit", ["max\n", "9223372036854771712\n", "0\n", ""])
def test_memory_without_a_limit(tmp_path: Path, limit: str) -> None:
    group = v2(tmp_path, memory_max=limit, memory_current="600\n", memory_stat=STAT_V2)
    assert group.memory_used_percent() is None


def test_no_control_groups_at_all(tmp_path: Path) -> None:
    group = Cgroup(tmp_path / "missing")
    assert (group.cpus(), group.cpu_seconds(), group.memory_used_percent()) == (None, None, None)
