"""HTTP servers on this machine that remember what they got, for as long as a block lasts."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Request:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass
class Answer:
    """What is answered; `act` may do anything else with the open connection instead."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    act: Callable[[BaseHTTPRequestHandler], None] | None = None


class Place(ThreadingHTTPServer):
    """Answers every POST with what `answer` says, and keeps the request."""

    daemon_threads = True

    def __init__(
        self, answer: Callable[[Request], Answer], address: str = "127.0.0.1", port: int = 0
    ) -> None:
        self.requests: list[Request] = []
        self.answer = answer
        super().__init__((address, port), _Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Be quiet about clients that hang up."""


class _Handler(BaseHTTPRequestHandler):
    server: Place
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(self.path, dict(self.headers.items()), body)
        self.server.requests.append(request)
        answer = self.server.answer(request)
        if answer.act:
            answer.act(self)
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving(
    answer: Callable[[Request], Answer] = lambda _: Answer(),
    certificate: Path | None = None,
    port: int = 0,
) -> Iterator[Place]:
    """Run a server on 127.0.0.1, by default on a free port.

    It uses TLS if it is given a file with key and certificate, which is presented
    whatever name is asked for.
    """
    place = Place(answer, port=port)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        place.socket = context.wrap_socket(place.socket, server_side=True)
    thread = threading.Thread(target=place.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield place
    finally:
        place.shutdown()
        place.server_close()
        thread.join()


Codes = Callable[[dict[str, Any]], str | None]


class EventBus:
    """Speaks PutEvents as EventBridge does, and fails the entries that `code` has a code for.

    A stand-in of ours for what moto cannot do: fail single entries, and show what came.

    Attributes
    ----------
    requests
        The entries of every request.
    taken
        The entries that were taken, in the order in which they came.
    """

    def __init__(self, code: Codes = lambda _: None) -> None:
        self.code = code
        self.requests: list[list[dict[str, Any]]] = []
        self.taken: list[dict[str, Any]] = []

    def answer(self, request: Request) -> Answer:
        assert request.headers["X-Amz-Target"] == "AWSEvents.PutEvents"
        entries = json.loads(request.body)["Entries"]
        self.requests.append(entries)
        answers = [self._answer(entry) for entry in entries]
        failed = sum("ErrorCode" in answer for answer in answers)
        body = json.dumps({"FailedEntryCount": failed, "Entries": answers}).encode()
        return Answer(body=body, headers={"Content-Type": "application/x-amz-json-1.1"})

    def _answer(self, entry: dict[str, Any]) -> dict[str, str]:
        code = self.code(entry)
        if code:
            return {"ErrorCode": code, "ErrorMessage": "As the test says."}
        self.taken.append(entry)
        return {"EventId": f"event-{len(self.taken)}"}
