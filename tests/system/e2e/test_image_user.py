"""The image's user on a real engine: root gives itself up, others stay who they are."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import saved

from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

pytestmark = [
    pytest.mark.docker,
    pytest.mark.skipif(os.geteuid() != 0, reason="Only root makes folders of other users."),
]

INPUT = "/opt/ml/processing/input/tensors"
OUTPUT = "/opt/ml/processing/output/rule"
MESSAGE = "/opt/ml/output"
ORDINARY = (1000, 1000)
# Says who judges; its first lines run while the file is loaded.
RULE = """\
import json, os
from smdebug.rules import Rule

LOADED = os.getresuid()


class Looks(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        status = dict(line.split(":\\t") for line in open("/proc/self/status").read().splitlines())
        seen = {
            "users": [*LOADED, *os.getresuid()],
            "groups": [*os.getresgid(), *os.getgroups()],
            "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16),
            "no_new_privileges": status["NoNewPrivs"],
            "home": os.environ["HOME"],
        }
        with open("seen.json", "w") as stream:
            json.dump(seen, stream)
        return step > 0
"""
CURE = (
    "Permission denied. Give the folder to user {} with chown, or choose another folder or user "
    "(in a container, --user).\n"
)


@pytest.fixture(scope="module")
def image() -> str:
    name = os.environ.get("RULE_RUNNER_IMAGE")
    if not name:
        pytest.skip("RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.")
    return name


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return an ended trial whose files belong to user 4321."""
    trial = tmp_path / "trial"
    with TrialWriter(trial, collections={"losses": "^loss$"}, end_job=True) as writer:
        for step in range(3):
            writer.step(step, {"loss": np.array([1.0])}, mode=ModeKeys.TRAIN)
    for path in (trial, *trial.rglob("*")):
        os.chown(path, 4321, 4321)
    return trial


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "looks.py").write_text(RULE)
    return folder


def roots_folder(path: Path) -> Path:
    """Make a folder that only root may write to."""
    path.mkdir()
    path.chmod(0o755)
    return path


