"""Indexes of trials for the pages of `serve`, and a server of them with a scripted stream."""

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvicorn
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rule_core.clock import SystemClock
from rule_core.severity import Severity
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.records import RuleRecord, TrialRecord
from rule_runner.service.access.guard import POLICY
from rule_runner.service.application import build_application
from rule_runner.service.service import Service
from rule_runner.service.settings import ServiceSettings

NOW: Final = 1_790_000_000.0


def rule(
    name: str = "VanishingGradient", outcome: str = "NoIssuesFound", **more: Any
) -> RuleRecord:
    """Return a rule job of the index; an issue is a warning at step 130."""
    issue = {"severity": Severity.WARNING, "step": 130, "findings": 3}
    fields = {
        "name": name,
        "rule": name,
        "mode": "enforce",
        "outcome": outcome,
        "severity": None,
        "step": None,
        "judged": 20,
        "findings": 0,
        "last_step": 200,
    }
    fields |= issue if outcome == "IssuesFound" else {}
    fields |= more
    return RuleRecord(**({"counted_severity": fields["severity"]} | fields))


def add(
    database: WatchDatabase, path: str, rules: Sequence[RuleRecord] = (), **fields: Any
) -> TrialRecord:
    """Add a trial that was judged just now, or with other fields."""
    output = fields.pop("output", f"/out/{path.rpartition('/')[2]}")
    kinds = fields.pop("tensors", True), fields.pop("profiler", False)
    database.add([NewTrial(path, "/runs", *kinds, output)], NOW)
    trial = database.trial_at(path)
    assert trial is not None
    outcomes = [record.outcome for record in rules]
    outcome = "IssuesFound" if "IssuesFound" in outcomes else "NoIssuesFound" if rules else ""
    default = {"state": "judged", "outcome": outcome, "started_at": NOW, "ended_at": NOW}
    database.update(trial.id, **(default | fields))
    database.set_rules(trial.id, rules)
    again = database.trial(trial.id)
    assert again is not None
    return again


def service(database: Path) -> Service:
    """Return the service of an index."""
    return Service(settings=ServiceSettings(port=0), database=database, clock=SystemClock())


class Principal(NamedTuple):
    """Who asks."""

    name: str
    role: str


class Served:
    """A running server; tests script its stream and see what is posted.

    Attributes
    ----------
    streams, opened
        How many streams are open, and how many were.
    is_down, is_silent
        Whether streams are refused, and whether they have no pings.
    posted
        The address and body of each action.
    """

    def __init__(self, database: Path, role: str = "act") -> None:
        self.url = ""
        self.streams = 0
        self.opened = 0
        self.is_down = False
        self.is_silent = False
        self.posted: list[tuple[str, Any]] = []
        self._queues: set[asyncio.Queue[str]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        application = build_application(service(database), guarded=False)
        routes = application.router.routes
        routes.insert(0, Route("/api/v1/events", self._events))
        routes.insert(0, Route("/api/v1/trials/{action}", self._act, methods=["POST"]))
        self.application: ASGIApp = _with_policy(application, Principal("ann", role))

    def emit(self, kind: str, **data: Any) -> None:
        """Send an event to all streams."""
        text = f"event: {kind}\ndata: {json.dumps(data)}\n\n"
        assert self._loop is not None
        for queue in [*self._queues]:
            self._loop.call_soon_threadsafe(queue.put_nowait, text)

    def cut(self) -> None:
        """End all streams; while `is_down`, none is opened again."""
        assert self._loop is not None
        for queue in [*self._queues]:
            self._loop.call_soon_threadsafe(queue.put_nowait, "")

    async def _events(self, request: Request) -> Response:
        del request
        if self.is_down:
            return Response(status_code=503)
        self._loop = asyncio.get_running_loop()
        queue: asyncio.Queue[str] = asyncio.Queue()
        self._queues.add(queue)  # a browser is connected before the body begins
        return StreamingResponse(self._stream(queue), media_type="text/event-stream")

    async def _stream(self, queue: "asyncio.Queue[str]") -> AsyncIterator[str]:
        self.streams += 1
        self.opened += 1
        try:
            yield "event: open\ndata: {}\n\nevent: reload\ndata: {}\n\n"
            while text := await self._next(queue):
                yield text
        finally:
            self._queues.discard(queue)
            self.streams -= 1

    async def _next(self, queue: "asyncio.Queue[str]") -> str:
        """Return the next event, or a ping, by which the server notices a closed connection."""
        try:
            return await asyncio.wait_for(queue.get(), 0.1)
        except TimeoutError:
            return ": silent\n\n" if self.is_silent else "event: ping\ndata: {}\n\n"

    async def _act(self, request: Request) -> Response:
        self.posted.append((request.path_params["action"], await request.json()))
        return JSONResponse({})


@contextmanager
def served(database: Path) -> Iterator[Served]:
    """Serve an index on a free port."""
    own = Served(database)
    with listening(own.application, lifespan="off") as address:
        own.url = f"http://{address}"
        try:
            yield own
        finally:
            own.cut() if own.streams else None


@contextmanager
def listening(application: ASGIApp, send_buffer: int = 0, **options: Any) -> Iterator[str]:
    """Run an application in a thread, and return its address; 0 is the usual size of a buffer."""
    config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1, **options)
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        if send_buffer:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        try:
            while not server.started:
                thread.join(0.01)
                assert thread.is_alive(), "The server has not started."
            yield f"127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def _with_policy(application: ASGIApp, principal: "Principal") -> ASGIApp:
    """Add the security policy of the service, where the application does not, and who asks."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).setdefault("principal", principal)

        async def add_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = message["headers"]
                if not any(name == b"content-security-policy" for name, _ in headers):
                    headers.append((b"content-security-policy", POLICY.encode()))
            await send(message)

        await application(scope, receive, add_policy)

    return answer
