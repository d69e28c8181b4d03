"""What every test gets: no network, a quiet log, a clock that only moves when told."""

import logging
import socket
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import aws_server as aws_server_
import pytest
import structlog
import uncounted
from hypothesis import HealthCheck, settings

# The same cases everywhere, on machines of any speed.
settings.register_profile(
    "calm", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("calm")

# Scripts that are run as programs: by other interpreters, or where PyTorch is.
collect_ignore = ["old_library", "support/torch_workers.py"]
# Tests of many parts at once, and comparisons with slow code, run through lines that have tests of
# their own: what they cover is not counted, for they take twice as long while it is.
NOT_COUNTED: Final = frozenset(
    {"compat", "detection", "e2e", "faults", "fuzz", "oracle", "property"}
)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Mark the tests whose coverage is not counted."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here) and item.path.relative_to(here).parts[0] in NOT_COUNTED:
            item.add_marker("no_cover")


@pytest.fixture(autouse=True)
def _no_cover_in_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes that such a test starts count nothing either."""
    if request.node.get_closest_marker("no_cover"):
        for name in uncounted.NAMES:
            monkeypatch.delenv(name, raising=False)


class FakeClock:
    """A clock whose time passes only by sleeping; `sleeps` holds how long each time."""

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self.now = now
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sockets reach this machine only."""
    connect = socket.socket.connect

    def local_only(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            msg = f"A test tried to reach {address!r}."
            raise AssertionError(msg)
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local_only)


@pytest.fixture(scope="session")
def aws_server() -> Iterator[str]:
    from botocore import loaders  # noqa: PLC0415, TID251 - slow to import; no client is made here

    with aws_server_.serving() as endpoint, pytest.MonkeyPatch.context() as patch:
        # What is known of services is read once, not for each client anew.
        patch.setattr("botocore.session.create_loader", lru_cache(loaders.create_loader))
        yield endpoint


@pytest.fixture
def aws_endpoint(aws_server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let boto3 of this process, and of those it starts, talk to an empty AWS on this machine."""
    aws_server_.reset(aws_server)
    for name, value in aws_server_.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", aws_server)
    return aws_server


@pytest.fixture(autouse=True)
def _fresh_log() -> Iterator[None]:
    """Put logging back as it was: commands configure it."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)  # not by its attribute: what loggers remember of it is forgotten so
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
