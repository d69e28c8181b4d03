"""Requests for a container: paths, mounts, and what is to be reached."""

from pathlib import Path
from typing import Any

import pytest

from rule_runner.config.request import EvaluationRequest, RuleRequest, read_request
from rule_runner.containers.options import (
    ContainerRequest,
    Mount,
    located,
    split,
    translate,
)
from rule_runner.errors import UsageError

HOME = Path("/home/me")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def translated(**fields: Any) -> ContainerRequest:
    return translate(EvaluationRequest(**fields), HOME)


def source(path: str, rule_id: str | None = None) -> dict[str, Any]:
    return {"rules": (RuleRequest(rule_id, None, path),)}


def test_relative_paths_become_absolute_and_are_mounted_where_they_are(work: Path) -> None:
    assert translated(trial="runs/a", other_trials=("/b",), output="out") == ContainerRequest(
        request=EvaluationRequest(
            trial=f"{work}/runs/a", other_trials=("/b",), output=f"{work}/out"
        ),
        mounts=(Mount(Path("/b")), Mount(work / "out", True), Mount(work / "runs/a")),
        network=False,
        cloud=False,
    )


@pytest.mark.parametrize(
    ("fields", "expected", "folder"),
    [
        pytest.param({"trial": "file:///a%20b"}, {"trial": "/a b"}, "/a b", id="file-address"),
        pytest.param({"trial": "~/runs"}, {"trial": "/home/me/runs"}, "/home/me/runs", id="home"),
        pytest.param({"profiler_trial": "/p"}, {"profiler_trial": "/p"}, "/p", id="profiler"),
        pytest.param(source("/r/rule.py"), source("/r/rule.py"), "/r", id="source"),
        pytest.param(source("/r/x=y.py", "a"), source("/r/x=y.py", "a"), "/r", id="source-id"),
        pytest.param(
            {"parameters": ("one.other_trials=/o",)},
            {"parameters": ("one.other_trials=/o",)},
            "/o",
            id="parameter",
        ),
        pytest.param(
            {"parameters": ("other_trial_0=/o",)},
            {"parameters": ("other_trial_0=/o",)},
            "/o",
            id="n",
        ),
        pytest.param(
            {"parameters": ("other_trials=/o; None",)},
            {"parameters": ("other_trials=/o,None",)},
            "/o",
            id="several",
        ),
    ],
)
def test_every_kind_of_path_is_mounted_to_be_read(
    fields: dict[str, Any],
    expected: dict[str, Any],
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(HOME))
    container = translated(**fields)
    assert container.request == EvaluationRequest(**expected)
    assert container.mounts == (Mount(Path(folder)),)


def test_links_stay_unless_dots_follow_one(work: Path) -> None:
    (work / "real" / "deep").mkdir(parents=True)
    (work / "link").symlink_to("real/deep")
    assert located("link") == f"{work}/link"
    assert located("link/../x") == f"{work}/real/x"


def test_a_rule_file_is_taken_for_what_its_link_leads_to(work: Path) -> None:
    (work / "rules").mkdir()
    (work / "rules" / "real.py").touch()
    (work / "link.py").symlink_to("rules/real.py")
    container = translated(**source("link.py"))
    assert container.request.rules == (RuleRequest(source=f"{work}/rules/real.py"),)
    assert container.mounts == (Mount(work / "rules"),)


def test_a_folder_that_is_read_and_written_can_be_written(work: Path) -> None:
    container = translated(**source("rule.py"), output=".", trial=".")
    assert container.mounts == (Mount(work, True),)


def test_the_file_of_a_sink_can_be_written(work: Path) -> None:
    container = translated(sinks=("file:events.jsonl",))
    assert container.request.sinks == (f"file:{work}/events.jsonl",)
    assert container.mounts == (Mount(work / "events.jsonl", True),)