def run(
    image: str, mounts: dict[Path, str], *options: str, command: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    volumes = [f"--volume={source}:{target}" for source, target in mounts.items()]
    return subprocess.run(
        ["docker", "run", "--rm", "--network=none", *volumes, *options, image, *command],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def job(rule: Path) -> tuple[str, ...]:
    """Return the options that describe a rule job of a mounted rule."""
    assert rule
    return ("--env=rule_to_invoke=Looks", "--env=source_s3_uri=/rules/looks.py")


def owners(folder: Path) -> dict[str, tuple[int, int]]:
    """Return who owns a folder and each thing in it."""
    paths = [folder, *folder.rglob("*")]
    return {str(path): (path.lstat().st_uid, path.lstat().st_gid) for path in paths}


def seen_in(folder: Path) -> dict[str, Any]:
    seen: dict[str, Any] = json.loads((folder / "seen.json").read_text())
    return seen


def test_root_becomes_ordinary_and_writes_where_only_root_might(
    image: str, trial: Path, rule: Path, tmp_path: Path
) -> None:
    output, message = roots_folder(tmp_path / "output"), roots_folder(tmp_path / "message")
    before = owners(trial) | owners(rule)
    # The trial and the rule may be written to, as far as the engine is concerned.
    mounts = {trial: INPUT, output: OUTPUT, message: MESSAGE, rule: "/rules"}
    done = run(image, mounts, *job(rule), "--group-add=4321", "--cap-add=SYS_ADMIN")
    assert done.returncode == 0, done.stderr
    assert seen_in(output) == {
        "users": [1000] * 6,
        "groups": [1000] * 3,
        "capabilities": 0,
        "no_new_privileges": "1",
        "home": "/tmp",
    }
    assert saved.result(output)["step"] == 1
    assert (message / "message").read_text().startswith("RuleEvaluationConditionMet: ")
    assert owners(trial) | owners(rule) == before
    assert set((owners(output) | owners(message)).values()) == {ORDINARY}


def test_root_without_capabilities_ends_with_the_user_flag_to_add(
    image: str, trial: Path, rule: Path, tmp_path: Path
) -> None:
    output = roots_folder(tmp_path / "output")
    mounts = {trial: INPUT, output: OUTPUT, rule: "/rules"}
    done = run(image, mounts, *job(rule), "--cap-drop=ALL")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "Error: This container was started as root and cannot become user 1000: "
        "Operation not permitted. Add --user 1000:1000, or the user and group that own the "
        "output folder.\n"
    )
    assert owners(output) == {str(output): (0, 0)}
    os.chown(output, *ORDINARY)
    mended = run(image, mounts, *job(rule), "--cap-drop=ALL", "--user=1000:1000")
    assert (mended.returncode, seen_in(output)["users"]) == (0, [1000] * 6), mended.stderr


@pytest.mark.parametrize("user", ["12345:12345", "65534:0"])
def test_any_user_is_warned_of_an_output_folder_of_root(
    image: str, trial: Path, rule: Path, tmp_path: Path, user: str
) -> None:
    output, message = roots_folder(tmp_path / "output"), tmp_path / "message"
    message.mkdir()
    message.chmod(0o777)
    mounts = {trial: INPUT, output: OUTPUT, message: MESSAGE, rule: "/rules"}
    done = run(image, mounts, *job(rule), f"--user={user}")
    number = int(user.partition(":")[0])
    assert (done.returncode, done.stdout) == (73, "")
    assert done.stderr.endswith(f"Cannot write '{OUTPUT}/.sagemaker-ignore': {CURE.format(number)}")
    assert owners(output) == {str(output): (0, 0)}
    assert (message / "message").read_text() == "ClientError: " + done.stderr.splitlines()[-1]
    os.chown(output, number, 0)
    mended = run(image, mounts, *job(rule), f"--user={user}")
    assert (mended.returncode, seen_in(output)["users"]) == (0, [number] * 6), mended.stderr


def test_a_linked_output_folder_is_not_followed(
    image: str, trial: Path, rule: Path, tmp_path: Path
) -> None:
    above, victim = roots_folder(tmp_path / "above"), roots_folder(tmp_path / "victim")
    (above / "rule").symlink_to("/victim")
    mounts = {trial: INPUT, above: "/opt/ml/processing/output", victim: "/victim", rule: "/rules"}
    done = run(image, mounts, *job(rule))
    assert done.returncode == 73
    assert f"Output folder '{OUTPUT}' is a link or not a folder." in done.stderr
    assert owners(victim) | owners(above) == {
        **dict.fromkeys(map(str, (victim, above, above / "rule")), (0, 0))
    }


def test_a_command_is_not_run_as_root_either(
    image: str, trial: Path, rule: Path, tmp_path: Path
) -> None:
    output = roots_folder(tmp_path / "output")
    mounts = {trial: "/trial", output: "/output", rule: "/rules"}
    judged = ("evaluate", "--trial=/trial", "--source=/rules/looks.py")
    done = run(image, mounts, command=(*judged, "--output=/output"))
    assert (done.returncode, done.stdout) == (73, "")
    assert done.stderr.endswith(f"Cannot write '/output/.sagemaker-ignore': {CURE.format(1000)}")
    assert owners(output) == {str(output): (0, 0)}
    os.chown(output, *ORDINARY)
    mended = run(image, mounts, command=(*judged, "--output=/output"))
    assert (mended.returncode, "Looks: IssuesFound at step 1" in mended.stdout) == (0, True)


def test_what_lies_in_the_working_folder_or_the_environment_is_not_run_as_root(
    image: str, tmp_path: Path
) -> None:
    planted = roots_folder(tmp_path / "planted")
    code = "import os, pathlib; pathlib.Path('/planted/ran').write_text(str(os.getuid()))"
    for name in ("sitecustomize", "ctypes", "rule_runner"):
        (planted / f"{name}.py").write_text(code)
    options = ("--env=PYTHONPATH=/planted", "--workdir=/planted")
    run(image, {planted: "/planted"}, *options, command=("--version",))
    assert not (planted / "ran").exists()


PLATFORM = [
    pytest.param({"input": INPUT}, id="input"),
    pytest.param({"output": OUTPUT}, id="output"),
    pytest.param({"config": "/opt/ml/config"}, id="config"),
    pytest.param({"ml": "/opt/ml"}, id="everything"),
]


@pytest.mark.parametrize("folders", PLATFORM)
def test_a_platforms_folders_without_a_rule_are_no_healthy_rule(
    image: str, tmp_path: Path, folders: dict[str, str]
) -> None:
    mounts = {roots_folder(tmp_path / name): target for name, target in folders.items()}
    message = {} if "ml" in folders else {roots_folder(tmp_path / "message"): MESSAGE}
    done = run(image, mounts | message)
    said = (
        "No rule is named: 'rule_to_invoke' is neither in the environment nor in "
        "'/opt/ml/config/processingjobconfig.json'. Add it to the rule's parameters."
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"Error: {said}\n")
    written = tmp_path / ("message/message" if message else "ml/output/message")
    assert written.read_text() == f"ClientError: {said}"


@pytest.mark.parametrize("user", [(), ("--user=12345:12345",), ("--cap-drop=ALL", "--user=1000")])
def test_without_a_platform_the_help_is_printed(image: str, user: tuple[str, ...]) -> None:
    done = run(image, {}, *user)
    assert (done.returncode, done.stdout[:18], done.stderr) == (0, "Usage: rule-runner", "")
