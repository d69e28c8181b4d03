"""The command `serve`: over a real root, from its start to a signal."""

import signal
import subprocess
import sys
import time
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from serving import PATIENCE_S, Serving, write

from rule_runner.service.access.tokens import Role, TokenFile

if TYPE_CHECKING:
    from queue import Queue


def until(events: "Queue[str]", kind: str) -> None:
    """Wait for an event."""
    deadline = time.monotonic() + PATIENCE_S
    while events.get(timeout=max(0.1, deadline - time.monotonic())) != kind:
        pass


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    running: list[Serving] = []

    def start(*arguments: str) -> Serving:
        running.append(Serving(tmp_path, *arguments))
        return running[-1]

    yield start
    for serving in running:
        serving.end()


def test_a_finding_arrives_while_a_trial_grows(started: Any, tmp_path: Path) -> None:
    write(tmp_path / "runs" / "growing", rows=3)
    (tmp_path / "fleet.yaml").write_text(
        "roots: [runs]\njudge: [{trials: '*', rules: [LossNotDecreasing]}]\n"
    )
    serving = started("--config", "fleet.yaml")
    events = serving.events()
    assert events.get(timeout=PATIENCE_S) == "open"
    write(tmp_path / "runs" / "growing", rows=200, first=3)
    until(events, "finding")
    (trial,) = serving.get("/api/v1/trials")["trials"]
    (rule,) = serving.get(f"/api/v1/trials/{trial['id']}")["rules"]
    assert rule["outcome"] == "IssuesFound"
    with serving.open("/readyz") as answer:
        assert answer.status == 200
    path = f"/api/v1/trials/{trial['id']}:acknowledge"
    with serving.open(path, {"rule": rule["name"], "reason": "known"}) as answer:
        assert answer.status == 201
    while not serving.get(f"/api/v1/trials/{trial['id']}")["rules"][0]["acknowledged"]:
        until(events, "trial")
    assert serving.stop() == 128 + signal.SIGTERM
    until(events, "")
    assert not [line for line in serving.log if "Traceback" in line]


def test_a_service_with_tokens_lets_in_who_has_one(started: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    secret = TokenFile(tmp_path / "tokens.json").add("ann", Role.READ)
    serving = started("runs", "--tokens", "tokens.json")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        serving.get("/api/v1/trials")
    assert serving.get("/api/v1/trials", Authorization=f"Bearer {secret}")["total"] == 0
    assert serving.stop() == 128 + signal.SIGTERM
    assert secret not in "".join(serving.log)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["runs", "--host", "0.0.0.0"], "needs --tokens FILE"),
        (["runs", "--host", "0.0.0.0", "--tokens", "t.json"], "needs TLS"),
        (["runs", "--tls-cert", "c.pem"], "belong together"),
        (["runs", "--user-header", "X-User"], "belong together"),
        (["runs", "--trusted-proxy", "10.0.0.1/8", "--user-header", "X"], "--trusted-proxy needs"),
        (["--no-watch"], "--no-watch needs --database"),
        ([], "No root was given"),
    ],
)
def test_unsafe_or_wrong_options_start_nothing(
    arguments: list[str], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()
    command = [sys.executable, "-m", "rule_runner", "serve", "--port", "0", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr


def test_an_index_of_another_watch_is_shown_and_may_go(started: Any, tmp_path: Path) -> None:
    write(tmp_path / "runs" / "a", rows=30)
    command = [sys.executable, "-m", "rule_runner", "watch", "runs", "--once"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE_S)
    (database,) = tmp_path.rglob("watch.sqlite")
    serving = started("--no-watch", "--database", str(database))
    assert serving.get("/api/v1/trials")["total"] == 1
    with pytest.raises(urllib.error.HTTPError, match="409"):
        serving.open("/api/v1/trials/1:reevaluate", {})
    database.unlink()
    with pytest.raises(urllib.error.HTTPError, match="503"):
        serving.get("/readyz")
    assert serving.stop() == 128 + signal.SIGTERM


def test_a_taken_port_is_said(started: Any, tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    port = started("runs").url.rpartition(":")[2]
    command = [sys.executable, "-m", "rule_runner", "serve", "--port", port]
    database = ["--no-watch", "--database", "other.sqlite"]
    done = subprocess.run(
        [*command, *database], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Choose another --port" in done.stderr) == (73, True)


@pytest.mark.parametrize(
    ("command", "code", "sentence"),
    [
        ("serve runs --tokens none.json", 1, "do not exist. Make the first one"),
        ("serve runs --tls-cert none.pem --tls-key none.pem", 1, "No such file or directory"),
        ("serve runs --tls-cert runs/bad.pem --tls-key runs/bad.pem", 1, "cannot be used"),
        ("serve-token add ann --expires soon --tokens t.json", 2, "--expires must be a whole"),
        ("serve-token list --tokens none.json", 1, "do not exist"),
        ("serve-token revoke ann --tokens none.json", 1, "no token 'ann'"),
    ],
)
def test_bad_tokens_and_certificates_are_one_sentence(
    command: str, code: int, sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "bad.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    done = subprocess.run(
        [sys.executable, "-m", "rule_runner", *command.split()],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (done.returncode, sentence in done.stderr) == (code, True), done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "t.json").exists()
