"""ServerRun: a run on a tracking server of MLflow, here a small server that speaks the same."""

from collections.abc import Iterator

import mlflow_runs
import pytest
from memory_store import MemoryStore
from mlflow_runs import ROWS, RUN, Logged, MlflowServer, run_files
from source_content import content, opened, read

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.mlflow.format import FORMAT
from rule_core.sources.mlflow.server_run import ServerRun
from rule_core.storage.base import StorageUnavailableError

NO_FILES = MemoryStore({})


@pytest.fixture
def server() -> Iterator[MlflowServer]:
    with mlflow_runs.serving() as running:
        running.rows = [*ROWS]
        yield running


def test_a_server_tells_what_the_files_hold(server: MlflowServer) -> None:
    index = read(FORMAT, NO_FILES, server.page)
    assert content(index) == content(read(FORMAT, MemoryStore(run_files(ROWS))))
    assert "inf" in {value for *_, value in content(index)}


def test_new_values_are_read_live(server: MlflowServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.sources.mlflow.server_run.PAGE", 2)
    server.rows = []
    index = opened(FORMAT, NO_FILES, server.page)
    for place in range(0, len(ROWS), 5):
        server.rows += ROWS[place : place + 5]
        index.refresh()
    assert content(index) == content(read(FORMAT, MemoryStore(run_files(ROWS))))
    source = index.sources[0]
    assert source.has_ended() is None
    server.status = "KILLED"
    index.refresh()
    assert source.has_ended() is True
    assert source.last_write() > mlflow_runs.STARTED / 1000


def test_the_server_of_the_environment(
    server: MlflowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.url)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "secret")
    assert len(content(read(FORMAT, NO_FILES, RUN))) == len(ROWS)
    sent = {name.lower(): value for name, value in server.headers[0].items()}
    assert sent["authorization"] == "Basic bWU6c2VjcmV0"
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    with pytest.raises(SMDebugValueError, match="set MLFLOW_TRACKING_URI"):
        opened(FORMAT, NO_FILES, RUN)


@pytest.mark.parametrize(
    ("address", "server_address"),
    [
        ("http://host:5000/#/experiments/1/runs/abc", "http://host:5000"),
        ("http://host:5000/#/experiments/1/runs/abc/model-metrics", "http://host:5000"),
        ("https://host/mlflow/#/experiments/1/runs/abc", "https://host/mlflow"),
        ("https://host/mlflow/experiments/1/runs/abc?o=1", "https://host/mlflow"),
    ],
)
def test_addresses_of_pages(address: str, server_address: str) -> None:
    run = ServerRun.at(address)
    assert run.description == f"MLflow run abc on the tracking server {server_address}"


def test_an_address_without_a_run_is_refused() -> None:
    with pytest.raises(SMDebugValueError, match="names no run"):
        ServerRun.at("http://host:5000/#/experiments/1")


@pytest.mark.parametrize(
    ("status", "answer", "words"),
    [
        (200, b"<html>", "not that of MLflow"),
        (200, b'{"run": 5}', "not that of MLflow"),
        (403, b"", "set MLFLOW_TRACKING_USERNAME"),
        (302, b"", "answers 302"),
        (500, b"", "answers 500"),
        (200, b" " * 4000, "exceeds"),
    ],
)
def test_wrong_answers_have_reasons(
    server: MlflowServer,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    answer: bytes,
    words: str,
) -> None:
    monkeypatch.setattr("rule_core.sources.mlflow.server_run.ANSWER_BYTES", 2000)
    server.answer = status, answer
    with pytest.raises(StorageUnavailableError, match=words):
        read(FORMAT, NO_FILES, server.page)


def test_a_run_that_the_server_does_not_have(server: MlflowServer) -> None:
    index = read(FORMAT, NO_FILES, server.page.replace(RUN, "a" * 32))
    assert index.file_problems.problems


def test_a_server_that_is_down_is_transient(server: MlflowServer) -> None:
    page = server.page.replace(str(server.server_port), "1")
    with pytest.raises(StorageUnavailableError, match="does not answer") as failure:
        read(FORMAT, NO_FILES, page)
    assert failure.value.transient


def test_values_that_are_not_numbers_are_skipped(
    server: MlflowServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.rows = [Logged("loss", 1, 0.5, 1)]
    reply = server.reply
    history = {"metrics": [{"value": "x"}, {"value": 0.5, "step": 3}]}
    monkeypatch.setattr(
        server,
        "reply",
        lambda path, asked: (200, history) if "history" in path else reply(path, asked),
    )
    index = read(FORMAT, NO_FILES, server.page)
    assert [*index.steps] == [3]
    assert index.file_problems.problems
