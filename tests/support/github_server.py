"""A stand-in for GitHub's REST interface on this machine: check runs, and comments of one issue."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_secret"
REPOSITORY = "team/models"


class GitHub(ThreadingHTTPServer):
    """Keeps what it got; `answers` are statuses that it gives first, in order."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.check_runs: list[dict[str, Any]] = []
        self.comments: dict[int, str] = {}
        self.answers: list[int] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: GitHub
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.loads(content or b"null")
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, {})
        elif self.server.answers:
            self._answer(self.server.answers.pop(0), {})
        else:
            self._answer(*self._result(body))

    do_GET = do_POST = do_PATCH = _handle

    def _result(self, body: Any) -> tuple[int, Any]:
        comments = self.server.comments
        parts = urlsplit(self.path)
        route = f"{self.command} {parts.path.removeprefix(f'/repos/{REPOSITORY}')}"
        if route == "POST /check-runs":
            self.server.check_runs.append(body)
            return 201, {"id": 1}
        if route == "POST /issues/7/comments":
            comments[len(comments) + 1] = body["body"]
            return 201, {"id": len(comments)}
        if route == "GET /issues/7/comments":
            query = parse_qs(parts.query)
            page, size = int(query["page"][0]), int(query["per_page"][0])
            listed = [{"id": key, "body": text} for key, text in comments.items()]
            return 200, listed[(page - 1) * size : page * size]
        if patched := re.fullmatch(r"PATCH /issues/comments/(\d+)", route):
            comments[int(patched[1])] = body["body"]
            return 200, {"id": int(patched[1])}
        return 404, {}

    def _answer(self, status: int, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[GitHub]:
    """Run the server as long as the block lasts."""
    with GitHub() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
