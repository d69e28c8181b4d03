"""Event streams over real sockets: a day of one page, revoked tokens, and slow clients."""

import json
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from threading import Event
from typing import Any, BinaryIO, Final
from urllib.parse import urlencode

import pytest
from served import add, listening, rule
from structlog.testing import capture_logs

from rule_runner.index.database import WatchDatabase
from rule_runner.index.reader import IndexReader
from rule_runner.service.access.principals import SESSION_S
from rule_runner.service.access.tokens import Role, TokenFile
from rule_runner.service.api import streams
from rule_runner.service.application import build_application
from rule_runner.service.changes import Changes
from rule_runner.service.service import Service
from rule_runner.service.settings import ServiceSettings

EVENTS: Final = "/api/v1/events"
PATIENCE_S: Final = 30.0
HOUR_S: Final = 3600.0
LOOK_S: Final = 0.02
TRIALS: Final = 100
BUFFER: Final = 4096  # bytes of a socket
FLOODS: Final = 16


class LiveService:
    """A service over an index with some trials, whose time passes as a test says.

    It is closed with `stack`, and so are the connections to it.
    """

    def __init__(self, folder: Path, clock: Any, stack: ExitStack, **fields: Any) -> None:
        self._stack = stack
        self.index = stack.enter_context(WatchDatabase(folder / "watch.sqlite"))
        for number in range(TRIALS):
            add(self.index, f"/runs/{number}")
        settings = ServiceSettings(port=0, **fields)
        self.service = Service(settings=settings, database=self.index.path, clock=clock)
        vars(self.service)["changes"] = Changes(self.service.index, LOOK_S)
        self.address = ""
        self._step = 0

    def find(self, trials: int = 1) -> None:
        """Let the first trials get a finding at a new step, as one change of the index."""
        self._step += 1
        with self.index.transaction():
            for number in range(1, trials + 1):
                self.index.set_rules(number, [rule(outcome="IssuesFound", step=self._step)])

    def ask(
        self, path: str, method: str = "GET", body: str | None = None, **headers: str
    ) -> HTTPResponse:
        """Return the answer to a request, of which only the head is read."""
        connection = HTTPConnection(self.address, timeout=PATIENCE_S)
        self._stack.callback(connection.close)
        connection.request(method, path, body, headers)
        return connection.getresponse()

    def until_streams(self, count: int) -> None:
        """Wait until so many streams are open."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.service.changes) != count:
            assert time.monotonic() < deadline, f"{len(self.service.changes)} streams are open."
            Event().wait(LOOK_S)


Start = Callable[..., LiveService]


@pytest.fixture
def start(tmp_path: Path, clock: Any) -> Iterator[Start]:
    with ExitStack() as stack:

        def started(send_buffer: int = 0, **fields: Any) -> LiveService:
            live = LiveService(tmp_path, clock, stack, **fields)
            application = build_application(live.service)
            live.address = stack.enter_context(listening(application, send_buffer))
            return live

        yield started


def until(stream: Iterable[bytes], kind: str) -> bool:
    """Read a stream until an event; return whether it came before the end."""
    return any(line == f"event: {kind}\r\n".encode() for line in stream)


def test_a_page_that_is_open_for_a_day_logs_in_once_more(
    start: Start, tmp_path: Path, clock: Any
) -> None:
    secret = TokenFile(tmp_path / "tokens.json").add("ann", Role.READ)
    live = start(tokens=tmp_path / "tokens.json")

    def log_in() -> dict[str, str]:
        answer = live.ask("/login", "POST", urlencode({"token": secret}))
        assert answer.status == 303
        return {"Cookie": answer.headers["set-cookie"].partition(";")[0]}

    session, logins = log_in(), 1
    program = live.ask(EVENTS, Authorization=f"Bearer {secret}")
    stream = live.ask(EVENTS, **session)
    assert until(stream, "reload")
    for hour in range(1, 25):
        clock.now += HOUR_S
        live.find()
        assert until(program, "finding")
        if until(stream, "finding"):
            continue
        assert live.ask(EVENTS, **session).status == 401
        assert hour * HOUR_S == logins * SESSION_S
        session, logins = log_in(), logins + 1
        stream = live.ask(EVENTS, **session, **{"Last-Event-ID": "1"})
        assert until(stream, "reload")
        live.find()
        assert until(stream, "finding")
        assert until(program, "finding")
    assert logins == 3


def test_a_stream_ends_when_its_token_is_revoked(start: Start, tmp_path: Path, clock: Any) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    secrets = {name: tokens.add(name, Role.READ) for name in ("ann", "bob")}
    live = start(tokens=tokens.path)
    ann, bob = (live.ask(EVENTS, Authorization=f"Bearer {secret}") for secret in secrets.values())
    live.until_streams(2)
    assert until(bob, "reload")
    tokens.revoke("ann")
    clock.now += streams.LEASE_S
    live.find()
    assert not until(ann, "finding")
    assert until(bob, "finding")
    live.until_streams(1)
    tokens.path.write_text("damaged")
    clock.now += streams.LEASE_S
    live.find()
    assert not until(bob, "finding")


def test_asking_for_the_head_of_a_stream_opens_none(start: Start) -> None:
    live = start(max_streams=1)
    for _ in range(3):
        assert live.ask(EVENTS, "HEAD").status == 200
    assert len(live.service.changes) == 0
    assert until(live.ask(EVENTS), "open")
    refused = live.ask(EVENTS)
    assert (refused.status, b"1 event streams already" in refused.read()) == (503, True)


def test_a_token_holds_a_quarter_of_the_streams_at_most(start: Start, tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    ann, bob = (
        {"Authorization": f"Bearer {tokens.add(name, Role.READ)}"} for name in ("ann", "bob")
    )
    live = start(tokens=tokens.path, max_streams=8)
    own = [live.ask(EVENTS, **ann) for _ in range(2)]
    assert all(until(stream, "open") for stream in own)
    refused = live.ask(EVENTS, **ann)
    assert (refused.status, refused.headers["retry-after"]) == (429, "30")
    assert b"'ann' has 2 of the 8 event streams already." in refused.read()
    assert until(live.ask(EVENTS, **bob), "open")


def test_everybody_on_an_open_service_shares_all_streams(start: Start) -> None:
    live = start(max_streams=2)
    streams = [live.ask(EVENTS) for _ in range(2)]
    assert all(until(stream, "open") for stream in streams)
    assert live.ask(EVENTS).status == 503


def test_a_client_that_lists_before_it_opens_a_stream_misses_nothing(start: Start) -> None:
    live = start()
    revision = json.load(live.ask("/api/v1/trials"))["revision"]
    live.find()
    assert until(live.ask(EVENTS, **{"Last-Event-ID": revision}), "finding")


def test_a_service_that_cannot_follow_its_index_is_not_ready(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = start()
    stream = live.ask(EVENTS)
    assert until(stream, "reload")
    with monkeypatch.context() as patch:
        patch.setattr(IndexReader, "changes_since", None)
        assert not until(stream, "finding")  # up to the end
        answer = live.ask("/readyz")
        assert (answer.status, b"because of a defect" in answer.read()) == (503, True)
        assert live.ask(EVENTS).status == 503
    while live.ask("/readyz").status != 200:
        Event().wait(LOOK_S)
    assert until(live.ask(EVENTS), "reload")


@contextmanager
def slow_client(live: LiveService) -> Iterator[BinaryIO]:
    """Open a stream with small buffers, of which nothing is read at first."""
    host, _, port = live.address.partition(":")
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        client.settimeout(PATIENCE_S)
        client.connect((host, int(port)))
        client.sendall(f"GET {EVENTS} HTTP/1.1\r\nHost: {live.address}\r\n\r\n".encode())
        with client.makefile("rb") as answer:
            yield answer


def flood(live: LiveService, stream: HTTPResponse) -> None:
    """Let all trials get findings, and wait until the stream has them."""
    live.find(TRIALS)
    for _ in range(TRIALS):
        assert until(stream, "finding")


def test_a_slow_client_delays_nobody_and_is_told_to_reload(start: Start) -> None:
    live = start(send_buffer=BUFFER)
    quick = live.ask(EVENTS)
    assert until(quick, "reload")
    with slow_client(live) as slow:
        live.until_streams(2)
        for _ in range(FLOODS):
            flood(live, quick)
        assert until(slow, "reload")  # at the beginning
        findings = 0
        while (line := slow.readline()) != b"event: reload\r\n":
            findings += line == b"event: finding\r\n"
        assert 0 < findings < FLOODS * TRIALS // 2


def test_a_client_that_takes_nothing_is_disconnected(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "SEND_S", 0.5)
    live = start(send_buffer=BUFFER)
    quick = live.ask(EVENTS)
    assert until(quick, "reload")
    with slow_client(live) as slow, capture_logs() as logs:
        live.until_streams(2)
        while len(live.service.changes) == 2:
            flood(live, quick)
        assert slow.read()  # up to the end
    assert [entry["event"] for entry in logs] == ["slow_client_disconnected"]
