"""Threads that measure: as many as the process may use, and no more than is set."""

import os
from pathlib import Path

import pytest

from rule_core.exceptions import SMDebugValueError
from rule_core.kernels import cores
from rule_core.kernels.cores import MOST, THREADS, cgroup_cores, measuring_threads


@pytest.mark.parametrize(
    ("affinity", "quota", "wanted", "expected"),
    [
        (1, MOST, "", 1),
        (4, MOST, "", 4),
        (4, 2, "", 2),
        (4, MOST, "3", 3),
        (4, MOST, "9", 4),
        (4, MOST, "0", 4),
        (100, MOST, "", MOST),
        (100, MOST, "50", MOST),
    ],
)
def test_threads_are_limited_by_everything(
    monkeypatch: pytest.MonkeyPatch, affinity: int, quota: int, wanted: str, expected: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {*range(affinity)})
    monkeypatch.setattr(cores, "_quota", lambda: quota)
    monkeypatch.setenv(THREADS, wanted)
    assert measuring_threads() == expected


def test_a_number_of_threads_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(THREADS, "many")
    with pytest.raises(SMDebugValueError, match="must be a number of threads >= 0, got 'many'"):
        measuring_threads()


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        ("0::/\n", {"": "200000 100000\n"}, 2),
        ("0::/a/b\n", {"a": "150000 100000", "a/b": "max 100000"}, 2),
        ("0::/a/b\n", {"a": "300000 100000", "a/b": "5000 100000"}, 1),
        ("0::/a\n", {"a": "max 100000"}, MOST),
        ("0::/a\n", {"a": "many 100000"}, MOST),
        ("0::/a\n", {"a": "100000 0"}, MOST),
        ("0::/../..\n", {}, MOST),
        ("12:cpu:/a\n", {"a": "100000 100000"}, MOST),
        ("", {}, MOST),
    ],
)
def test_cores_of_a_control_group_are_those_of_the_narrowest(
    tmp_path: Path, own: str, limits: dict[str, str], expected: int
) -> None:
    root = tmp_path / "cgroup"
    for group, limit in limits.items():
        (root / group).mkdir(parents=True, exist_ok=True)
        (root / group / "cpu.max").write_text(limit, "ascii")
    (tmp_path / "own").write_text(own, "utf-8")
    assert cgroup_cores(tmp_path / "own", root) == expected


def test_without_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert cgroup_cores(tmp_path / "none", tmp_path) == MOST
