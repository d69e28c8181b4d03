"""A container as it is asked of an engine: hardened, with what it needs and no more."""

from pathlib import Path

import pytest

from rule_runner.config.request import EvaluationRequest
from rule_runner.containers.options import ContainerRequest, Mount
from rule_runner.containers.plan import (
    Account,
    ContainerPlan,
    check_endpoints,
    environment,
    parse_size,
    sdk_arguments,
)
from rule_runner.errors import UsageError

ENVIRON = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "hidden",
    "AWS_SESSION_TOKEN": "",
    "AWS_REGION": "eu-west-1",
    "AWS_ENDPOINT_URL_S3": "http://store:9000",
    "AWS_PROFILE": "work",
    "AWS_CONFIG_FILE": "/home/me/config",
    "GITHUB_TOKEN": "hidden",
    "RULE_RUNNER_WEBHOOK_SECRET": "hidden",
    "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW": "5",
}


def plan(**changes: object) -> ContainerPlan:
    facts = {
        "image": "rule-runner:1",
        "arguments": ("--trial=/t", "--output=/out"),
        "mounts": (Mount(Path("/out"), True), Mount(Path("/t"))),
        "environment": {"AWS_SECRET_ACCESS_KEY": "hidden"},
        "network": "none",
        "memory": 2**30,
        "cpus": 1.5,
        "pids": 64,
        "account": Account("1000:1000"),
        "output": "/out",
    }
    return ContainerPlan(**{**facts, **changes})  # type: ignore[arg-type]  # as declared


def test_a_container_is_hardened_and_has_limits() -> None:
    assert sdk_arguments(plan()) == {
        "image": "rule-runner:1",
        "command": ["evaluate", "--trial=/t", "--output=/out"],
        "environment": {"HOME": "/tmp", "OMP_NUM_THREADS": "1", "AWS_SECRET_ACCESS_KEY": "hidden"},
        "labels": {"rule-runner.output": "/out"},
        "mounts": [
            {"Type": "bind", "Source": "/out", "Target": "/out", "ReadOnly": False},
            {"Type": "bind", "Source": "/t", "Target": "/t", "ReadOnly": True},
        ],
        "working_dir": "/out",
        "user": "1000:1000",
        "userns_mode": None,
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "read_only": True,
        "tmpfs": {"/tmp": "rw,nosuid,nodev,noexec,mode=1777,size=512m"},
        "mem_limit": 2**30,
        "memswap_limit": 2**30,
        "nano_cpus": 1_500_000_000,
        "pids_limit": 64,
        "init": True,
        "log_config": {"Type": "none"},
    }


def test_root_of_a_rootless_engine_is_the_caller_and_stays_root() -> None:
    asked = sdk_arguments(plan(account=Account("0:0")))
    assert (asked["user"], asked["entrypoint"]) == ("0:0", ["rule-runner"])
    assert "entrypoint" not in sdk_arguments(plan())


def test_without_an_output_folder_the_working_folder_is_the_containers_own() -> None:
    assert sdk_arguments(plan(output="s3://b/out"))["working_dir"] == "/tmp"


def test_the_folder_of_a_profile_is_mounted_to_be_read() -> None:
    found = sdk_arguments(plan(aws_folder="/home/me/.aws"))
    assert found["mounts"][-1] == {
        "Type": "bind",
        "Source": "/home/me/.aws",
        "Target": "/aws",
        "ReadOnly": True,
    }
    assert found["environment"]["AWS_SHARED_CREDENTIALS_FILE"] == "/aws/credentials"
    assert found["environment"]["AWS_CONFIG_FILE"] == "/aws/config"


def test_a_plan_shows_no_secrets() -> None:
    assert "hidden" not in repr(plan())


@pytest.mark.parametrize(
    ("network", "cloud", "profile", "names"),
    [
        pytest.param(False, False, False, set(), id="nothing-to-reach"),
        pytest.param(False, False, True, set(), id="no-cloud-no-profile"),
        pytest.param(True, False, False, {"RULE_RUNNER_WEBHOOK_SECRET"}, id="webhook"),
        pytest.param(
            True,
            True,
            False,
            {
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_REGION",
                "AWS_ENDPOINT_URL_S3",
                "RULE_RUNNER_WEBHOOK_SECRET",
            },
            id="cloud",
        ),
        pytest.param(
            True,
            True,
            True,
            {
                "AWS_ACCESS_KEY_ID",
                "AWS_SECRET_ACCESS_KEY",
                "AWS_REGION",
                "AWS_ENDPOINT_URL_S3",
                "AWS_PROFILE",
                "RULE_RUNNER_WEBHOOK_SECRET",
            },
            id="profile",
        ),
    ],
)
def test_only_variables_that_are_needed_are_passed(
    network: bool, cloud: bool, profile: bool, names: set[str]
) -> None:
    found = environment(
        ContainerRequest(EvaluationRequest(), (), network, cloud), ENVIRON, profile=profile
    )
    expected = names | {"SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"}
    assert found == {name: ENVIRON[name] for name in expected}


def test_the_variable_that_has_the_address_of_a_sink_is_passed() -> None:
    request = EvaluationRequest(sinks=("apprise:$GITHUB_TOKEN", "file:$HOME"))
    found = environment(ContainerRequest(request, (), True, False), ENVIRON, profile=False)
    assert found["GITHUB_TOKEN"] == "hidden"
    assert "HOME" not in found


@pytest.mark.parametrize("text", ["", "x", "4t", "-1g", "1m", "nan"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"^Memory must be a size of at least 64m, .* '{text}'"):
        parse_size(text)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9000", "http://localhost", "http://[::1]:9"])
def test_an_endpoint_of_this_machine_alone_needs_its_network(url: str) -> None:
    check_endpoints([url], "host")
    with pytest.raises(UsageError, match=r"network 'bridge' does not reach.* --network host"):
        check_endpoints([url], "bridge")


def test_an_endpoint_elsewhere_is_reached_from_any_network() -> None:
    check_endpoints(["https://store.example.org", "http://10.0.0.1:9000"], "bridge")
