"""docker run on a real engine: verdicts, what the hardening takes away, and how containers end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
import pytest
import saved

from rule_core.storage import aws
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter

pytestmark = pytest.mark.docker

HELPER = "LIMIT = 0\n"
RULES = """\
import json
import os
import socket
import sys

import helper
from smdebug.rules import Rule


def content(path):
    with open(path) as stream:
        return stream.read()


def refused(write):
    try:
        write()
    except OSError as err:
        return err.strerror
    return ""


class Above(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        return step > helper.LIMIT


class Looks(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        status = dict(line.split(":", 1) for line in content("/proc/self/status").splitlines())
        limits = {}
        for kind, v1, v2 in [("memory", "memory.limit_in_bytes", "memory.max"),
                             ("pids", "pids.max", "pids.max")]:
            for path in (f"/sys/fs/cgroup/{kind}/{v1}", f"/sys/fs/cgroup/{v2}"):
                if os.path.exists(path):
                    limits[kind] = int(content(path))
        seen = {
            "uid": os.getuid(),
            "capabilities": status["CapEff"].strip() + status["CapBnd"].strip(),
            "no_new_privileges": status["NoNewPrivs"].strip(),
            "seccomp": status["Seccomp"].strip(),
            "root": refused(lambda: open("/x", "w")),
            "trial": refused(lambda: open(f"{self.base_trial.path}/x", "w")),
            "rules": refused(lambda: open(f"{os.path.dirname(__file__)}/x", "w")),
            "temporary": refused(lambda: open("/tmp/x", "w").close()),
            "interfaces": [name for _, name in socket.if_nameindex()],
            "first_process": content("/proc/1/comm").strip(),
            "secrets": sorted(name for name in os.environ if "AWS" in name or "TOKEN" in name),
            **limits,
        }
        with open("seen.json", "w") as stream:
            json.dump(seen, stream)
        return False


class Eats(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        self.kept = b"x" * 2**30
        return False


class Endless(Rule):
    def invoke_at_step(self, step):
        print("endless", file=sys.stderr, flush=True)
        while True:
            pass


class Writes(Rule):
    def invoke_at_step(self, step):
        self.base_trial.tensor("loss").value(step)
        open("/opt/elsewhere", "w")
        return False
"""


@pytest.fixture(scope="session")
def image() -> str:
    """Return the image under test."""
    name = os.environ.get("RULE_RUNNER_IMAGE")
    if not name:
        pytest.skip("RULE_RUNNER_IMAGE names no image: build one with scripts/build_image.")
    return name


@dataclass(frozen=True)
class Place:
    """Where a test works: a trial that has ended, one that has not, rules and an output folder."""

    folder: Path

    def run(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.folder,
            env=os.environ | variables,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def command(self, *arguments: str) -> list[str]:
        trial = () if any(one.startswith("--trial") for one in arguments) else ("--trial=trial",)
        run = ("-m", "rule_runner", "docker", "run", "--output=output")
        return [sys.executable, *run, *trial, *arguments]

    def result(self, name: str = "") -> dict[str, Any]:
        return saved.result(self.folder / "output" / name)

    def left(self) -> list[str]:
        """Return the containers of this test that are still there."""
        label = f"--filter=label=rule-runner.output={self.folder / 'output'}"
        found = subprocess.run(
            ["docker", "ps", "--all", "--quiet", label], check=True, capture_output=True, text=True
        )
        return found.stdout.split()


@pytest.fixture
def place(image: str, tmp_path: Path) -> Iterator[Place]:
    assert image
    collections = {"gradients": "^gradient/", "losses": "^loss$"}
    for name, end_job in (("trial", True), ("live", False)):
        with TrialWriter(tmp_path / name, collections=collections, end_job=end_job) as writer:
            for step, value in enumerate([1e-2, 1e-4, 1e-9]):
                tensors = {"gradient/w": np.full((4, 3), value), "loss": np.array([1.0])}
                writer.step(step, tensors, mode=ModeKeys.TRAIN)
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "rules.py").write_text(RULES, encoding="utf-8")
    (tmp_path / "rules" / "helper.py").write_text(HELPER, encoding="utf-8")
    place = Place(tmp_path)
    yield place
    left = place.left()
    for name in left:
        subprocess.run(["docker", "rm", "--force", name], check=True, capture_output=True)
    assert left == []


def test_a_built_in_rule_and_one_from_a_file_in_one_container(place: Place) -> None:
    rules = ("--rule=VanishingGradient", "--source=a=rules/rules.py", "--rule=a=Above")
    done = place.run(*rules, "--format=json", "--fail-on-issues")
    assert done.returncode == 10, done.stderr
    printed = json.loads(done.stdout)
    assert [(one["configuration_name"], one["step"]) for one in printed["rules"]] == [
        ("VanishingGradient", 2),
        ("a", 1),
    ]
    assert printed["trial"]["path"] == str(place.folder / "trial")
    written = json.loads((place.folder / "output" / "results.json").read_text("utf-8"))
    assert [one["fingerprint"] for one in printed["rules"]] == [
        one["fingerprint"] for one in written["rules"]
    ]


def test_each_rule_in_a_container_of_its_own(place: Place) -> None:
    sources = ("--source=a=rules/rules.py", "--source=w=rules/rules.py")
    rules = ("--rule=VanishingGradient", "--rule=a=Above", "--rule=w=Writes", *sources)
    done = place.run("--isolate", *rules, "-p", "VanishingGradient.threshold=1e-3")
    assert done.returncode == 1, done.stderr
    found = {name: place.result(name) for name in ("VanishingGradient", "a", "w")}
    assert [(one["status"], one["step"]) for one in found.values()] == [
        ("IssuesFound", 1),
        ("IssuesFound", 1),
        ("Error", None),
    ]
    assert "Read-only file system: '/opt/elsewhere'." in found["w"]["status_details"]
    assert "2 IssuesFound, 1 Error\n" in done.stdout
    assert (place.folder / "output" / "report.html").is_file()


def test_what_the_hardening_takes_away(place: Place) -> None:
    looks = ("--source=rules/rules.py", "--rule=Looks", "--memory=512m", "--pids-limit=99")
    done = place.run(*looks, **dict.fromkeys(["AWS_SECRET_ACCESS_KEY", "A_TOKEN"], "hidden"))
    assert done.returncode == 0, done.stderr
    seen = json.loads((place.folder / "output" / "seen.json").read_text("utf-8"))
    assert seen == {
        "uid": os.getuid() or 1000,
        "capabilities": "0" * 32,
        "no_new_privileges": "1",
        "seccomp": "2",
        "root": "Read-only file system",
        "trial": "Read-only file system",
        "rules": "Read-only file system",
        "temporary": "",
        "interfaces": ["lo"],
        "first_process": seen["first_process"],
        "secrets": [],
        "memory": 512 * 2**20,
        "pids": 99,
    }
    assert seen["first_process"] in {"docker-init", "tini", "podman-init"}


@pytest.mark.usefixtures("aws_endpoint")
def test_a_trial_in_s3_is_read_over_the_network_that_is_asked_for(place: Place) -> None:
    store = aws.client("s3")
    store.create_bucket(Bucket="trials")
    for path in (place.folder / "trial").rglob("*"):
        if path.is_file():
            key = f"runs/a/{path.relative_to(place.folder / 'trial')}"
            store.put_object(Bucket="trials", Key=key, Body=path.read_bytes())
    rule = ("--trial=s3://trials/runs/a", "--rule=VanishingGradient", "-vv")
    refused = place.run(*rule, "--network=bridge")
    assert (refused.returncode, "Use --network host." in refused.stderr) == (2, True)
    secret = {"AWS_SECRET_ACCESS_KEY": "my-secret"}
    done = place.run(*rule, "--network=host", **secret)
    assert done.returncode == 0, done.stderr
    assert (place.result()["status"], place.result()["step"]) == ("IssuesFound", 2)
    assert "my-secret" not in done.stdout + done.stderr
    assert urlsplit(os.environ["AWS_ENDPOINT_URL"]).netloc not in done.stdout


def test_a_rule_that_eats_memory_is_an_error_with_a_remedy(place: Place) -> None:
    done = place.run("--source=rules/rules.py", "--rule=Eats", "--memory=200m")
    assert done.returncode == 1, done.stderr
    assert "more memory than --memory 200m. Increase it.\n" in done.stderr
    result = place.result()
    assert (result["status"], result["status_details"][:27]) == (
        "Error",
        "ClientError: The container ",
    )
    assert done.stdout.startswith("Eats: Error\n")


def test_a_rule_that_never_ends_is_ended_by_its_time_limit(place: Place) -> None:
    done = place.run("--source=rules/rules.py", "--rule=Endless", "--rule-timeout=0.5")
    assert done.returncode == 1, done.stderr
    assert "Rule 'Endless' took longer than 0.5 s at step 0." in place.result()["status_details"]


@pytest.mark.parametrize(
    ("signals", "code"),
    [
        pytest.param([signal.SIGINT, signal.SIGINT], 130, id="twice"),
        pytest.param([signal.SIGTERM], 143, id="term"),
    ],
)
def test_a_rule_that_never_ends_is_ended_by_signals(
    signals: list[signal.Signals], code: int, place: Place
) -> None:
    command = place.command("--source=rules/rules.py", "--rule=Endless")
    with subprocess.Popen(
        command, cwd=place.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "endless\n"
        for one in signals:
            process.send_signal(one)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert (place.result()["status"], out.partition("\n")[0]) == ("Stopped", "Endless: Stopped")
    assert place.result()["ended_at"] is not None


def test_ctrl_c_stops_the_container_and_collects_the_result(place: Place) -> None:
    command = place.command("--trial=live", "--rule=VanishingGradient", "-p", "threshold=0", "-vv")
    command += ["--idle-timeout=120"]  # without the line below, the test fails in two minutes
    with subprocess.Popen(
        command, cwd=place.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if re.search(r"step_judged .*\bstep=2\b", line):
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (place.result()["status"], place.result()["coverage"]["judged"]) == ("Stopped", 3)
    assert out.startswith("VanishingGradient: Stopped\n")


def test_an_engine_that_goes_away_is_one_sentence(place: Place, tmp_path: Path) -> None:
    with Relay(tmp_path / "relay.sock") as relay:
        command = place.command("--source=rules/rules.py", "--rule=Endless")
        environment = os.environ | {"DOCKER_HOST": f"unix://{relay.path}"}
        with subprocess.Popen(
            command, cwd=place.folder, env=environment, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            assert process.stderr.readline() == "endless\n"
            relay.cut()
            _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.startswith("Error: The connection to the engine was lost while a container ran: ")
    for name in place.left():
        subprocess.run(["docker", "rm", "--force", name], check=True, capture_output=True)


def test_an_image_that_does_not_exist(place: Place) -> None:
    done = place.run("--image=nowhere:none", "--rule=VanishingGradient")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("Error: The engine has no image 'nowhere:none'. Build it ")
    assert not (place.folder / "output").exists()


class Relay:
    """Stands between the command and the engine, until it is cut."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ends: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen()

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def _start(self, what: Any, *arguments: socket.socket) -> None:
        thread = threading.Thread(target=what, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(urlsplit(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")).path)
            self._ends += [near, far]
            self._start(self._pass_on, near, far)
            self._start(self._pass_on, far, near)

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Break every connection, and take no more."""
        self.path.unlink(missing_ok=True)
        for one in (self._server, *self._ends):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def __exit__(self, *error: object) -> None:
        self.cut()
        for thread in self._threads:
            thread.join()
        for one in (self._server, *self._ends):
            one.close()
