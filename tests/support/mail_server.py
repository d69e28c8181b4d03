"""A real SMTP server on this machine that keeps the letters that it gets."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from aiosmtpd.controller import Controller


@dataclass
class Mails:
    """The letters that a server got, and its port."""

    port: int
    letters: list[Any] = field(default_factory=list)

    async def take(self, _server: Any, _session: Any, envelope: Any) -> str:
        self.letters.append(envelope)
        return "250 OK"


@contextmanager
def receiving() -> Iterator[Mails]:
    """Run the server on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        mails = Mails(free.getsockname()[1])
    handler = SimpleNamespace(handle_DATA=mails.take)
    controller = Controller(handler, hostname="127.0.0.1", port=mails.port)
    controller.start()
    try:
        yield mails
    finally:
        controller.stop()
