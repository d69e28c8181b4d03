"""Pushing: requests to the engine, use of its answers, and registration."""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from image_places import Places, toml
from scripted_engine import DIGEST, LAYERS, PUSHED, ScriptedClient
from structlog.testing import capture_logs
from urllib3.exceptions import ReadTimeoutError

from rule_core.storage import aws
from rule_runner.cli import main
from rule_runner.containers import docker_engine as container
from rule_runner.containers.ecr import Login
from rule_runner.containers.errors import EngineError
from rule_runner.containers.push import Push, PushingEngine, push_all
from rule_runner.errors import UsageError
from rule_runner.images import ImageError, UnknownRegionError, image_uri
from rule_runner.images.uri import ImageUri

ASKED = Push("rule-runner:1", create=True)
HOST = "123456789012.dkr.ecr.{}.amazonaws.com"
PASSWORD = "123456789012-auth-token"


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    return Places(tmp_path, monkeypatch)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ScriptedClient]:
    """Return a factory of engines that answer a push by script."""

    def make(*answers: Any) -> ScriptedClient:
        client = ScriptedClient(*answers)
        monkeypatch.setattr(container, "_connect", lambda: client)
        return client

    return make


def pushed(*regions: str, asked: Push = ASKED, to: str | None = None) -> list[str]:
    return list(push_all(asked, regions, to))


# -- to ECR ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("aws_endpoint")
def test_every_region_gets_the_image_with_its_own_login_and_is_registered(
    engine: Callable[..., ScriptedClient],
) -> None:
    client = engine()
    regions = ("eu-west-1", "us-east-2")
    names = [f"{HOST.format(region)}/rule-runner" for region in regions]
    assert pushed("eu-west-1,us-east-2", "eu-west-1") == [f"{name}@{DIGEST}" for name in names]
    assert client.tags == [(name, "1") for name in names]
    login = {"username": "AWS", "password": PASSWORD}
    expected = {"tag": "1", "stream": True, "decode": True, "auth_config": login}
    assert client.pushes == [{"name": name, **expected} for name in names]
    assert [image_uri(region) for region in regions] == [f"{name}@{DIGEST}" for name in names]
    assert client.closed


@pytest.mark.usefixtures("aws_endpoint")
def test_a_push_for_the_project_is_registered_there_and_trusted(
    engine: Callable[..., ScriptedClient], places: Places
) -> None:
    engine()
    asked = Push("rule-runner:1", "team/rules", "7", create=True, project=True)
    uri = f"{HOST.format('eu-west-1')}/team/rules@{DIGEST}"
    assert pushed("eu-west-1", asked=asked) == [uri]
    assert (places.folder / "images.toml").read_text().endswith(toml(eu_west_1=uri))
    assert (image_uri("eu-west-1"), places.user_file.exists()) == (uri, False)


@pytest.mark.usefixtures("aws_endpoint")
def test_a_projects_file_that_is_not_trusted_stops_the_push_before_it_begins(
    engine: Callable[..., ScriptedClient], places: Places
) -> None:
    client = engine()
    places.project_file.write_text(toml(eu_west_1="evil.example/rules:1"))
    with pytest.raises(ImageError, match=r"not trusted, or has changed since"):
        pushed("eu-west-1", asked=Push("rule-runner:1", create=True, project=True))
    assert (client.tags, client.pushes) == ([], [])


@pytest.mark.usefixtures("aws_endpoint")
def test_what_a_projects_file_names_is_no_place_to_push_to(
    engine: Callable[..., ScriptedClient], places: Places
) -> None:
    client = engine()
    places.project_file.write_text(toml(eu_west_1="evil.example/rules:1"))
    pushed("eu-west-1")
    assert [one["name"] for one in client.pushes] == [f"{HOST.format('eu-west-1')}/rule-runner"]


