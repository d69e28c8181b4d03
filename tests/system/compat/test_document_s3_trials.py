"""Trials in S3 as they are documented: the address, the class, and steps that are new."""

from pathlib import Path

import documented_trial as documented
import pytest
import s3_objects

from smdebug.trials import LocalTrial, S3Trial, create_trial

PREFIX = "outputs/resnet"


@pytest.fixture
def files(
    aws_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Put a running trial of two steps into S3; return its files, and those of its third step."""
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")
    documented.write(tmp_path, steps=3, ended=False)
    everything = {
        path.relative_to(tmp_path).as_posix(): path.read_bytes()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    third = {key: data for key, data in everything.items() if "/000000000002_" in key}
    first = {key: data for key, data in everything.items() if key not in third}
    s3_objects.make_bucket(aws_endpoint)
    s3_objects.put(aws_endpoint, f"{PREFIX}/", first)
    return first, third


@pytest.mark.usefixtures("files")
def test_an_address_is_a_trial_in_s3() -> None:
    trial = create_trial(path=f"s3://bucket/{PREFIX}", name="resnet_training_run")
    assert isinstance(trial, S3Trial)
    assert not isinstance(trial, LocalTrial)
    assert (trial.name, trial.path) == ("resnet_training_run", f"s3://bucket/{PREFIX}")
    assert create_trial(f"s3://bucket/{PREFIX}").name == "resnet"


@pytest.mark.usefixtures("files")
def test_a_trial_in_s3_is_made_as_of_old() -> None:
    trial = S3Trial("mine", "bucket", PREFIX, (1, None), False, True, False)
    assert (trial.name, trial.path, trial.steps()) == ("mine", f"s3://bucket/{PREFIX}", [1])
    assert trial == create_trial(trial.path, "mine")


def test_a_step_that_comes_is_shown_at_once(
    aws_endpoint: str, files: tuple[dict[str, bytes], dict[str, bytes]]
) -> None:
    trial = create_trial(f"s3://bucket/{PREFIX}")
    assert trial.steps() == [0, 1]
    s3_objects.put(aws_endpoint, f"{PREFIX}/", files[1])
    assert trial.steps() == [0, 1, 2]
    assert trial.tensor("loss").value(2)[0] == pytest.approx(1 / 3)
