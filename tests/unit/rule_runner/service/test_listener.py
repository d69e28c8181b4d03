"""A listener closes what keeps it waiting, and always has room for one more connection."""

import asyncio
import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.request import urlopen

import pytest
import served
from structlog.testing import capture_logs

from rule_runner.commands.serve import _Server
from rule_runner.index.database import WatchDatabase
from rule_runner.service.listener import WAIT_S, Listener, handle_exception

PATIENCE_S: Final = 30
HEAD: Final = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
POST: Final = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf"
STREAM: Final = b"GET /api/v1/events HTTP/1.1\r\nHost: localhost\r\n\r\n"


@contextmanager
def serving(folder: Path, clock: Any, limit: int = 20) -> Iterator[tuple[str, int]]:
    """Run the server of `serve` with a limit of connections, and return its address."""
    with WatchDatabase.empty(folder / "index.sqlite") as database:
        listening = socket.create_server(("127.0.0.1", 0))
        with Listener(listening, limit, clock) as listener:
            address = listener.getsockname()
            server = _Server(served.service(database.path), listener)
            thread = threading.Thread(target=server.run, args=([listener],))
            thread.start()
            try:
                yield address
            finally:
                server.stop()
                thread.join()


def client(address: tuple[str, int], sent: bytes = b"") -> socket.socket:
    """Return a connection through which something was sent."""
    connection = socket.create_connection(address, PATIENCE_S)
    connection.sendall(sent)
    return connection


def is_healthy(address: tuple[str, int]) -> bool:
    """Return whether the service answers over a new connection."""
    with urlopen(f"http://127.0.0.1:{address[1]}/healthz", timeout=PATIENCE_S) as answer:
        return bool(answer.status == 200)


def is_closed(connection: socket.socket, wait_s: float = 0) -> bool:
    """Return whether the service has closed a connection, or does so now."""
    connection.settimeout(wait_s)
    try:
        while connection.recv(4096):
            pass
    except (BlockingIOError, TimeoutError):
        return False
    except ConnectionResetError:
        pass
    return True


def is_answered(address: tuple[str, int]) -> bool:
    """Return whether the service answers a new client, and does not disconnect it."""
    with suppress(ConnectionError), client(address, HEAD + b"\r\n") as connection:
        return connection.recv(4096).startswith(b"HTTP/1.1 200")
    return False


def is_closed_in_time(connection: socket.socket, clock: Any) -> bool:
    """Return whether a connection is closed once its time has passed."""
    for _ in range(100):
        clock.now += WAIT_S
        if is_closed(connection, 0.2):
            return True
    return False


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(HEAD, id="half-a-head"),
        pytest.param(POST, id="half-a-body"),
        pytest.param(HEAD + b"\r\n" + HEAD, id="half-a-second-head"),
    ],
)
def test_client_that_does_not_go_on_is_disconnected(
    tmp_path: Path, clock: Any, sent: bytes
) -> None:
    with serving(tmp_path, clock) as address, client(address, sent) as silent:
        assert is_closed_in_time(silent, clock)


def test_client_of_a_stream_stays(tmp_path: Path, clock: Any) -> None:
    with serving(tmp_path, clock) as address, client(address, STREAM) as stream:
        assert stream.recv(4096)
        with client(address) as silent:
            assert is_closed_in_time(silent, clock)
        assert not is_closed(stream)


def test_new_client_is_served_while_others_hold_all_connections(tmp_path: Path, clock: Any) -> None:
    with ExitStack() as stack, capture_logs() as logs:
        address = stack.enter_context(serving(tmp_path, clock, limit=40))
        held = [stack.enter_context(client(address)) for _ in range(100)]
        assert is_healthy(address)
        assert sum(map(is_closed, held)) >= 60
        assert is_healthy(address)
    assert [log["reason"] for log in logs if log["event"] == "connections_limited"] == [
        "The limit of 40 connections is reached."
    ]


def test_new_client_is_disconnected_while_all_others_are_served(tmp_path: Path, clock: Any) -> None:
    with ExitStack() as stack:
        address = stack.enter_context(serving(tmp_path, clock, limit=2))
        streams = [stack.enter_context(client(address, STREAM)) for _ in range(2)]
        assert all(stream.recv(4096) for stream in streams)
        assert is_closed(stack.enter_context(client(address)), PATIENCE_S)
        assert not any(map(is_closed, streams))
        streams[0].close()
        while not is_answered(address):  # until the service has noticed it
            pass


def test_exhausted_descriptors_are_logged_once_a_minute(
    clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop asks again after a second, and some versions at once."""

    def fail(_: socket.socket) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket.socket, "accept", fail)
    listening = socket.create_server(("127.0.0.1", 0))
    with Listener(listening, 10, clock) as listener, capture_logs() as logs:
        for _ in range(61):
            with pytest.raises(OSError, match="Too many open files"):
                listener.accept()
            with pytest.raises(BlockingIOError):
                listener.accept()
            clock.now += 1
    assert [log["reason"] for log in logs] == [
        "A connection cannot be accepted: Too many open files."
    ] * 2
    loop = asyncio.new_event_loop()
    reported: list[Any] = []
    monkeypatch.setattr(loop, "default_exception_handler", reported.append)
    for error in (OSError(errno.EMFILE, ""), ValueError("another")):
        handle_exception(loop, {"message": "", "exception": error})
    loop.close()
    assert [str(context["exception"]) for context in reported] == ["another"]
