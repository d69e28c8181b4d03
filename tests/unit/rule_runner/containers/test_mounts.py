"""What containers mount: folders that are there, and folders that their user may write to."""

import os
from pathlib import Path

import pytest

from rule_runner.config.defaults import STOP_FILE
from rule_runner.config.request import EvaluationRequest
from rule_runner.containers import mounts as container_mounts
from rule_runner.containers.mounts import aws_folder, make_writable, present
from rule_runner.containers.options import ContainerRequest, Mount
from rule_runner.errors import ClientError, OutputError


def translated(*mounts: Mount, waits: bool = False) -> ContainerRequest:
    request = EvaluationRequest(wait_for_trial=5.0 if waits else 0.0)
    return ContainerRequest(request, mounts, False, False)


def test_what_is_there_and_what_is_made_is_mounted(tmp_path: Path) -> None:
    output = tmp_path / "deep" / "out"
    mounts = (Mount(tmp_path), Mount(output, True), Mount(tmp_path / "events", True))
    assert tuple(present(translated(*mounts), str(output))) == mounts


def test_of_a_trial_that_is_waited_for_the_folder_around_it_is_mounted(tmp_path: Path) -> None:
    found = present(translated(Mount(tmp_path / "later"), waits=True), "/out")
    assert [*found] == [Mount(tmp_path)]


@pytest.mark.parametrize("waits", [True, False])
def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path, waits: bool) -> None:
    missing = Mount(tmp_path / "no" / "where")
    with pytest.raises(ClientError, match=r"^Folder '.*/no/where' does not exist\. Check the path"):
        list(present(translated(missing, waits=waits), "/out"))


def test_the_folder_of_a_stop_file_is_mounted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(STOP_FILE, str(tmp_path / "stop"))
    assert [*present(translated(), "/out")] == [Mount(tmp_path)]


def test_an_ordinary_caller_writes_as_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 7)
    monkeypatch.setattr(os, "getgid", lambda: 8)
    written = [tmp_path / "deep" / "out", tmp_path / "events"]
    assert make_writable(written, written[0]) == (7, 8)
    assert (written[0].is_dir(), written[1].is_file()) == (True, True)


def test_what_is_roots_is_given_to_an_ordinary_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[Path, tuple[int, int]] = {}
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(os, "chown", lambda path, *user: given.update({path: user}))
    monkeypatch.setattr(container_mounts, "_owner", lambda _: (0, 0))
    output = tmp_path / "out"
    assert make_writable([output], output) == (1000, 1000)
    assert given == {output: (1000, 1000)}
    assert make_writable([], Path("s3://b/out")) == (1000, 1000)


def test_root_writes_to_the_folder_of_another_as_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(container_mounts, "_owner", lambda _: (7, 8))
    assert make_writable([tmp_path], tmp_path) == (7, 8)


def test_an_output_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    output = tmp_path / "file" / "out"
    with pytest.raises(OutputError, match="Not a directory"):
        make_writable([output], output)


def test_the_folder_of_aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ClientError, match=r"^--aws-config needs the folder '.*/\.aws'\. Run"):
        aws_folder()
    (tmp_path / ".aws").mkdir()
    assert aws_folder() == str(tmp_path / ".aws")
