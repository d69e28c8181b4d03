"""Streams: server-sent events about all trials."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Final

from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rule_runner.service.changes import END
from rule_runner.service.responses import service_of

_PING_S: Final = 15
_SEND_S: Final = 30.0  # until a client that takes nothing is disconnected
_RETRY_MS: Final = 2000


async def events(request: Request) -> Response:
    """Answer ``GET /api/v1/events``: what changes in the index, as it changes."""
    service = service_of(request)
    if len(service.changes) >= service.settings.max_streams:
        msg = f"There are {service.settings.max_streams} event streams already. Try again later."
        raise HTTPException(503, msg, {"Retry-After": "30"})
    missed = "last-event-id" in request.headers
    stack = AsyncExitStack()
    queue = await stack.enter_async_context(service.changes.stream())

    async def sent() -> AsyncIterator[ServerSentEvent]:
        async with stack:
            yield ServerSentEvent(event="reload" if missed else "open", data="{}", retry=_RETRY_MS)
            while (event := await queue.get()).type != END:
                yield ServerSentEvent(event=event.type, data=event.data, id=str(event.revision))

    return EventSourceResponse(sent(), ping=_PING_S, send_timeout=_SEND_S)
