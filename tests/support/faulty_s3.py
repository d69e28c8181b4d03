"""A server in front of that of S3 which spoils answers as networks and busy services do."""

import http.client
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

Fault = Callable[["Handler"], None]


class FaultyS3(ThreadingHTTPServer):
    """Passes requests on to S3, but for the next ones for which a fault is due.

    Attributes
    ----------
    due
        What happens to the next requests, one each; those after them are passed on.
    asked
        The requests: method, path with its question, and headers.
    always
        What happens to all requests whose path holds a text.
    answered
        The status of each answer that was begun.
    """

    daemon_threads = True

    def __init__(self, behind: str) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.behind = urlsplit(behind).netloc
        self.due: list[Fault] = []
        self.always: dict[str, Fault] = {}
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.answered: list[int] = []
        self.ended = threading.Event()

    @property
    def endpoint(self) -> str:
        """Return the server's address."""
        return f"http://127.0.0.1:{self.server_port}"

    def forget(self) -> None:
        """Pass everything on from now, and forget what was asked."""
        self.due.clear()
        self.always.clear()
        self.asked.clear()
        self.answered.clear()

    def verbs(self) -> list[str]:
        """Return method and path of each request, without its question."""
        return [f"{method} {path.partition('?')[0]}" for method, path, _ in self.asked]

    def handle_error(self, request: object, client_address: object) -> None:
        """Log no broken connections: breaking them is its purpose."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: FaultyS3

    def answer(self) -> None:
        """Answer a request, or spoil it."""
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): text for name, text in self.headers.items()}
        self.server.asked.append((self.command, self.path, headers))
        due = [fault for part, fault in self.server.always.items() if part in self.path]
        fault = self.server.due.pop(0) if self.server.due else passes
        (due[0] if due else fault)(self)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = answer

    def ask_behind(self) -> tuple[int, list[tuple[str, str]], bytes]:
        """Return status, headers and body of S3's own answer."""
        behind = http.client.HTTPConnection(self.server.behind, timeout=30)
        try:
            behind.request(self.command, self.path, self.body, dict(self.headers.items()))
            response = behind.getresponse()
            body = response.read()
        finally:
            behind.close()
        left_out = {"transfer-encoding", "connection", "content-length"}
        headers = [header for header in response.getheaders() if header[0].lower() not in left_out]
        length = response.getheader("Content-Length") if self.command == "HEAD" else str(len(body))
        return response.status, [*headers, ("Content-Length", length or "0")], body

    def send(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        """Send an answer."""
        self.server.answered.append(status)
        self.send_response_only(status)
        for name, text in headers:
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body)

    def break_off(self) -> None:
        """End the connection, as a machine does that has forgotten it."""
        now = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, now)
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def passes(handler: Handler) -> None:
    """Answer as S3 does."""
    handler.send(*handler.ask_behind())


def resets(handler: Handler) -> None:
    """End the connection before S3 hears of the request."""
    handler.break_off()


def loses(handler: Handler) -> None:
    """Have S3 do what is asked, and end the connection before it can say so."""
    handler.ask_behind()
    handler.break_off()


def hangs(handler: Handler) -> None:
    """Answer nothing for as long as the server runs."""
    handler.server.ended.wait()
    handler.break_off()


def pages_of(number: int) -> Fault:
    """Return what answers a listing with so many keys at most."""

    def fault(handler: Handler) -> None:
        handler.path += f"&max-keys={number}"
        passes(handler)

    return fault


def torn(after: int) -> Fault:
    """Return what ends the connection after some bytes of the body."""

    def fault(handler: Handler) -> None:
        status, headers, body = handler.ask_behind()
        handler.send(status, headers, body[:after])
        handler.close_connection = True

    return fault


def flips_a_bit(handler: Handler) -> None:
    """Answer with a body that was damaged on its way."""
    status, headers, body = handler.ask_behind()
    handler.send(status, headers, bytes([body[0] ^ 1]) + body[1:])


def shortened(to: int) -> Fault:
    """Return what answers with fewer bytes than are said to be of the range, and calls them all."""

    def fault(handler: Handler) -> None:
        status, headers, body = handler.ask_behind()
        headers = [header for header in headers if header[0].lower() != "content-length"]
        handler.send(status, [*headers, ("Content-Length", str(to))], body[:to])

    return fault


def says(status: int, code: str, message: str = "", **headers: str) -> Fault:
    """Return what answers with an error of S3."""
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    ).encode()
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]

    def fault(handler: Handler) -> None:
        length = ("Content-Length", str(len(text)))
        handler.send(status, [*named, ("Content-Type", "application/xml"), length], text)

    return fault


def answers(status: int, body: bytes, **headers: str) -> Fault:
    """Return what answers with some body."""
    named = [(name.replace("_", "-"), value) for name, value in headers.items()]

    def fault(handler: Handler) -> None:
        handler.send(status, [*named, ("Content-Length", str(len(body)))], body)

    return fault


SLOW_DOWN = says(503, "SlowDown", "Please reduce your request rate.")


@contextmanager
def serving(behind: str) -> Iterator[FaultyS3]:
    """Run a server in front of another."""
    server = FaultyS3(behind)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()
