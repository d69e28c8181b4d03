"""The image on a real engine: verdicts, files, exit codes, signals, and what is not inside."""

import itertools
import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import profiler_writer
import pytest
import saved
from profiler_writer import cpu, gpu

from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

pytestmark = pytest.mark.docker

INPUT = "/opt/ml/processing/input/tensors"
PROFILER_INPUT = "/opt/ml/processing/input/profiler"
OUTPUT = "/opt/ml/processing/output/rule"
HARDENED = (
    *("--read-only", "--network=none", "--user=12345:12345"),
    *("--cap-drop=ALL", "--security-opt=no-new-privileges"),
)
RULE = """\
from smdebug.rules import Rule


class StepAbove(Rule):
    def __init__(self, base_trial, limit):
        super().__init__(base_trial)
        self.limit = int(limit)

    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        return step > self.limit
"""


@pytest.fixture(scope="session")
def image() -> str:
    """Return the image under test; a named image without an engine is a failure."""
    name = os.environ.get("RULE_RUNNER_IMAGE")
    if not name:
        pytest.skip("RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.")
    assert docker("image", "inspect", "--format", "found", name).stdout == "found\n"
    return name


@pytest.fixture
def trial(tmp_path: Path) -> Path:
    """Return a trial whose gradients vanish at step 2 and whose training job has ended."""
    return write_trial(tmp_path / "trial", [1e-2, 1e-4, 1e-9], end_job=True)


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return open_folder(tmp_path / "output")


