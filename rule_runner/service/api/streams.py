"""Streams: server-sent events about all trials."""

import math
from collections.abc import AsyncIterator
from functools import partial
from typing import Final

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rule_runner.logs import get_logger
from rule_runner.service.access.guard import is_let_in
from rule_runner.service.changes import END, StreamQueue
from rule_runner.service.responses import service_of

_log: Final = get_logger(__name__)
_PING_S: Final = 15
SEND_S: Final = 30.0  # until a client that takes nothing is disconnected
_RETRY_MS: Final = 2000
LEASE_S: Final = 15.0  # of a stream, until it is checked who follows it
_PRINCIPAL_SHARE: Final = 0.25  # of all streams
_RETRY_AFTER: Final = {"Retry-After": "30"}


class EventStream(Response):
    """A stream of events, which begins when the index has been read."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self._request = request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events, until the client takes nothing."""
        owner = _checked_owner(self._request)
        last_id = self._request.headers.get("last-event-id", "")
        async with service_of(self._request).changes.stream(owner, last_id) as queue:
            stream = EventSourceResponse(
                _sent(self._request, queue),
                ping=_PING_S,
                # Scripts of pages do not see the usual comment.
                ping_message_factory=partial(ServerSentEvent, event="ping", data="{}"),
                send_timeout=SEND_S,
            )
            try:
                await stream(scope, receive, send)
            except SendTimeoutError:
                _log.info("slow_client_disconnected", client=scope["client"][0])


async def events(request: Request) -> Response:
    """Answer ``GET /api/v1/events``: what changes in the index, as it changes."""
    if request.method == "HEAD":
        return Response(media_type="text/event-stream")
    return EventStream(request)


def _checked_owner(request: Request) -> str:
    """Return who opens a stream; "" if everybody is the same.

    Raises
    ------
    HTTPException
        If too many are open.
    """
    service = service_of(request)
    most = service.settings.max_streams
    if len(service.changes) >= most:
        raise HTTPException(
            503, f"There are {most} event streams already. Try again later.", _RETRY_AFTER
        )
    principal = getattr(request.state, "principal", None)
    if principal is None or service.settings.is_open:
        return ""
    share = math.ceil(_PRINCIPAL_SHARE * most)
    if service.changes.count(principal.name) >= share:
        raise HTTPException(
            429,
            f"{principal.name!r} has {share} of the {most} event streams already. Close one, or "
            "try again later.",
            _RETRY_AFTER,
        )
    return str(principal.name)


async def _sent(request: Request, queue: StreamQueue) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a queue while the client would still be let in."""
    clock = service_of(request).clock
    yield ServerSentEvent(event="open", data="{}", retry=_RETRY_MS)
    ends = clock.monotonic() + LEASE_S
    while (event := await queue.get()).type != END:
        if (now := clock.monotonic()) >= ends:
            if not is_let_in(request):
                return
            ends = now + LEASE_S
        yield ServerSentEvent(event=event.type, data=event.data, id=event.id)
