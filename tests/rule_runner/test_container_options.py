"""Options of evaluate for a container: paths, mounts, and what is to be reached."""

from pathlib import Path

import click
import pytest

from rule_runner.cli.evaluation import evaluate
from rule_runner.containers.options import (
    Mount,
    Option,
    Translated,
    located,
    requests_of,
    split,
    translate,
    trial_of,
)
from rule_runner.errors import UsageError
from rule_runner.rule_requests import RuleRequest

HOME = Path("/home/me")


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def translated(*options: Option) -> Translated:
    return translate(options, HOME)


def test_relative_paths_become_absolute_and_are_mounted_where_they_are(work: Path) -> None:
    options = (("--trial", "runs/a"), ("--other-trial", "/b"), ("--output", "out"))
    assert translated(*options) == Translated(
        arguments=(f"--trial={work}/runs/a", "--other-trial=/b", f"--output={work}/out"),
        mounts=(Mount(Path("/b")), Mount(work / "out", True), Mount(work / "runs/a")),
        network=False,
        cloud=False,
    )


@pytest.mark.parametrize(
    ("option", "argument", "folder"),
    [
        pytest.param(("--trial", "file:///a%20b"), "--trial=/a b", "/a b", id="file-address"),
        pytest.param(("--trial", "~/runs"), "--trial=/home/me/runs", "/home/me/runs", id="home"),
        pytest.param(("--source", "/r/rule.py"), "--source=/r/rule.py", "/r", id="source"),
        pytest.param(("--source", "a=/r/x=y.py"), "--source=a=/r/x=y.py", "/r", id="source-id"),
        pytest.param(("--source", "/r/x=y.py"), "--source=/r/x=y.py", "/r", id="equals-in-path"),
        pytest.param(
            ("--param", "one.other_trials=/o"), "--param=one.other_trials=/o", "/o", id="parameter"
        ),
        pytest.param(("--param", "other_trial_0=/o"), "--param=other_trial_0=/o", "/o", id="n"),
        pytest.param(
            ("--param", "other_trials=/o; None"),
            "--param=other_trials=/o,None",
            "/o",
            id="several",
        ),
    ],
)
def test_every_kind_of_path_is_mounted_to_be_read(
    option: Option, argument: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(HOME))
    found = translated(option)
    assert (found.arguments, found.mounts) == ((argument,), (Mount(Path(folder)),))


def test_links_stay_unless_dots_follow_one(work: Path) -> None:
    (work / "real" / "deep").mkdir(parents=True)
    (work / "link").symlink_to("real/deep")
    assert located("link")[0] == f"{work}/link"
    assert located("link/../x")[0] == f"{work}/real/x"


def test_a_rule_file_is_taken_for_what_its_link_leads_to(work: Path) -> None:
    (work / "rules").mkdir()
    (work / "rules" / "real.py").touch()
    (work / "link.py").symlink_to("rules/real.py")
    found = translated(("--source", "link.py"))
    assert found.arguments == (f"--source={work}/rules/real.py",)
    assert found.mounts == (Mount(work / "rules"),)


def test_a_folder_that_is_read_and_written_can_be_written(work: Path) -> None:
    options = (("--source", "rule.py"), ("--output", "."), ("--trial", "."))
    assert translated(*options).mounts == (Mount(work, True),)


def test_the_file_of_a_sink_can_be_written(work: Path) -> None:
    found = translated(("--sink", "file:events.jsonl"))
    assert found.arguments == (f"--sink=file:{work}/events.jsonl",)
    assert found.mounts == (Mount(work / "events.jsonl", True),)


@pytest.mark.parametrize(
    "option",
    [
        ("--no-wait", None),
        ("--timeout", "3"),
        ("--an-option-of-tomorrow", "some/where"),
        ("--param", "threshold=a/b"),
        ("--trial", "gs://bucket/run"),
        ("--trial", " "),
    ],
)
def test_other_options_are_passed_on_as_they_are(option: Option) -> None:
    name, value = option
    argument = name if value is None else f"{name}={value}"
    assert translated(option) == Translated((argument,), (), False, False)


