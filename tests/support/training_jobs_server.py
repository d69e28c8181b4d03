"""A small HTTP endpoint of our own in place of SageMaker: training jobs are listed and stopped.

moto's server does not answer StopTrainingJob; this one does, and keeps what it was asked.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PAGE = 2  # jobs


class TrainingJobs:
    """What the endpoint holds, and what it was asked.

    Attributes
    ----------
    jobs
        Status by name, the newest first.
    asked
        Operation and request of each call.
    faults
        What the next calls of an operation answer instead: status, code, message.
    hangs
        Operations that are not answered while the server runs.
    """

    def __init__(self, **jobs: str) -> None:
        self.jobs = {name.replace("_", "-"): status for name, status in jobs.items()}
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, list[tuple[int, str, str]]] = {}
        self.hangs: set[str] = set()
        self.called = threading.Event()
        self.over = threading.Event()
        self.url = ""

    @property
    def stopped(self) -> list[str]:
        """The jobs that were stopped, in order."""
        return [body["TrainingJobName"] for verb, body in self.asked if verb == "StopTrainingJob"]

    def answer(self, verb: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and body of an answer."""
        self.asked.append((verb, body))
        self.called.set()
        if verb in self.hangs:
            self.over.wait()
        if self.faults.get(verb):
            status, code, message = self.faults[verb].pop(0)
            return status, {"__type": code, "message": message}
        return self._listed(body) if verb == "ListTrainingJobs" else self._stop(body)

    def _listed(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        found = [
            {
                "TrainingJobName": name,
                "TrainingJobArn": name,
                "CreationTime": 0,
                "TrainingJobStatus": status,
            }
            for name, status in self.jobs.items()
            if body["NameContains"] in name and body.get("StatusEquals", status) == status
        ]
        start = int(body.get("NextToken", "0"))
        more = {"NextToken": str(start + PAGE)} if len(found) > start + PAGE else {}
        return 200, {"TrainingJobSummaries": found[start : start + PAGE], **more}

    def _stop(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        name = body["TrainingJobName"]
        status = self.jobs.get(name)
        if status is None:
            return 400, {"__type": "ResourceNotFound", "message": "Requested resource not found."}
        if status != "InProgress":
            text = f"The request was rejected because the training job is in status {status}."
            return 400, {"__type": "ValidationException", "message": text}
        self.jobs[name] = "Stopping"
        return 200, {}


@contextmanager
def serving(held: TrainingJobs) -> Iterator[TrainingJobs]:
    """Run the endpoint on a free port; its address is in `held.url`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            verb = self.headers["X-Amz-Target"].rpartition(".")[2]
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = held.answer(verb, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/x-amz-json-1.1")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

        def handle(self) -> None:
            with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has gone
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    held.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield held
    finally:
        held.over.set()
        server.shutdown()
        server.server_close()
        thread.join()
