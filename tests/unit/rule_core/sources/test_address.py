"""Paths with and without a format in front."""

from pathlib import Path

import pytest

from rule_core.sources.address import address_of, parse_address
from smdebug.exceptions import SMDebugValueError


@pytest.mark.parametrize(
    ("text", "kind", "path"),
    [
        ("runs/mine", "", "runs/mine"),
        ("csv:runs/log.txt", "csv", "runs/log.txt"),
        (" CSV:runs/log.txt", "csv", "runs/log.txt"),
        ("text-log:/abs/train.log", "text-log", "/abs/train.log"),
        ("csv:s3://bucket/log.csv", "csv", "s3://bucket/log.csv"),
        ("mlflow:http://host:5000/#/runs/1", "mlflow", "http://host:5000/#/runs/1"),
        ("s3://bucket/runs", "", "s3://bucket/runs"),
        ("S3://bucket/csv:x", "", "S3://bucket/csv:x"),
        ("file:///runs/mine", "", "file:///runs/mine"),
        ("C:\\runs", "", "C:\\runs"),
        ("C:/runs", "", "C:/runs"),
        ("./csv:x", "", "./csv:x"),
        ("runs/csv:x", "", "runs/csv:x"),
        ("run-2026-01-01T10:30", "", "run-2026-01-01T10:30"),
        ("csv:C:/runs", "csv", "C:/runs"),
    ],
)
def test_parts_of_an_address(text: str, kind: str, path: str) -> None:
    assert parse_address(text) == (kind, path)


def test_unknown_format_names_the_nearest() -> None:
    with pytest.raises(SMDebugValueError) as error:
        parse_address("cvs:runs/log")
    assert str(error.value) == "No format is called 'cvs', got 'cvs:runs/log'. Did you mean 'csv'?"


def test_unknown_format_without_a_near_one_names_all() -> None:
    with pytest.raises(SMDebugValueError, match=r"The formats are csv, .*\. Put \./ in front of"):
        parse_address("hierarchical:runs/log")
    assert address_of("hierarchical:runs/log") == ("", "hierarchical:runs/log")


def test_path_that_exists_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine:first").mkdir()
    assert parse_address("mine:first") == ("", "mine:first")


def test_format_without_a_path() -> None:
    with pytest.raises(SMDebugValueError, match=r"^A path must follow 'csv:', got 'csv: '\.$"):
        parse_address("csv: ")
