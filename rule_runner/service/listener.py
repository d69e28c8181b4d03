"""Listener: the socket of the service, which keeps the number of connections below a limit."""

import errno
import socket
from asyncio import AbstractEventLoop
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from h11 import IDLE, SEND_BODY

from rule_core.clock import Clock
from rule_runner.file_descriptors import FULL
from rule_runner.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from uvicorn.protocols.http.h11_impl import H11Protocol

_log: Final = get_logger(__name__)
WAIT_S: Final = 30.0  # for a client to send the headers of a request, and again its body
_SHARE: Final = 16  # of the connections, one of so many is closed at once
_LOG_EVERY_S: Final = 60.0
_EXHAUSTED: Final = {*FULL, errno.ENOBUFS, errno.ENOMEM}


class _Accepted:
    """An accepted connection.

    Attributes
    ----------
    since
        When it was accepted, or when its last request arrived.
    served
        Its other form; None during the TLS handshake.
    """

    __slots__ = ("_socket", "request", "served", "since")

    def __init__(self, accepted: socket.socket, since: float) -> None:
        self._socket = accepted
        self.since = since
        self.served: H11Protocol | None = None
        self.request: object = None

    @property
    def is_open(self) -> bool:
        return self._socket.fileno() >= 0

    @property
    def is_waiting(self) -> bool:
        """Whether its client is to send something."""
        return self.served is None or self.served.conn.their_state in {IDLE, SEND_BODY}

    def note_request(self, now: float) -> None:
        """Begin the time of the next request if there is a new one."""
        request = None if self.served is None else self.served.cycle
        if request is not self.request:
            self.request, self.since = request, now

    def close(self) -> None:
        """Close it without waiting for its client."""
        if self.served is not None:
            self.served.transport.abort()
            return
        with suppress(OSError):  # the client may have closed it
            self._socket.shutdown(socket.SHUT_RDWR)


class Listener(socket.socket):
    """A listening socket that closes connections whose clients keep it waiting.

    If there are too many connections, those that have waited longest for their clients are closed,
    so that there is always room for a new one. All calls are made by the thread of the event loop.

    Parameters
    ----------
    listening
        The socket, which this one replaces.
    limit
        How many connections may be open.

    Attributes
    ----------
    served
        The connections that uvicorn serves.
    """

    def __init__(self, listening: socket.socket, limit: int, clock: Clock) -> None:
        super().__init__(fileno=listening.detach())
        self._limit = limit
        self._clock = clock
        self._accepted: dict[int, _Accepted] = {}  # by file descriptor, the oldest first
        self._logged_at: float | None = None
        self._pauses = False  # until others are closed
        self.served: AbstractSet[H11Protocol] = frozenset()

    def accept(self) -> tuple[socket.socket, object]:
        """Return the next connection, as the event loop asks for it.

        Raises
        ------
        BlockingIOError
            If there is none, or if it must wait until others are closed, or if all are busy.
        OSError
            If it cannot be accepted; the event loop then asks again after a second.
        """
        if self._pauses:
            self._pauses = False
            raise BlockingIOError
        try:
            accepted, address = super().accept()
        except OSError as err:
            if err.errno in _EXHAUSTED:
                self._pauses = True  # some versions of the event loop ask again at once
                self._warn(f"A connection cannot be accepted: {err.strerror}.")
                self._look()
                self._close_oldest()
            raise
        if len(self._accepted) >= self._limit and not self._make_room():
            accepted.close()
            raise BlockingIOError
        self._accepted.pop(accepted.fileno(), None)
        self._accepted[accepted.fileno()] = _Accepted(accepted, self._clock.monotonic())
        return accepted, address

    def close_overdue(self) -> None:
        """Close the connections whose clients have not sent a request in time."""
        self._look()
        due = self._clock.monotonic() - WAIT_S
        for connection in self._accepted.values():
            if connection.is_waiting and connection.since <= due:
                connection.close()

    def _make_room(self) -> bool:
        """Close connections if too many are open; return whether there is room."""
        self._look()
        if len(self._accepted) < self._limit:
            return True
        self._warn(f"The limit of {self._limit} connections is reached.")
        self._pauses = self._close_oldest()
        return self._pauses

    def _close_oldest(self) -> bool:
        """Close the connections that have waited longest for their clients, if there are any."""
        waiting = [item for item in self._accepted.values() if item.is_waiting]
        waiting.sort(key=lambda item: item.since)
        oldest = waiting[: self._limit // _SHARE + 1]
        for connection in oldest:
            connection.close()
        return bool(oldest)

    def _look(self) -> None:
        """Forget closed connections, and note which requests have arrived."""
        self._accepted = {fd: item for fd, item in self._accepted.items() if item.is_open}
        for served in self.served:
            fd = served.transport.get_extra_info("socket").fileno()
            if fd in self._accepted:
                self._accepted[fd].served = served
        now = self._clock.monotonic()
        for connection in self._accepted.values():
            connection.note_request(now)

    def _warn(self, reason: str) -> None:
        """Log once a minute why connections are closed or not accepted."""
        now = self._clock.monotonic()
        if self._logged_at is None or now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            _log.warning("connections_limited", reason=reason)


def handle_exception(loop: AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report an exception of the event loop, unless a `Listener` has logged it."""
    err = context.get("exception")
    if not (isinstance(err, OSError) and err.errno in _EXHAUSTED):
        loop.default_exception_handler(context)
