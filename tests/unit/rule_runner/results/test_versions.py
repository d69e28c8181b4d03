"""versions: what `importlib.metadata` says, without it."""

import platform
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from rule_runner.results import versions as module
from rule_runner.results.versions import version, versions


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    version.cache_clear()
    yield
    version.cache_clear()


def test_versions_are_those_of_the_installed_packages() -> None:
    assert versions() == {
        "rule-runner": metadata.version("rule-runner"),
        "numpy": metadata.version("numpy"),
        "python": platform.python_version(),
    }


@pytest.mark.parametrize("name", ["click", "google-crc32c", "ml_dtypes", "msgspec", "structlog"])
def test_every_distribution_has_the_version_of_its_metadata(name: str) -> None:
    assert version(name) == metadata.version(name)


def test_the_first_folder_of_the_search_path_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for folder, number in (("first", "2.0+cpu"), ("second", "1.0")):
        (tmp_path / folder / f"two_words-{number}.dist-info").mkdir(parents=True)
        (tmp_path / folder / "two_words-extra-9.0.data").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path / name) for name in ("none", "first", "second")])
    assert version("two-words") == "2.0+cpu"


def test_other_installations_are_asked_of_importlib(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "eggs-1.5.egg-info").mkdir()
    (tmp_path / "eggs-1.5.egg-info" / "PKG-INFO").write_text("Name: eggs\nVersion: 1.5\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert module.version("eggs") == "1.5"


def test_a_checkout_that_is_not_installed_has_no_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert versions()["rule-runner"] == "unknown"