@pytest.mark.parametrize(
    "fields",
    [
        {"wait": False, "timeout": 3.0},
        {"parameters": ("threshold=a/b",)},
        {"trial": "gs://bucket/run"},
        {"trial": " "},
    ],
)
def test_other_fields_are_passed_on_as_they_are(fields: dict[str, Any]) -> None:
    request = EvaluationRequest(**fields)
    container = translated(**fields)
    assert container == ContainerRequest(request, (), False, False)
    option, text = container.arguments
    assert (option, read_request(text)) == ("--request", request)


@pytest.mark.parametrize(
    ("fields", "network", "cloud"),
    [
        ({"trial": "s3://b/run"}, True, True),
        ({"other_trials": ("S3://b/run",)}, True, True),
        ({"output": "s3://b/out"}, True, True),
        (source("s3://b/rule.py", "a"), True, True),
        (source("s3://b/rule.py"), True, True),
        ({"parameters": ("other_trials=s3://b/run",)}, True, True),
        ({"parameters": ('a.action_json={"name": "sms"}',)}, True, True),
        ({"parameters": ("action_json=",)}, False, False),
        ({"sinks": ("stdout",)}, False, False),
        ({"sinks": ("emf:Rules",)}, False, False),
        ({"sinks": ("eventbridge,region=eu-west-1",)}, True, True),
        ({"sinks": ("webhook:https://example.org/x",)}, True, False),
        ({"sinks": ("apprise:$ALERTS",)}, True, False),
        ({"actions": ("a=webhook:https://example.org/x",)}, True, False),
        ({"actions": ("stop-training:",)}, True, True),
        ({"actions": ("email:a=b@example.org",)}, True, True),
    ],
)
def test_network_and_credentials_are_for_what_needs_them(
    fields: dict[str, Any], network: bool, cloud: bool
) -> None:
    container = translated(**fields)
    assert (container.network, container.cloud) == (network, cloud)


@pytest.mark.parametrize("text", ["command:ls", "a=command:env A=b", "Command: ls"])
def test_actions_that_run_commands_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="would run inside the container"):
        translated(actions=(text,))


@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/lib/x", "/etc", "/proc/1", "/opt"])
def test_folders_that_would_hide_the_image_are_refused(folder: str) -> None:
    with pytest.raises(UsageError, match=f"^Folder '{folder}' cannot be mounted into a container"):
        translated(trial=folder)


@pytest.mark.parametrize("path", ["/home/me/rule.py", "/home/rule.py"])
def test_a_whole_home_folder_is_not_shown_to_rules(path: str) -> None:
    with pytest.raises(UsageError, match="would expose a whole home folder to the rules"):
        translated(**source(path))


def test_with_isolate_each_rule_gets_what_is_its_own() -> None:
    rules = (RuleRequest(None, "AllZero"), RuleRequest("mine", "Mine", "/r/mine.py"))
    request = EvaluationRequest(
        trial="/t",
        rules=rules,
        parameters=("AllZero.threshold=1", "mine.a.b=2=3"),
        modes=("mine=observe",),
        actions=("mine=sms:+1", "email:x@example.org"),
    )
    assert split(request, ["AllZero", "mine"], "/out/") == {
        "AllZero": EvaluationRequest(
            trial="/t",
            rules=(RuleRequest("AllZero", "AllZero"),),
            parameters=("AllZero.threshold=1",),
            modes=("AllZero=enforce",),
            actions=("email:x@example.org",),
            output="/out/AllZero",
        ),
        "mine": EvaluationRequest(
            trial="/t",
            rules=(rules[1],),
            parameters=("mine.a.b=2=3",),
            modes=("mine=observe",),
            actions=("mine=sms:+1", "email:x@example.org"),
            output="/out/mine",
        ),
    }


def test_a_single_rule_keeps_the_output_folder() -> None:
    request = EvaluationRequest(rules=(RuleRequest(None, "AllZero"),))
    assert split(request, ["AllZero"], "/out")["AllZero"].output == "/out"


def test_two_rules_of_one_name_need_ids() -> None:
    request = EvaluationRequest(rules=(RuleRequest(None, "AllZero"),) * 2)
    with pytest.raises(UsageError, match="Two rule jobs are called 'AllZero'"):
        split(request, ["AllZero"] * 2, "/out")
