"""Streams: server-sent events about all trials."""

from collections.abc import AsyncIterator
from typing import Final

from sse_starlette import EventSourceResponse, ServerSentEvent
from sse_starlette.sse import SendTimeoutError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rule_runner.logs import get_logger
from rule_runner.service.access.guard import is_let_in
from rule_runner.service.changes import END
from rule_runner.service.responses import service_of

_log: Final = get_logger(__name__)
_PING_S: Final = 15
SEND_S: Final = 30.0  # until a client that takes nothing is disconnected
_RETRY_MS: Final = 2000
LEASE_S: Final = 15.0  # of a stream, until it is checked who follows it


class EventStream(EventSourceResponse):
    """A stream that is given up, which closes its connection, if its client takes nothing."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        except SendTimeoutError:
            _log.info("slow_client_disconnected", client=scope["client"][0])


async def events(request: Request) -> Response:
    """Answer ``GET /api/v1/events``: what changes in the index, as it changes."""
    service = service_of(request)
    if len(service.changes) >= service.settings.max_streams:
        msg = f"There are {service.settings.max_streams} event streams already. Try again later."
        raise HTTPException(503, msg, {"Retry-After": "30"})
    missed = "last-event-id" in request.headers

    async def sent() -> AsyncIterator[ServerSentEvent]:
        async with service.changes.stream() as queue:
            yield ServerSentEvent(event="reload" if missed else "open", data="{}", retry=_RETRY_MS)
            ends = service.clock.monotonic() + LEASE_S
            while (event := await queue.get()).type != END:
                if (now := service.clock.monotonic()) >= ends:
                    if not is_let_in(request):
                        return
                    ends = now + LEASE_S
                yield ServerSentEvent(event=event.type, data=event.data, id=str(event.revision))

    return EventStream(sent(), ping=_PING_S, send_timeout=SEND_S)
