"""Pushes by a real engine to a real registry on this machine, which stands in ECR's place too.

An engine reaches ECR's hosts over TLS only, so here the host that ECR names is exchanged for the
registry's where the engine is told; the login, its check and the repository are those of moto.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import local_registry
import pytest
from image_places import Places

from rule_runner.containers import docker_engine as container
from rule_runner.containers.push import Push, push_all
from rule_runner.images import ImageError, image_uri

pytestmark = pytest.mark.docker

ECR = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    if not os.environ.get("RULE_RUNNER_IMAGE"):
        pytest.skip("RULE_RUNNER_IMAGE names no image, so there is no engine.")
    if shutil.which("docker-registry") is None:
        pytest.skip("There is no registry: on Debian, 'apt-get install docker-registry'.")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "docker"))
    return Places(tmp_path, monkeypatch)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    with local_registry.serving(tmp_path / "registry") as host:
        yield host


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    with local_registry.serving(tmp_path / "guarded", login=True) as host:
        yield host


@pytest.fixture
def image() -> Iterator[str]:
    """Return the name of a small image, new to every registry; it and its other names go again."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(uuid.uuid4().hex))
    name = f"rule-runner-push:{uuid.uuid4().hex}"
    docker("import", "-", name, stdin=content.getvalue())
    identity = docker("image", "inspect", "--format", "{{.Id}}", name)
    yield name
    docker("image", "rm", "--force", identity)


def docker(*arguments: str, stdin: bytes = b"") -> str:
    """Return what a docker command that succeeds printed."""
    done = subprocess.run(["docker", *arguments], check=True, capture_output=True, input=stdin)
    return done.stdout.decode().strip()


class InPlace:
    """A client of the engine that exchanges ECR's host for the registry's, and nothing else."""

    def __init__(self, client: Any, host: str) -> None:
        self._client = client
        self._host = host
        self.api = self
        self.images = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _here(self, name: str) -> str:
        assert name.startswith(f"{ECR}/")
        return name.replace(ECR, self._host)

    def get(self, image: str) -> "InPlace":
        self._image = self._client.images.get(image)
        return self

    def tag(self, name: str, **options: str) -> bool:
        return bool(self._image.tag(self._here(name), **options))

    def push(self, name: str, **options: Any) -> Any:
        return self._client.api.push(self._here(name), **options)


def test_the_command_pushes_to_a_registry_and_prints_the_digest(registry: str, image: str) -> None:
    command = [sys.executable, "-m", "rule_runner", "images", "push"]
    arguments = [f"--image={image}", f"--to={registry}/team/rules", "--tag=1.0"]
    found = [
        subprocess.run([*command, *arguments], check=False, capture_output=True, text=True)
        for _ in range(2)  # the layers are there the second time
    ]
    digest = local_registry.digest(registry, "team/rules", "1.0")
    uri = f"{registry}/team/rules@{digest}"
    assert [(one.returncode, one.stdout) for one in found] == [(0, f"{uri}\n")] * 2, found
    before = docker("image", "inspect", "--format", "{{.Id}}", image)
    docker("image", "rm", "--force", before)
    docker("pull", "--quiet", uri)
    assert docker("image", "inspect", "--format", "{{.Id}}", uri) == before


@pytest.mark.usefixtures("aws_endpoint")
def test_ecrs_login_opens_the_registry_and_the_digest_is_registered(
    guarded: str, image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = container._connect
    monkeypatch.setattr(container, "_connect", lambda: InPlace(connect(), guarded))
    (uri,) = push_all(Push(image, tag="1.0", create=True), ["eu-west-1"], None)
    docker(
        "login",
        f"--username={local_registry.USER}",
        f"--password={local_registry.PASSWORD}",
        guarded,
    )
    assert uri.startswith(f"{ECR}/rule-runner@sha256:")
    assert image_uri("eu-west-1") == uri
    docker("pull", "--quiet", uri.replace(ECR, guarded))


def test_a_registry_without_the_login_takes_nothing(guarded: str, image: str) -> None:
    with pytest.raises(
        ImageError, match=rf"^Cannot push to '{guarded}/a': .* Log in with 'docker login {guarded}'"
    ):
        list(push_all(Push(image), (), f"{guarded}/a"))


def test_the_engines_own_login_opens_another_registry(guarded: str, image: str) -> None:
    docker(
        "login",
        f"--username={local_registry.USER}",
        f"--password={local_registry.PASSWORD}",
        guarded,
    )
    (uri,) = push_all(Push(image), (), f"{guarded}/a")
    assert uri.startswith(f"{guarded}/a@sha256:")


def test_a_registry_that_does_not_exist_is_reported(image: str) -> None:
    with pytest.raises(ImageError, match=r"^Cannot push to '127\.0\.0\.1:1/a': .*refused\.$"):
        list(push_all(Push(image), (), "127.0.0.1:1/a"))