@pytest.mark.usefixtures("aws_endpoint")
@pytest.mark.parametrize(
    ("asked", "regions", "error", "message"),
    [
        (Push("none:1", create=True), ["eu-west-1"], ImageError, r"^The engine has no image 'none"),
        (Push("rule-runner:1"), ["eu-west-1"], ImageError, r"has no repository 'rule-runner'\."),
        (ASKED, ["eu-west-1", "cn-north-1"], ImageError, r"a foreign host"),
        (ASKED, ["eu-west-1", "mars"], UnknownRegionError, r"one of AWS's, got 'mars'\."),
    ],
)
def test_nothing_is_pushed_when_one_of_the_regions_cannot_be(
    asked: Push,
    regions: list[str],
    error: type[Exception],
    message: str,
    engine: Callable[..., ScriptedClient],
    places: Places,
) -> None:
    client = engine()
    with pytest.raises(error, match=message):
        pushed(*regions, asked=asked)
    assert (client.pushes, places.user_file.exists(), client.closed) == ([], False, True)


@pytest.mark.usefixtures("aws_endpoint")
def test_an_image_that_is_missing_makes_no_repository(
    engine: Callable[..., ScriptedClient],
) -> None:
    engine()
    with pytest.raises(ImageError, match=r"Build one with 'rule-runner docker build', or choose"):
        pushed("eu-west-1", asked=Push("none:1", create=True))
    assert aws.client("ecr", region="eu-west-1").describe_repositories()["repositories"] == []


@pytest.mark.usefixtures("aws_endpoint")
def test_regions_that_are_done_stay_done_when_a_later_one_fails(
    engine: Callable[..., ScriptedClient],
) -> None:
    client = engine()
    pushing = push_all(ASKED, ["eu-west-1", "us-east-2"], None)
    first = next(pushing)
    client.answers = ({"error": "denied: User is not authorized to perform: ecr:PutImage"},)
    with pytest.raises(
        ImageError,
        match=r"^Cannot push to '[0-9]+\.dkr\.ecr\.us-east-2\.amazonaws\.com/rule-runner': denied: "
        r".* ecr:PutImage\. The caller needs ecr:BatchCheckLayerAvailability, .* ecr:PutImage\.$",
    ):
        next(pushing)
    assert (image_uri("eu-west-1"), image_uri("us-east-2")[:12]) == (first, "915447279597")


@pytest.mark.usefixtures("aws_endpoint")
def test_the_login_is_in_no_log_and_no_output(
    engine: Callable[..., ScriptedClient], caplog: pytest.LogCaptureFixture
) -> None:
    client = engine({"errorDetail": {"message": "no"}, "error": "no"})
    caplog.set_level("DEBUG")  # the SDK's own log too
    done = CliRunner().invoke(
        main, ["images", "push", "--image=rule-runner:1", "--region=eu-west-1", "--create"]
    )
    assert (done.exit_code, client.pushes[0]["auth_config"]["password"]) == (1, PASSWORD)
    assert "Cannot push to" in done.output
    assert PASSWORD not in f"{done.output}{caplog.text}{os.environ}"


# -- to another registry -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "to", "name", "tag"),
    [
        (Push("rule-runner:1"), "registry.example/a/b", "registry.example/a/b", "1"),
        (Push("rule-runner:1"), "registry.example/a/b:9", "registry.example/a/b", "9"),
        (Push("rule-runner:1", tag="2"), "localhost:5000/b", "localhost:5000/b", "2"),
    ],
)
def test_another_registry_is_pushed_to_with_the_engines_own_login(
    asked: Push,
    to: str,
    name: str,
    tag: str,
    engine: Callable[..., ScriptedClient],
    places: Places,
) -> None:
    client = engine()
    assert pushed(asked=asked, to=to) == [f"{name}@{DIGEST}"]
    assert (client.tags, client.pushes[0]["auth_config"]) == ([(name, tag)], None)
    assert not places.user_file.exists()


@pytest.mark.parametrize(
    ("image", "tag"),
    [
        ("a", "latest"),
        ("localhost:5000/a", "latest"),
        ("localhost:5000/a:3", "3"),
        ("a:3", "3"),
        (f"a@{DIGEST}", "latest"),
    ],
)
def test_the_tag_is_that_of_the_image(image: str, tag: str) -> None:
    assert Push(image).to("registry.example", "x").tag == tag


