"""Profiles of other tools in a folder: which there are, and their sum."""

from pathlib import Path

import pytest
from tool_profile_writer import sampled, scalene_entry, write_scalene, write_speedscope

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.python_profiles.measured_code import CodePlace
from rule_core.profiler.python_profiles.other_tools import (
    SCALENE,
    SPEEDSCOPE,
    ToolProfiles,
    read_tool_profiles,
    tool_profiles,
)
from rule_core.storage.uri import open_store

FRAMES = [("main", "a.py", 1), ("step", "a.py", 5)]


def read(path: Path) -> ToolProfiles:
    return read_tool_profiles(*tool_profiles(open_store(path)))


def test_files_are_known_by_their_start(tmp_path: Path) -> None:
    write_speedscope(tmp_path / "rank0", FRAMES, name="spy.json")
    write_scalene(tmp_path, [])
    (tmp_path / "cut.speedscope").write_text("{")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "link.json").symlink_to(tmp_path / "nowhere")
    _, profiles = tool_profiles(open_store(tmp_path))
    assert profiles == [
        (SPEEDSCOPE, "cut.speedscope"),
        (SPEEDSCOPE, "rank0/spy.json"),
        (SCALENE, "scalene-profile.json"),
    ]


def test_threads_and_files_are_added_up_unit_by_unit(tmp_path: Path) -> None:
    write_speedscope(
        tmp_path,
        FRAMES,
        sampled([[0, 1]], [1.0], name="first"),
        sampled([[1]], [2.0]),
        name="a.json",
    )
    other = sampled([[0]], [64.0], unit="bytes")
    path = write_speedscope(tmp_path, FRAMES, sampled([[0]], [4.0]), other, name="b.json")
    sums = read(tmp_path)
    main, step = CodePlace("a.py", 0, "main"), CodePlace("a.py", 0, "step")
    assert sums.amounts == [
        ("s", 7.0, [(main, 4.0, 5.0), (step, 3.0, 3.0)]),
        ("bytes", 64.0, [(main, 64.0, 64.0)]),
    ]
    assert len(sums.threads) == 4
    assert [amounts.total for amounts in read(path).amounts] == [4.0, 64.0]


def test_uses_of_scalene_are_added_up_and_peaks_are_not(tmp_path: Path) -> None:
    for name, peak in (("a.json", 3.0), ("b.json", 2.0)):
        entry = scalene_entry("f", 2, n_cpu_percent_c=10, n_peak_mb=peak, n_malloc_mb=5)
        write_scalene(tmp_path, [entry], name=name)
    sums = read(tmp_path)
    assert (sums.elapsed_s, sums.peak_mb) == (20, 44.25)
    [use] = sums.uses
    assert (use.native_s, use.peak_mb, use.allocated_mb) == (2, 3, 10)


def test_a_bad_file_is_a_problem_unless_there_is_no_other(tmp_path: Path) -> None:
    (tmp_path / "cut.speedscope.json").write_text("{")
    with pytest.raises(CorruptFileError, match="expected a profile of speedscope"):
        read(tmp_path)
    write_speedscope(tmp_path, FRAMES)
    sums = read(tmp_path)
    assert [*sums.problems] == ["cut.speedscope.json"]
    assert [profile.key for profile in sums.read] == ["profile.json"]
