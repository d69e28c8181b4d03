"""Engines that are not there, too old, or refuse: one sentence each, and the remedy."""

import errno
import gc
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from rule_runner.containers.docker_engine import Engine
from rule_runner.containers.errors import EngineError, refused, unreachable
from rule_runner.containers.options import Mount
from rule_runner.containers.plan import Account, ContainerPlan

Answers = dict[str, tuple[int, Any]]
ANSWERS: Answers = {
    "/version": (200, {"ApiVersion": "1.41"}),
    "/info": (200, {"NCPU": 3, "SecurityOptions": ["name=seccomp,profile=default"]}),
    "/networks": (200, [{"Id": "1", "Name": "none"}, {"Id": "2", "Name": "host"}]),
}
PLAN = ContainerPlan(
    image="i",
    arguments=(),
    mounts=(Mount(Path("/out"), True),),
    environment={},
    network="none",
    memory=1,
    cpus=1.0,
    pids=1,
    account=Account("1:1"),
    output="/out",
)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@contextmanager
def answering(path: Path, answers: Answers) -> Iterator[None]:
    """Answer as an engine on the socket `path` does: what a request's path ends with decides."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked = self.path.partition("?")[0]
            found = next((one for end, one in answers.items() if asked.endswith(end)), None)
            code, content = found or (404, {"message": "page not found"})
            body = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, format: str, *args: object) -> None:
            pass

    with _Server(str(path), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Engine]]:
    """Return a function that connects to a scripted engine."""
    made: list[Any] = []

    def connect(changes: Answers | None = None) -> Engine:
        path = tmp_path / "docker.sock"
        server = answering(path, {**ANSWERS, **(changes or {})})
        server.__enter__()
        made.append(server)
        monkeypatch.setenv("DOCKER_HOST", f"unix://{path}")
        found = Engine()
        made.append(found)
        return found

    yield connect
    for one in reversed(made):
        if isinstance(one, Engine):
            one.close()
        else:
            one.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("host", "said"),
    [
        pytest.param(
            "unix:///nowhere/docker.sock",
            r"^No Docker engine listens at 'unix:///nowhere/docker.sock'\. Start it, with 'sudo ",
            id="no-socket",
        ),
        pytest.param(
            "tcp://127.0.0.1:1",
            r"^No Docker engine listens at 'tcp://127.0.0.1:1'\. Start it",
            id="refused",
        ),
        pytest.param(
            "nonsense",
            r"^No Docker engine can be reached at 'nonsense': .* DOCKER_HOST must be like unix:///",
            id="nonsense",
        ),
        pytest.param(
            "odd://me:hidden@far",
            r"^No Docker engine can be reached at 'odd://far': Invalid bind address",
            id="odd",
        ),
        pytest.param(
            "ssh://me:hidden@far",
            r"^Engines at ssh:// addresses cannot be used directly, got 'ssh://far'\. Forward",
            id="ssh",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_no_engine(host: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    with pytest.raises(EngineError, match=said) as caught:
        Engine()
    assert "hidden" not in str(caught.value)
    del caught
    gc.collect()  # the SDK does not close a socket that it could not connect


def test_no_permission_on_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/docker.sock")
    error = RuntimeError("Connection aborted", PermissionError(errno.EACCES, "Permission denied"))
    assert unreachable(error) == (
        "This user may not use the Docker engine at 'unix:///run/docker.sock'. Join its group with "
        "'sudo usermod -aG docker $USER' and log in again, or use a rootless engine."
    )


def test_an_engine_that_is_too_old(engine: Callable[..., Engine]) -> None:
    with pytest.raises(EngineError, match=r"^The engine is too old: it supports API 1\.24\. "):
        engine({"/version": (200, {"ApiVersion": "1.24"})})


def test_an_engine_that_is_too_old_for_the_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/docker.sock")
    error = ValueError("API versions below 1.24 are no longer supported by this library.")
    assert unreachable(error).startswith(
        "The engine at 'unix:///run/docker.sock' is too old: API versions below 1.24 are no longer"
    )


def test_an_image_that_does_not_exist(engine: Callable[..., Engine]) -> None:
    found = engine({"/images/mine:1/json": (404, {"message": "No such image: mine:1"})})
    with pytest.raises(EngineError) as caught:
        found.find_image("mine:1", pull=False)
    assert str(caught.value) == (
        "The engine has no image 'mine:1'. Build it with 'rule-runner docker build --tag mine:1', "
        "or pull it from a registry with --pull."
    )


def test_an_image_that_cannot_be_pulled(engine: Callable[..., Engine]) -> None:
    denied = {"message": "pull access denied for mine"}
    found = engine({"/images/create": (403, denied), "/images/mine:1/json": (404, denied)})
    with pytest.raises(EngineError, match=r"^Image 'mine:1' cannot be used: .* 'docker login'\.$"):
        found.find_image("mine:1", pull=True)


def test_an_engine_without_a_bridge_needs_a_network_by_name(engine: Callable[..., Engine]) -> None:
    with pytest.raises(EngineError, match=r"no bridge network, .* --network host\.$"):
        engine().network()


@pytest.mark.parametrize("name", ["bridge", "podman"])
def test_the_network_of_an_engine_with_a_bridge(name: str, engine: Callable[..., Engine]) -> None:
    found = engine({"/networks": (200, [{"Id": "1", "Name": name}])})
    assert found.network() == "bridge"


@pytest.mark.parametrize(
    ("option", "account"),
    [
        ("name=seccomp,profile=default", Account("7:8")),
        ("name=rootless", Account("0:0")),
        ("name=userns", Account("7:8", "host")),
    ],
)
def test_who_a_container_runs_as(
    option: str, account: Account, engine: Callable[..., Engine]
) -> None:
    found = engine({"/info": (200, {"SecurityOptions": [option]})})
    assert (found.account(7, 8), found.processors) == (account, 1)


def test_an_engine_on_this_machine_sees_its_files(
    engine: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = engine()
    assert (found.remote, found.processors) == (False, 3)
    monkeypatch.setenv("DOCKER_HOST", "tcp://localhost:2375")
    assert not found.remote
    monkeypatch.setenv("DOCKER_HOST", "tcp://build.example.org:2376")
    assert found.remote


def test_a_container_that_is_refused(engine: Callable[..., Engine]) -> None:
    said = 'invalid mount config for type "bind": bind source path does not exist: /out'
    found = engine({"/containers/create": (400, {"message": said})})
    with pytest.raises(EngineError, match=r"^The engine rejects .* /out\. The engine runs on an"):
        found.create(PLAN)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("network nosuch not found", "Choose a network that the engine has: --network."),
        ('exec: "evaluate": executable file not found', "Use an image of rule-runner: --image."),
        ("Range of CPUs is from 0.01 to 2.00", "Use fewer: --cpus."),
        ("container-init binary not found", "Install Podman's init: on Debian "),
    ],
)
def test_remedies_of_refusals(said: str, remedy: str) -> None:
    assert refused("Refused", RuntimeError(said)).startswith(f"Refused: {said}. {remedy}")


def test_a_refusal_without_a_remedy() -> None:
    assert refused("Refused", OSError("a\nb.")) == "Refused: a b."


def test_the_build_is_reported_line_by_line(engine: Callable[..., Engine], tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text("FROM scratch\n", encoding="utf-8")
    found = engine({"/build": (200, {"stream": "Step 1/1"})})
    assert [*found.build(tmp_path, "t", {"A": "b"}, None)] == [{"stream": "Step 1/1"}]
