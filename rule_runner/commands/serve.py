"""serve: judges trials as `watch` does, and shows them over HTTP."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import uvicorn

from rule_core.clock import SystemClock
from rule_runner.commands.watch import WatchRequest, stopping, watching
from rule_runner.errors import (
    EXIT_SIGNAL,
    ClientError,
    OutputError,
    RuleRunnerError,
    UsageError,
    reason_of,
    translated,
)
from rule_runner.file_descriptors import raise_limit
from rule_runner.index.commands import Commands
from rule_runner.logs import get_logger
from rule_runner.service.access.tokens import TokenFile
from rule_runner.service.application import build_application
from rule_runner.service.listener import Listener, handle_exception
from rule_runner.service.rejected_requests import RejectedRequests
from rule_runner.service.service import Service
from rule_runner.service.settings import Network, ServiceSettings
from rule_runner.watch.controller import Controller
from rule_runner.watch.options import Intervals

_log: Final = get_logger(__name__)
# Results of running evaluations are looked at as often as a page can show them.
_INTERVALS: Final = Intervals(refresh=0.5)
_DEFECT: Final = "The controller has a defect; the log has the details."
_GRACE_S: Final = 3  # for requests, at the end
_KEEP_ALIVE_S: Final = 30
_BACKLOG: Final = 4096  # connections that the system holds until they are accepted
_TICKS: Final = 10  # between two looks at the connections
_UNTAKEN_MS: Final = 60_000  # until a connection whose client takes nothing is broken off


class _Server(uvicorn.Server):
    """A server that leaves signals to the command, and ends its streams when it is to stop."""

    def __init__(self, service: Service, listener: Listener) -> None:
        config = uvicorn.Config(
            build_application(service),
            http="h11",
            loop="asyncio",  # no other one asks the listener for connections
            backlog=_BACKLOG,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE_S,
            timeout_keep_alive=_KEEP_ALIVE_S,
            ssl_certfile=service.settings.tls_cert,
            ssl_keyfile=service.settings.tls_key,
        )
        super().__init__(config)
        self._service = service
        self._listener = listener
        listener.served = self.server_state.connections  # type: ignore[assignment] # all are H11
        self._loop: asyncio.AbstractEventLoop | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle no signals."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(handle_exception)
        yield

    async def on_tick(self, counter: int) -> bool:
        """Close connections whose clients send nothing; called ten times a second."""
        if counter % _TICKS == 0:
            self._listener.close_overdue()
        return await super().on_tick(counter)

    def stop(self) -> None:
        """Stop; safe in a signal handler and in other threads."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._service.changes.end)


def serve(request: WatchRequest, settings: ServiceSettings, *, is_watching: bool) -> int:
    """Serve the index of trials until a signal arrives, and return the exit code.

    Parameters
    ----------
    is_watching
        Whether to judge trials as well. If not, its database is the index of another process.

    Raises
    ------
    ClientError
        If the configuration, the tokens or the certificate are not valid.
    OutputError
        If the address cannot be listened to, or the database cannot be used.
    UsageError
        If settings are unsafe or contradict each other.
    """
    settings.check()
    settings = _fitting(settings)
    if settings.tokens is not None:
        TokenFile(settings.tokens).check()
    _check_certificate(settings)
    if not is_watching:
        database = request.database
        if database is None or request.roots or request.config or request.rebuild:
            raise UsageError(
                "Option --no-watch needs --database FILE, and takes no ROOT and no --config."
            )
        service = Service(settings=settings, database=Path(database), clock=SystemClock())
        service.series.sources = request.sources
        return _serve(service, None)
    commands = Commands()
    with watching(request, commands, _INTERVALS) as controller:
        path = controller.database.path
        service = Service(settings=settings, database=path, clock=SystemClock(), commands=commands)
        service.series.sources = controller.sources
        return _serve(service, controller)


def _serve(service: Service, controller: Controller | None) -> int:
    with _listening(service.settings) as listener:
        server = _Server(service, listener)

        def stop() -> None:
            if controller is not None:
                controller.stop()
            server.stop()

        RejectedRequests(service.clock).attach()
        _log.info("serving", address=_address(service.settings, listener))
        with stopping(stop) as numbers, _running(controller, service):
            server.run([listener])
    return EXIT_SIGNAL + numbers[0] if numbers else 0


@contextmanager
def _running(controller: Controller | None, service: Service) -> Iterator[None]:
    """Run a controller in another thread inside the block; wait for its evaluations after it."""
    if controller is None or service.commands is None:
        yield
        return
    commands = service.commands

    def on_end(running: Future[None]) -> None:
        err = running.exception()
        if err is None:
            return
        is_known = isinstance(err, RuleRunnerError)
        commands.failure = str(err) if is_known else _DEFECT
        _log.error("controller_failed", reason=str(err), exc_info=None if is_known else err)

    with ThreadPoolExecutor(1, "controller") as executor:
        executor.submit(controller.run).add_done_callback(on_end)
        try:
            yield
        finally:
            controller.stop()


def _check_certificate(settings: ServiceSettings) -> None:
    if settings.tls_cert is None:
        return
    problem = f"Certificate {str(settings.tls_cert)!r} cannot be used with its key: "
    # The errors of OpenSSL are among those of the system.
    with translated(ClientError, OSError, before=problem, after=".", words=reason_of):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.tls_cert, settings.tls_key)


def _fitting(settings: ServiceSettings) -> ServiceSettings:
    """Return settings whose connections need at most half of the file descriptors.

    The others are for the index, for files that are shown, and for evaluations.
    """
    connections = max(settings.max_connections, 2 * settings.max_streams)
    connections = min(connections, raise_limit() // 2)
    streams = min(settings.max_streams, connections // 2)
    return replace(settings, max_connections=connections, max_streams=streams)


@contextmanager
def _listening(settings: ServiceSettings) -> Iterator[Listener]:
    """Return a socket that listens where the settings say."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    address = settings.host, settings.port
    problem, remedy = f"Cannot listen on {address[0]}:{address[1]}: ", ". Choose another --port."
    with translated(OutputError, OSError, before=problem, after=remedy, words=reason_of):
        listening = socket.create_server(address, family=family, backlog=_BACKLOG)
    with Listener(listening, settings.max_connections, SystemClock()) as listener:
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # its connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN_MS)
        yield listener


def _address(settings: ServiceSettings, listener: Listener) -> str:
    """Return the address to open in a browser."""
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    scheme = "https" if settings.is_encrypted else "http"
    return f"{scheme}://{host}:{listener.getsockname()[1]}/"


def networks_of(texts: Sequence[str]) -> tuple[Network, ...]:
    """Return networks from texts like ``10.0.0.0/8``.

    Raises
    ------
    UsageError
        If one is not valid.
    """
    problem = "Option --trusted-proxy needs networks such as 10.0.0.0/8: "
    with translated(UsageError, ValueError, before=problem, after="."):
        return tuple(map(ipaddress.ip_network, texts))
