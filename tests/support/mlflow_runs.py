"""Runs of MLflow, as its stores write them, and a server that speaks a part of its interface."""

import base64
import json
import math
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

RUN = "0123456789abcdef0123456789abcdef"
STARTED = 1_700_000_000_000  # milliseconds
LARGEST = 1.7976931348623157e308


class Logged(NamedTuple):
    """A number as it was logged; `time` in milliseconds after the start."""

    name: str
    time: int
    value: float
    step: int

    @property
    def line(self) -> bytes:
        """The line of a metric file."""
        return f"{STARTED + self.time} {self.value} {self.step}\n".encode()


def meta(status: int = 1, run: str = RUN) -> bytes:
    """Return ``meta.yaml`` of a run; status 1 is RUNNING, 3 FINISHED."""
    ended = STARTED + 99_000 if status > 2 else "null"
    return (
        f"artifact_uri: file:///w/mlruns/1/{run}/artifacts\nend_time: {ended}\n"
        f"experiment_id: '1'\nlifecycle_stage: active\nrun_id: {run}\nrun_name: calm-owl-3\n"
        f"start_time: {STARTED}\nstatus: {status}\ntags: []\nuser_id: me\n"
    ).encode()


def run_files(rows: Sequence[Logged], folder: str = "", status: int = 1) -> dict[str, bytes]:
    """Return the files of a run by key."""
    files = {f"{folder}meta.yaml": meta(status), f"{folder}params/lr": b"0.1"}
    for row in rows:
        key = f"{folder}metrics/{row.name}"
        files[key] = files.get(key, b"") + row.line
    return files


_SCHEMA = """
CREATE TABLE runs (run_uuid VARCHAR(32) NOT NULL PRIMARY KEY, name VARCHAR(250),
    status VARCHAR(9), start_time BIGINT, end_time BIGINT, lifecycle_stage VARCHAR(20));
CREATE TABLE metrics ("key" VARCHAR(250) NOT NULL, value FLOAT NOT NULL, timestamp BIGINT NOT NULL,
    run_uuid VARCHAR(32) NOT NULL, step BIGINT DEFAULT '0' NOT NULL,
    is_nan BOOLEAN DEFAULT '0' NOT NULL,
    CONSTRAINT metric_pk PRIMARY KEY ("key", timestamp, step, run_uuid, value, is_nan));
CREATE INDEX index_metrics_run_uuid ON metrics (run_uuid);
"""


def add_run(path: Path, run: str = RUN, status: str = "RUNNING", start: int = STARTED) -> None:
    """Add a run to a database, which is made if missing."""
    with closing(sqlite3.connect(path)) as database:
        if not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            database.executescript(_SCHEMA)
        values = (run, "calm-owl-3", status, start, None, "active")
        database.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?)", values)
        database.commit()


def add_rows(path: Path, rows: Sequence[Logged], run: str = RUN) -> None:
    """Add numbers to a run in a database."""
    with closing(sqlite3.connect(path)) as database:
        for row in rows:
            value, is_nan = row.value, math.isnan(row.value)
            if is_nan:
                value = 0.0
            elif math.isinf(value):
                value = math.copysign(LARGEST, value)
            values = (row.name, value, STARTED + row.time, run, row.step, is_nan)
            database.execute("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", values)
        database.commit()


def end_run(path: Path, status: str = "FINISHED", run: str = RUN) -> None:
    """End a run in a database."""
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE runs SET status = ? WHERE run_uuid = ?", (status, run))
        database.commit()


class MlflowServer(ThreadingHTTPServer):
    """Speaks the part of MLflow's REST interface that is read, over `rows` of one run.

    Attributes
    ----------
    answer
        Answers everything instead of the run, if set: status and content.
    tags
        The tags that were set.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        self.rows: list[Logged] = []
        self.status = "RUNNING"
        self.answer: tuple[int, bytes] | None = None
        self.headers: list[dict[str, str]] = []
        self.tags: dict[str, str] = {}
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def page(self) -> str:
        """The address of the run's page."""
        return f"{self.url}/#/experiments/1/runs/{RUN}"

    def reply(self, path: str, asked: dict[str, str]) -> tuple[int, Any]:
        """Return the status and content of an answer."""
        if asked.get("run_id") != RUN:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST"}
        if path.endswith("/runs/set-tag"):
            self.tags[asked["key"]] = asked["value"]
            return 200, {}
        if path.endswith("/runs/get"):
            names = dict.fromkeys(row.name for row in self.rows)
            data = {"metrics": [{"key": name, "value": 0.0} for name in names]}
            tags = [{"key": key, "value": value} for key, value in self.tags.items()]
            info = {"run_id": RUN, "status": self.status}
            return 200, {"run": {"info": info, "data": {**data, "tags": tags}}}
        rows = sorted(
            (row.time, row.step, row.value) for row in self.rows if row.name == asked["metric_key"]
        )
        token = asked.get("page_token")
        start = json.loads(base64.b64decode(token))["offset"] if token else 0
        end = start + int(asked.get("max_results", 25_000))
        content: dict[str, Any] = {
            "metrics": [
                {"key": asked["metric_key"], "value": _number(value), "timestamp": STARTED + time}
                | ({"step": step} if step else {})
                for time, step, value in rows[start:end]
            ]
        }
        if end < len(rows):
            content["next_page_token"] = base64.b64encode(b'{"offset": %d}' % end).decode()
        return 200, content


def _number(value: float) -> float | str:
    if math.isnan(value):
        return "NaN"
    return math.copysign(LARGEST, value) if math.isinf(value) else value


class _Handler(BaseHTTPRequestHandler):
    server: MlflowServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._reply(parts.path, {name: values[0] for name, values in parse_qs(parts.query).items()})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        self._reply(self.path, json.loads(content))

    def _reply(self, path: str, asked: dict[str, str]) -> None:
        self.server.headers.append(dict(self.headers.items()))
        status, content = self.server.answer or self.server.reply(path, asked)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(content if isinstance(content, bytes) else json.dumps(content).encode())

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@contextmanager
def serving(port: int = 0) -> Iterator[MlflowServer]:
    """Run a server, by default on a free port."""
    with MlflowServer(port) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


ROWS = [
    row
    for step in range(6)
    for row in (
        Logged("train/loss", 10 * step, 1 / (step + 1), step),
        Logged("grad_norm", 10 * step, math.inf if step == 3 else 1.0, step),
        Logged("val_loss", 10 * step + 4, math.nan if step == 4 else 2.0, step),
    )
]

# A program that logs a run with MLflow itself, and prints its experiment and ID.
WRITER = """
import math, mlflow, sys, time
mlflow.set_tracking_uri(sys.argv[1])
with mlflow.start_run() as run:
    for step in range(5):
        mlflow.log_metric("train/loss", math.nan if step == 2 else 1 / (step + 1), step=step)
        mlflow.log_metrics({"val_loss": 1.0, "grad_norm": math.inf if step == 3 else 0.5}, step)
    time.sleep(0.01)  # times are in milliseconds: the order within one is unknown
    mlflow.log_metric("accuracy", 0.25)
print(run.info.experiment_id, run.info.run_id)
"""


def check_written(content: list[tuple[int, str, str, str]]) -> None:
    """Check what `WRITER` wrote."""
    values = {(name, step): value for step, _, name, value in content}
    assert values["train/loss", 2] == "nan"
    assert values["grad_norm", 3] == "inf"
    assert values["val_loss", 4] == "1.0"
    assert values["accuracy", 4] == "0.25"
    assert len(values) == 16
