"""The command `serve`: over a real root, from its start to a signal."""

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from rule_runner.service.access.tokens import Role, TokenFile

PATIENCE_S: Final = 60.0


class Serving:
    """A running service."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "rule_runner", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command, cwd=folder, stderr=subprocess.PIPE, text=True, env=os.environ
        )
        self.log: list[str] = []
        self.url = ""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line)
            if found := re.search(r"address=(http\S+)/", line):
                self.url = found[1]
                break
        assert self.url, "".join(self.log)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(self.process.stderr)

    def open(self, path: str, body: Any = None, **headers: str) -> Any:
        """Open an address; a body is posted."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def get(self, path: str, **headers: str) -> Any:
        """Return the JSON at an address."""
        with self.open(path, **headers) as answer:
            return json.load(answer)

    def events(self, **headers: str) -> "queue.Queue[str]":
        """Return the types of the events of the stream as they come; "" at its end."""
        events: queue.Queue[str] = queue.Queue()
        answer = self.open("/api/v1/events", **headers)

        def read() -> None:
            with answer:
                for line in answer:
                    if line.startswith(b"event: "):
                        events.put(line.decode().removeprefix("event: ").strip())
            events.put("")

        threading.Thread(target=read, daemon=True).start()
        return events

    def stop(self) -> int:
        """Stop it by a signal, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

    def end(self) -> None:
        """End it in any case."""
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()


def write(folder: Path, rows: int, first: int = 0) -> None:
    """Write rows of a loss that never falls to a log."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "log.csv").open("a") as log:
        if not first:
            log.write("step,loss,lr\n")
        for step in range(first, first + rows):
            log.write(f"{step},{1.0 + 0.01 * (step % 3)},0.1\n")


def until(events: "queue.Queue[str]", kind: str) -> None:
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
