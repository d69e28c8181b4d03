"""The configuration file: read again when it changes, at most once a second."""

import os
from pathlib import Path

import pytest
from clocks import PatientClock

from rule_core.exceptions import SMDebugValueError
from rule_core.profiler.recording.config import RecordingConfig
from rule_core.profiler.recording.config_file import PATH_VARIABLE, ConfigFile, config_path

DATA = '{"ProfilingParameters": {"LocalPath": "/data"}}'


def test_a_change_is_seen_after_a_second(tmp_path: Path) -> None:
    path, clock = tmp_path / "config.json", PatientClock()
    path.write_text(DATA)
    file = ConfigFile(path, clock)
    assert file.config.folder == "/data"
    path.write_text(DATA.replace("/data", "/other"))
    assert not file.has_changed()
    clock.sleep(1.0)
    assert (file.has_changed(), file.config.folder) == (True, "/other")
    clock.sleep(1.0)
    assert not file.has_changed()


def test_a_file_that_vanishes_disables_and_one_that_returns_enables(tmp_path: Path) -> None:
    path, clock = tmp_path / "config.json", PatientClock()
    path.write_text(DATA)
    file = ConfigFile(path, clock)
    for exists in (False, True):
        path.unlink() if not exists else path.write_text(DATA)
        clock.sleep(1.0)
        assert (file.has_changed(), file.config.is_disabled) == (True, not exists)


def test_a_broken_change_is_told_once_and_keeps_the_configuration(tmp_path: Path) -> None:
    path, clock = tmp_path / "config.json", PatientClock()
    path.write_text(DATA)
    file = ConfigFile(path, clock)
    path.write_text("{")
    clock.sleep(1.0)
    with pytest.raises(SMDebugValueError, match="is no JSON object"):
        file.has_changed()
    clock.sleep(1.0)
    assert (file.has_changed(), file.config.folder) == (False, "/data")


def test_a_fixed_configuration_never_changes() -> None:
    clock = PatientClock()
    file = ConfigFile(None, clock, RecordingConfig(folder="/data"))
    clock.sleep(9.0)
    assert (file.has_changed(), file.config.folder) == (False, "/data")


def test_a_relative_folder_stays_where_the_script_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, clock = tmp_path / "config.json", PatientClock()
    monkeypatch.chdir(tmp_path)
    path.write_text(DATA.replace("/data", "profile"))
    file = ConfigFile(path, clock)
    assert file.config.folder == str(tmp_path / "profile")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    path.write_text(DATA.replace("/data", "later"))
    clock.sleep(1.0)
    assert (file.has_changed(), file.config.folder) == (True, str(tmp_path / "later"))


def test_a_place_in_s3_stays_as_it_is() -> None:
    file = ConfigFile(None, PatientClock(), RecordingConfig(folder="s3://bucket/profile"))
    assert file.config.folder == "s3://bucket/profile"


def test_the_environment_names_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, "/mine.json")
    assert os.fspath(config_path()) == "/mine.json"
    monkeypatch.setenv(PATH_VARIABLE, "")
    assert os.fspath(config_path()) == "/opt/ml/input/config/profilerconfig.json"