def docker(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Return what a docker command printed and its exit code."""
    return subprocess.run(
        ["docker", *arguments], check=False, capture_output=True, text=True, timeout=120
    )


def write_trial(root: Path, gradients: list[float], *, end_job: bool) -> Path:
    """Write a trial with one gradient tensor and a loss; element i is the gradient of step i."""
    collections = {"gradients": "^gradient/", "losses": "^loss$"}
    with TrialWriter(root, collections=collections, end_job=end_job) as writer:
        for step, value in enumerate(gradients):
            loss = np.array([1.0 / (step + 1)])
            tensors = {"gradient/w": np.full((4, 3), value), "loss": loss}
            writer.step(step, tensors, mode=ModeKeys.TRAIN)
    return root


def open_folder(path: Path) -> Path:
    """Make a folder that any user may write to."""
    path.mkdir()
    path.chmod(0o777)
    return path


def mount(source: Path, target: str, *, writable: bool = False) -> str:
    return f"--volume={source}:{target}:{'rw' if writable else 'ro'}"


def evaluate(
    image: str, trial: Path, output: Path, *arguments: str, more: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Evaluate by arguments in a container that may do nothing but write to the output folder."""
    mounts = (mount(trial, "/trial"), mount(output, "/output", writable=True), *more)
    command = ("evaluate", "--trial=/trial", "--output=/output", *arguments)
    return docker("run", "--rm", *HARDENED, *mounts, image, *command)


def evaluate_by_contract(
    image: str, trial: Path, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Evaluate as the platform does: no command, only mounts and environment."""
    mounts = (
        mount(trial, INPUT),
        mount(open_folder(folder / "rule"), OUTPUT, writable=True),
        mount(open_folder(folder / "message"), "/opt/ml/output", writable=True),
    )
    return docker("run", "--rm", *HARDENED, *mounts, *arguments, image)


def result_in(folder: Path) -> dict[str, Any]:
    result: dict[str, Any] = saved.result(folder)
    return result


@pytest.mark.parametrize("command", [(), ("--help",)], ids=["empty", "help"])
def test_an_empty_command_line_and_help_print_the_help(image: str, command: tuple[str]) -> None:
    done = docker("run", "--rm", *HARDENED, image, *command)
    assert (done.returncode, done.stdout.split("\n")[0][:18]) == (0, "Usage: rule-runner")


def test_a_hardened_container_reaches_a_verdict_by_arguments(
    image: str, trial: Path, output: Path
) -> None:
    done = evaluate(image, trial, output, "--rule=VanishingGradient", "--format=json")
    assert done.returncode == 0, done.stderr
    result = result_in(output)
    assert (result["status"], result["step"]) == ("IssuesFound", 2)
    assert result["coverage"]["judged"] == 3
    assert [found["tensor"] for found in result["evidence"]] == ["gradient/w"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        pytest.param("--rule=VanishingGradient", 10, "IssuesFound", id="issues-found"),
        pytest.param("--rule=VanishingGradient -p threshold=0", 0, "NoIssuesFound", id="healthy"),
        pytest.param("--rule=NoSuchRule", 1, "Unknown rule 'NoSuchRule'.", id="unknown-rule"),
        pytest.param("--no-such-option", 2, "No such option", id="usage"),
    ],
)
def test_exit_codes(
    image: str, trial: Path, output: Path, arguments: str, code: int, said: str
) -> None:
    done = evaluate(image, trial, output, "--fail-on-issues", *arguments.split())
    assert done.returncode == code, done.stderr
    assert said in done.stdout + done.stderr


def test_a_rule_of_the_users_own_is_judged_from_a_mounted_file(
    image: str, trial: Path, output: Path, tmp_path: Path
) -> None:
    (tmp_path / "step_above.py").write_text(RULE, encoding="utf-8")
    source = mount(tmp_path / "step_above.py", "/rules/step_above.py")
    arguments = ("--source=/rules/step_above.py", "--rule=StepAbove", "-p", "limit=0")
    done = evaluate(image, trial, output, *arguments, more=(source,))
    assert done.returncode == 0, done.stderr
    assert (result_in(output)["status"], result_in(output)["step"]) == ("IssuesFound", 1)


def test_the_environment_of_the_contract_names_the_rule_and_its_parameters(
    image: str, trial: Path, tmp_path: Path
) -> None:
    parameters = ("--env=rule_to_invoke=VanishingGradient", "--env=threshold=0.001")
    done = evaluate_by_contract(image, trial, tmp_path, *parameters)
    assert done.returncode == 0, done.stderr
    result = result_in(tmp_path / "rule")
    assert (result["status"], result["step"]) == ("IssuesFound", 1)
    assert (tmp_path / "message" / "message").read_text("utf-8") == (
        "RuleEvaluationConditionMet: Evaluation of the rule VanishingGradient at step 1 "
        "resulted in the condition being met\n"
    )


def test_profiler_data_are_judged_and_reported_where_the_platform_mounts_them(
    image: str, tmp_path: Path
) -> None:
    data = tmp_path / "profiler"
    series = (cpu([95.0] * 120), gpu([3.0] * 120))
    profiler_writer.write(data, profiler_writer.files(*series) | profiler_writer.END)
    output = open_folder(tmp_path / "rule")
    mounts = (mount(data, PROFILER_INPUT), mount(output, OUTPUT, writable=True))
    given = ("--env=rule_to_invoke=ProfilerReport", "--env=CPUBottleneck_patience=10")
    done = docker("run", "--rm", *HARDENED, *mounts, *given, image)
    assert done.returncode == 0, done.stderr
    assert result_in(output)["status"] == "NoIssuesFound"
    found = json.loads((output / "profiler-output/profiler-reports/CPUBottleneck.json").read_text())
    assert (found["RuleTriggered"], found["Datapoints"]) == (1, 120)
    page = (output / "profiler-output/profiler-report.html").read_text()
    assert "Reduce the load of the processors" in page


def test_the_job_configuration_of_the_platform_stands_in_for_the_environment(
    image: str, trial: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    environment = {"rule_to_invoke": "VanishingGradient", "threshold": "0.5"}
    request = json.dumps({"ProcessingJobName": "a-rule-job", "Environment": environment})
    (tmp_path / "config" / "processingjobconfig.json").write_text(request, encoding="utf-8")
    config = mount(tmp_path / "config", "/opt/ml/config")
    done = evaluate_by_contract(image, trial, tmp_path, config)
    assert done.returncode == 0, done.stderr
    result = result_in(tmp_path / "rule")
    assert (result["status"], result["step"]) == ("IssuesFound", 0)


def test_an_error_in_container_mode_is_reported_in_the_message_file(
    image: str, trial: Path, tmp_path: Path
) -> None:
    done = evaluate_by_contract(image, trial, tmp_path, "--env=rule_to_invoke=VanishingGradent")
    assert done.returncode == 1
    message = (tmp_path / "message" / "message").read_text("utf-8")
    expected = "ClientError: Unknown rule 'VanishingGradent'. Did you mean 'VanishingGradient'?"
    assert message.rstrip("\n") == expected


@pytest.fixture
def live_container(image: str, tmp_path: Path, output: Path) -> Iterator[tuple[str, Any]]:
    """Start an evaluation of a trial that has not ended; yield its name when it judges steps."""
    trial = write_trial(tmp_path / "live", [1e-2, 1e-2], end_job=False)
    name = f"rule-runner-test-{uuid.uuid4().hex}"
    mounts = (mount(trial, "/trial"), mount(output, "/output", writable=True))
    command = (
        *("docker", "run", "--rm", "--name", name, *HARDENED, *mounts, image, "evaluate", "-vv"),
        *("--trial=/trial", "--output=/output", "--rule=VanishingGradient", "--idle-timeout=60"),
    )
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        judged = (line for line in process.stderr if "step_judged" in line)
        try:
            assert len(list(itertools.islice(judged, 2))) == 2, "The container ended by itself."
            yield name, process
        finally:
            docker("rm", "--force", name)


def test_a_stopped_container_leaves_its_result(
    live_container: tuple[str, Any], output: Path
) -> None:
    name, process = live_container
    # The engine kills what is still there after this time: the exit code is 137 then.
    assert docker("stop", "-t", "8", name).returncode == 0
    assert process.wait(timeout=30) == 143
    result = result_in(output)
    assert (result["status"], result["coverage"]["judged"]) == ("Stopped", 2)


ASK = """
import json, sys, time, urllib.request
def ask(path):
    headers = {"Authorization": f"Bearer {sys.argv[1]}"}
    url = f"http://127.0.0.1:8420{path}"
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
        return answer.read()
deadline = time.monotonic() + 60
while time.monotonic() < deadline:
    try:
        trials = json.loads(ask("/api/v1/trials"))["trials"]
    except OSError:  # it does not listen yet
        trials = []
    if trials and trials[0]["state"] == "judged":
        print(trials[0]["path"], trials[0]["outcome"], ask("/readyz").decode())
        break
    time.sleep(0.2)
"""


def test_the_service_judges_shows_and_stops(
    image: str, trial: Path, output: Path, tmp_path: Path
) -> None:
    config = tmp_path / "fleet.yaml"
    config.write_text(
        "roots: [/runs]\njudge: [{rules: [VanishingGradient]}]\noutput: /output/out\n"
    )
    tokens = "--tokens=/output/tokens.json"
    mounts = (
        *(mount(trial, "/runs/mine"), mount(config, "/fleet.yaml")),
        *(mount(output, "/output", writable=True), "--tmpfs=/tmp"),
    )
    secret = docker(
        "run", "--rm", *HARDENED, *mounts, image, "serve-token", "add", "ann", tokens
    ).stdout.strip()
    name = f"rule-runner-test-{uuid.uuid4().hex}"
    try:
        started = docker(
            *("run", "--detach", "--name", name, *HARDENED, *mounts, image, "serve"),
            *("--config=/fleet.yaml", "--host=0.0.0.0", tokens, "--allow-plain-http"),
        )
        assert started.returncode == 0, started.stderr
        shown = docker("exec", name, "python", "-I", "-c", ASK, secret)
        assert shown.stdout == "/runs/mine IssuesFound ready\n\n", shown.stderr
        assert docker("stop", "--time=60", name).returncode == 0
        assert docker("inspect", "--format={{.State.ExitCode}}", name).stdout == "143\n"
    finally:
        docker("rm", "--force", name)
    assert [*(output / "out").glob("mine-*/results.json")]


def test_results_can_be_written_without_any_mount(image: str, trial: Path) -> None:
    script = "rule-runner >/dev/null && ls && cat /opt/ml/output/message"
    done = docker(
        *("run", "--rm", "--network=none", "--user=12345:12345", mount(trial, INPUT)),
        *("--env=rule_to_invoke=VanishingGradient", "--entrypoint=sh", image, "-c", script),
    )
    assert "results.json\n" in done.stdout
    assert "RuleEvaluationConditionMet: " in done.stdout


def test_no_compiler_and_no_package_tool_is_inside(image: str) -> None:
    tools = ("cc", "gcc", "g++", "make", "ld", "pip", "pip3")
    modules = ("pip", "setuptools", "wheel")
    script = (
        "import shutil, importlib.util as u; "
        f"print([t for t in {tools} if shutil.which(t)], [m for m in {modules} if u.find_spec(m)])"
    )
    done = docker("run", "--rm", "--network=none", "--entrypoint=python", image, "-c", script)
    assert done.stdout == "[] []\n"
