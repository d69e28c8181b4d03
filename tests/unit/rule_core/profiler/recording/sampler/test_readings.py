"""Files of the kernel that may be missing or hold something else."""

from pathlib import Path

import pytest

from rule_core.profiler.recording.sampler.readings import number_in, text_of


@pytest.mark.parametrize(
    ("content", "number"), [(b"7\n", 7), (b"max\n", None), (b"-1\n", None), (b"\xff", None)]
)
def test_numbers(tmp_path: Path, content: bytes, number: int | None) -> None:
    (tmp_path / "file").write_bytes(content)
    assert number_in(tmp_path / "file") == number


def test_a_missing_file_is_empty(tmp_path: Path) -> None:
    assert text_of(tmp_path / "missing") == ""
    assert text_of(tmp_path) == ""
