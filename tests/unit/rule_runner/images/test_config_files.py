"""images.toml: where it is, what may be in it, and how it is replaced."""

import json
import os
from pathlib import Path

import pytest
from image_places import DIGEST, IRELAND, Places, toml
from structlog.testing import capture_logs

from rule_runner.errors import OutputError
from rule_runner.images import ImageError, UnknownRegionError, image_uri
from rule_runner.images.config_files import parse, project_file, user_file
from rule_runner.images.registrations import register, registered, trust_project, unregister


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


# -- where -------------------------------------------------------------------------------------


def test_the_projects_file_is_the_nearest_one_up_to_its_root(places: Places) -> None:
    (places.project.parent / "images.toml").touch()
    assert project_file(places.folder) is None
    places.project_file.touch()
    assert project_file(places.folder) == places.project_file
    nearest = places.folder / "images.toml"
    nearest.touch()
    assert project_file(places.folder) == nearest


def test_outside_of_any_project_only_the_folder_itself_is_searched(places: Places) -> None:
    (places.project / ".git").rmdir()
    places.project_file.touch()
    assert project_file(places.folder) is None
    assert project_file(places.project) == places.project_file


def test_the_users_own_file_is_no_projects_file(places: Places) -> None:
    places.user_file.parent.mkdir(parents=True)
    places.user_file.touch()
    assert project_file(places.user_file.parent) is None


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_without_a_proper_variable_the_users_file_is_under_their_home(
    value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", value)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert user_file() == tmp_path / ".config" / "rule-runner" / "images.toml"


# -- what --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("images = 3", r"must have one table, \[images\], got \[\]\."),
        ("[other]\nx = 1", r"must have one table, \[images\], got \['other'\]\."),
        ("[images", r"is not valid TOML: "),
        ("[images]\neu-west-1 = 3", r"Image of region 'eu-west-1' must be a string, got 3\."),
        ('[images]\neu-west-1 = "x"', r"must name a registry and a repository .* got 'x'\."),
        (
            '[images]\nmars-1 = "registry.example/a:1"',
            r"Region must be one of AWS's, got 'mars-1'\.",
        ),
        (toml(eu_west_2=f"{IRELAND}:1"), r"Image for region 'eu-west-2' must be in its registry"),
    ],
)
def test_a_users_file_that_is_not_as_it_should_be_is_named(
    content: str, message: str, places: Places
) -> None:
    places.user_file.parent.mkdir(parents=True)
    places.user_file.write_text(content)
    with pytest.raises(ImageError, match=f"^Image file '{places.user_file}'.* {message}"):
        registered()


def test_a_file_too_large_to_be_one_is_not_read_whole(places: Places) -> None:
    places.user_file.parent.mkdir(parents=True)
    with places.user_file.open("wb") as stream:
        stream.truncate(1 << 30)
    with pytest.raises(ImageError, match=r"must have at most 1048576 bytes, got more\.$"):
        registered()


def test_a_file_that_cannot_be_read_is_no_missing_one(places: Places) -> None:
    places.user_file.mkdir(parents=True)
    with pytest.raises(ImageError, match=r"^Cannot read '.*/images\.toml': Is a directory\.$"):
        registered()


# -- writing -----------------------------------------------------------------------------------


def test_what_is_written_reads_back_and_keeps_the_rest(places: Places) -> None:
    register("eu-west-1", f"{IRELAND}:1")
    paris = IRELAND.replace("eu-west-1", "eu-west-3") + f"@{DIGEST}"
    assert register("eu-west-3", paris) == places.user_file
    register("eu-west-1", f"{IRELAND}:2")
    expected = {"eu-west-1": f"{IRELAND}:2", "eu-west-3": paris}
    assert parse(places.user_file, places.user_file.read_bytes()) == expected
    assert [one.name for one in places.user_file.parent.iterdir()] == ["images.toml"]


