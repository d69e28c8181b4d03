import os
from pathlib import Path

import pytest
import s3_objects

from rule_runner.errors import TrialError
from rule_runner.loading.trial_age import changed_since

OLD, NEW = 1_000_000_000, 1_600_000_000
BETWEEN = 1_500_000_000.0


def test_newest_file_of_a_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    for name, time in (("a", OLD), ("index/b", OLD)):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    assert not changed_since(str(tmp_path), BETWEEN)
    os.utime(tmp_path / "index" / "b", (NEW, NEW))
    assert changed_since(str(tmp_path), BETWEEN)
    assert changed_since(f"csv:{tmp_path}", BETWEEN)


def test_trial_of_one_file_has_its_age(tmp_path: Path) -> None:
    (tmp_path / "log.csv").touch()
    os.utime(tmp_path / "log.csv", (OLD, OLD))
    assert not changed_since(str(tmp_path / "log.csv"), BETWEEN)


def test_age_of_a_run_on_a_server_is_unknown() -> None:
    assert changed_since("mlflow:http://127.0.0.1:1/#/experiments/0", BETWEEN)


def test_objects_in_s3_have_times(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, "runs/a/", {"x": b"1"})
    assert changed_since("s3://bucket/runs/a", BETWEEN)
    assert not changed_since("s3://bucket/runs/a", 4e9)
    assert not changed_since("s3://bucket/runs/none", BETWEEN)


def test_bucket_that_does_not_exist_is_named(aws_endpoint: str) -> None:
    s3_objects.make_bucket(aws_endpoint)
    with pytest.raises(TrialError, match=r"'s3://no-such-bucket/runs' cannot be listed"):
        changed_since("s3://no-such-bucket/runs", BETWEEN)