@pytest.mark.parametrize(
    ("option", "network", "cloud"),
    [
        (("--trial", "s3://b/run"), True, True),
        (("--other-trial", "S3://b/run"), True, True),
        (("--output", "s3://b/out"), True, True),
        (("--source", "a=s3://b/rule.py"), True, True),
        (("--source", "s3://b/rule.py"), True, True),
        (("--param", "other_trials=s3://b/run"), True, True),
        (("--param", 'a.action_json={"name": "sms"}'), True, True),
        (("--param", "action_json="), False, False),
        (("--sink", "stdout"), False, False),
        (("--sink", "emf:Rules"), False, False),
        (("--sink", "eventbridge,region=eu-west-1"), True, True),
        (("--sink", "webhook:https://example.org/x"), True, False),
        (("--action", "a=webhook:https://example.org/x"), True, False),
        (("--action", "stop-training:"), True, True),
        (("--action", "email:a=b@example.org"), True, True),
    ],
)
def test_network_and_credentials_are_for_what_needs_them(
    option: Option, network: bool, cloud: bool
) -> None:
    found = translated(option)
    assert (found.network, found.cloud) == (network, cloud)


def test_an_endpoint_goes_by_the_environment() -> None:
    assert translated(("--endpoint-url", "http://secret:9000")).arguments == ()


@pytest.mark.parametrize("text", ["command:ls", "a=command:env A=b", "Command: ls"])
def test_actions_that_run_commands_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="would run inside the container"):
        translated(("--action", text))


@pytest.mark.parametrize("folder", ["/", "/usr", "/usr/lib/x", "/etc", "/proc/1", "/opt"])
def test_folders_that_would_hide_the_image_are_refused(folder: str) -> None:
    with pytest.raises(UsageError, match=f"^Folder '{folder}' cannot be mounted into a container"):
        translated(("--trial", folder))


@pytest.mark.parametrize("path", ["/home/me/rule.py", "/home/rule.py"])
def test_a_whole_home_folder_is_not_shown_to_rules(path: str) -> None:
    with pytest.raises(UsageError, match="would show a whole home folder to the rules"):
        translated(("--source", path))


def test_which_trial_a_container_is_about() -> None:
    assert trial_of([("--profiler-trial", "/p"), ("--trial", "/t")]) == "/t"
    assert trial_of([("--profiler-trial", "/p"), ("--quiet", None)]) == "/p"
    with pytest.raises(UsageError, match=r"^No trial was given: give --trial PATH, or --profiler"):
        trial_of([("--quiet", None)])


def test_profiler_data_are_mounted() -> None:
    found = translated(("--profiler-trial", "runs/p"))
    assert found.mounts == (Mount(Path.cwd() / "runs/p"),)


def test_every_option_of_evaluate_that_is_declared_a_path_is_known() -> None:
    paths = {max(one.opts, key=len) for one in evaluate.params if isinstance(one.type, click.Path)}
    assert paths <= {"--trial", "--other-trial", "--output", "--source"}


def test_with_isolate_each_rule_gets_what_is_its_own() -> None:
    options: list[Option] = [
        ("--trial", "/t"),
        ("--rule", "AllZero"),
        ("--rule", "mine=Mine"),
        ("--source", "mine=/r/mine.py"),
        ("--param", "AllZero.threshold=1"),
        ("--param", "mine.a.b=2=3"),
        ("--mode", "mine=observe"),
        ("--action", "mine=sms:+1"),
        ("--action", "email:x@example.org"),
        ("--output", "/out/"),
    ]
    requests = requests_of(options)
    assert requests == [RuleRequest(None, "AllZero"), RuleRequest("mine", "Mine", "/r/mine.py")]
    assert split(options, [*zip(requests, ["AllZero", "mine"], strict=True)]) == {
        "AllZero": [
            ("--trial", "/t"),
            ("--rule", "AllZero=AllZero"),
            ("--param", "AllZero.threshold=1"),
            ("--mode", "AllZero=enforce"),
            ("--action", "email:x@example.org"),
            ("--output", "/out/AllZero"),
        ],
        "mine": [
            ("--trial", "/t"),
            ("--rule", "mine=Mine"),
            ("--source", "mine=/r/mine.py"),
            ("--param", "mine.a.b=2=3"),
            ("--mode", "mine=observe"),
            ("--action", "mine=sms:+1"),
            ("--action", "email:x@example.org"),
            ("--output", "/out/mine"),
        ],
    }


def test_a_single_rule_keeps_the_output_folder() -> None:
    options: list[Option] = [("--rule", "AllZero"), ("--output", "/out")]
    ((found,),) = [split(options, [(RuleRequest(None, "AllZero"), "AllZero")]).values()]
    assert ("--output", "/out") in found


def test_two_rules_of_one_name_need_ids() -> None:
    twice = [(RuleRequest(None, "AllZero"), "AllZero")] * 2
    with pytest.raises(UsageError, match="Two rule jobs are called 'AllZero'"):
        split([("--output", "/out")], twice)