@pytest.mark.parametrize(("regions", "to"), [((), None), ((",",), None), (("eu-west-1",), "a.b/c")])
def test_one_place_to_push_to_must_be_said(regions: tuple[str, ...], to: str | None) -> None:
    with pytest.raises(UsageError, match=r"^Give either --region, once or more, or"):
        push_all(ASKED, regions, to)


def test_a_place_has_no_digest() -> None:
    with pytest.raises(
        UsageError, match=r"^--to must be HOST/REPOSITORY or HOST/REPOSITORY:TAG, got 'a\.b/c@sha"
    ):
        pushed(to=f"a.b/c@{DIGEST}")


@pytest.mark.parametrize(
    ("said", "end"),
    [
        ("denied: requested access to the resource is denied", " Log in with 'docker login a.b'."),
        ("unauthorized: authentication required", " Log in with 'docker login a.b'."),
        ("received unexpected HTTP status: 500 Internal Server Error.\n", ""),
    ],
)
def test_what_a_registry_refuses_is_reported(
    said: str, end: str, engine: Callable[..., ScriptedClient]
) -> None:
    engine(*LAYERS, {"error": said, "errorDetail": {"message": said}})
    expected = f"Cannot push to 'a.b/c': {said.strip().rstrip('.')}.{end}"
    with pytest.raises(ImageError, match=f"^{re.escape(expected)}$"):
        pushed(asked=Push("rule-runner:1"), to="a.b/c")


# -- the engine --------------------------------------------------------------------------------


def test_a_login_goes_to_no_other_registry(engine: Callable[..., ScriptedClient]) -> None:
    client = engine()
    to = ImageUri("evil.example", "rules", "1")
    with pytest.raises(
        ImageError, match=r"^Login for 'a\.b' must not go to another registry, got 'evil\.example'"
    ):
        PushingEngine().push("rule-runner:1", to, Login("a.b", "u", "p"), lambda *_: None)
    assert (client.tags, client.pushes) == ([], [])


def test_progress_counts_the_bytes_of_all_layers(engine: Callable[..., ScriptedClient]) -> None:
    engine(*PUSHED)
    seen: list[tuple[int, int]] = []
    to = ImageUri("a.b", "rules", "1")
    PushingEngine().push("rule-runner:1", to, None, lambda *size: seen.append(size))
    assert seen == [(10, 100), (17, 120), (127, 140)]


def test_an_engine_that_tells_no_digest_is_not_believed(
    engine: Callable[..., ScriptedClient],
) -> None:
    engine(*LAYERS)
    with pytest.raises(
        ImageError, match=r"^The engine did not report the digest of 'a\.b/c'\. Push it again\."
    ):
        pushed(asked=Push("rule-runner:1"), to="a.b/c")


@pytest.mark.parametrize(
    "error",
    [ConnectionResetError(104, "Reset"), ReadTimeoutError(None, "", "Reset")],  # type: ignore[arg-type] # no pool is needed
    ids=["reset", "timeout"],
)
def test_an_engine_that_goes_away_is_reported(
    error: Exception, engine: Callable[..., ScriptedClient]
) -> None:
    engine(*LAYERS, error)
    with pytest.raises(EngineError, match=r"^The engine cannot push to 'a\.b/c': .*Reset\.$"):
        pushed(asked=Push("rule-runner:1"), to="a.b/c")


def test_an_engine_that_does_not_exist_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    with pytest.raises(EngineError, match=r"^No Docker engine listens at 'tcp://127\.0\.0\.1:9'"):
        pushed(asked=Push("rule-runner:1"), to="a.b/c")


def test_a_terminal_is_shown_a_bar_and_another_place_nothing(
    engine: Callable[..., ScriptedClient],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    engine()
    with capture_logs() as logs:
        pushed(asked=Push("rule-runner:1"), to="a.b/c")
    assert capfd.readouterr() == ("", "")
    assert [(one["event"], one["image"]) for one in logs] == [("image_push_started", "a.b/c:1")]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    pushed(asked=Push("rule-runner:1"), to="a.b/c")
    assert "127/140 bytes" in capfd.readouterr().err
