"""Files of scalene: seconds and memory of functions and lines."""

import json
from pathlib import Path
from typing import Any

import pytest
from tool_profile_writer import scalene_entry, write_scalene

from rule_core.exceptions import CorruptFileError
from rule_core.profiler.python_profiles.measured_code import CodePlace
from rule_core.profiler.python_profiles.scalene import parse_scalene


def test_shares_become_seconds(tmp_path: Path) -> None:
    forward = scalene_entry(
        "forward",
        2,
        n_cpu_percent_python=5,
        n_cpu_percent_c=40,
        n_sys_percent=10,
        n_gpu_percent=20,
        n_peak_mb=1.5,
        n_malloc_mb=70,
    )
    path = write_scalene(tmp_path, [forward, scalene_entry("idle", 9)], elapsed_s=20)
    profile = parse_scalene(path.name, path.read_bytes())
    assert (profile.elapsed_s, profile.peak_mb) == (20, 44.25)
    [use] = profile.uses
    assert use == (CodePlace("train.py", 2, "forward"), 1, 8, 2, 4, 1.5, 70, 0)
    assert use.time_s == 11


def test_lines_if_asked(tmp_path: Path) -> None:
    function, line = (
        scalene_entry(text, number, n_cpu_percent_c=1) for text, number in (("f", 2), ("  x\n", 3))
    )
    path = write_scalene(tmp_path, [function], [line])
    [use] = parse_scalene(path.name, path.read_bytes(), lines=True).uses
    assert str(use.place) == "train.py:3"


@pytest.mark.parametrize(
    "change",
    [{"files": []}, {"elapsed_time_sec": "long"}, {"files": {"a.py": {"functions": [{}]}}}],
)
def test_bad_files_are_one_error(tmp_path: Path, change: dict[str, Any]) -> None:
    path = write_scalene(tmp_path, [])
    document = {**json.loads(path.read_text()), **change}
    with pytest.raises(CorruptFileError, match="expected a profile of scalene, got"):
        parse_scalene("a.json", json.dumps(document).encode())