def test_a_registration_for_the_project_makes_the_file_here_or_uses_the_nearest(
    places: Places,
) -> None:
    assert register("eu-west-1", f"{IRELAND}:1", project=True) == places.folder / "images.toml"
    (places.folder / "images.toml").rename(places.project_file)
    trust_project()
    assert register("eu-west-1", f"{IRELAND}:2", project=True) == places.project_file
    assert image_uri("eu-west-1") == f"{IRELAND}:2"


def test_a_projects_file_that_is_not_trusted_is_not_written_to(places: Places) -> None:
    content = toml(eu_west_1=f"{IRELAND}:1")
    places.project_file.write_text(content)
    message = r"not trusted, or has changed since\. Read it, then run"
    with pytest.raises(ImageError, match=message):
        register("eu-west-1", f"{IRELAND}:2", project=True)
    with pytest.raises(ImageError, match=message):
        unregister("eu-west-1", project=True)
    assert places.project_file.read_text() == content


def test_what_is_not_registered_cannot_be_removed(places: Places) -> None:
    with pytest.raises(
        ImageError, match=rf"^Image file '{places.user_file}' has no image for region 'eu-west-1'\."
    ):
        unregister("eu-west-1")
    assert not places.user_file.exists()


def test_a_wrong_registration_writes_nothing(places: Places) -> None:
    with pytest.raises(UnknownRegionError, match=r"got 'mars-1'\. Known: "):
        register("mars-1", "registry.example/a:1")
    with pytest.raises(ImageError, match=r"must be in its registry"):
        register("eu-west-2", f"{IRELAND}:1")
    assert not places.user_file.exists()


def test_an_image_in_another_registry_is_registered_with_a_warning() -> None:
    with capture_logs() as logs:
        register("eu-west-1", "registry.example/a/b:1")
    assert [one["reason"] for one in logs] == [
        (
            "SageMaker accepts rule images from ECR only, but 'registry.example/a/b:1' is in "
            "another registry."
        )
    ]
    assert image_uri("eu-west-1") == "registry.example/a/b:1"


def test_a_link_stays_a_link(places: Places, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles" / "images.toml"
    places.user_file.parent.mkdir(parents=True)
    real.parent.mkdir()
    places.user_file.symlink_to(real)
    register("eu-west-1", f"{IRELAND}:1")
    assert (places.user_file.is_symlink(), real.exists()) == (True, True)
    assert image_uri("eu-west-1") == f"{IRELAND}:1"


def test_who_reads_meanwhile_reads_the_old_content_to_its_end(places: Places) -> None:
    register("eu-west-1", f"{IRELAND}:1")
    before = places.user_file.read_text()
    with places.user_file.open() as reader:
        register("eu-west-1", f"{IRELAND}:2")
        assert reader.read() == before


def test_a_write_that_fails_leaves_the_old_content(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    register("eu-west-1", f"{IRELAND}:1")
    before = places.user_file.read_bytes()

    def full(_fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        OutputError, match=rf"^Cannot write '{places.user_file}': No space left on device\. Free"
    ):
        register("eu-west-1", f"{IRELAND}:2")
    assert places.user_file.read_bytes() == before
    assert [one.name for one in places.user_file.parent.iterdir()] == ["images.toml"]


# -- trust -------------------------------------------------------------------------------------


def test_trust_is_recorded_by_path_and_content(places: Places) -> None:
    places.project_file.write_text(toml(eu_west_1=f"{IRELAND}:1"))
    trust_project()
    (path,) = json.loads(places.trust_file.read_text())
    assert path == str(places.project_file)
    assert not places.trust_file.is_relative_to(places.project)


@pytest.mark.parametrize("file", [None, Path("none.toml")])
def test_there_must_be_something_to_trust(file: Path | None, places: Places) -> None:
    got = file or places.folder
    with pytest.raises(
        ImageError, match=rf"^No image file to trust, got '{got}'\. Give the path of one, or"
    ):
        trust_project(file)


def test_a_record_of_trust_that_is_not_ours_trusts_nothing(places: Places) -> None:
    register("eu-west-1", f"{IRELAND}:1", project=True)
    places.trust_file.write_text("[1]")
    with pytest.raises(ImageError, match=r"trusted_images\.json' is damaged: .* Remove it, and"):
        registered()
