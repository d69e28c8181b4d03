"""Fixtures of every test: no network, a quiet log, a clock that moves on request."""

import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import aws_server as aws_server_
import needs
import pytest
import structlog
import uncounted
from hypothesis import HealthCheck, settings

from rule_core.logger import warn_once

# A background job of a script ignores SIGINT, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Several trainings run at a time, and threads of one that wait for those of another are busy.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Nothing that these processes write must outlive a loss of power; programs that they start wait for
# their disks.
os.fsync = lambda _: None

# The same cases everywhere, on machines of any speed; .ci/nightly draws new ones.
settings.register_profile(
    "calm",
    deadline=None,
    derandomize=True,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "nightly",
    settings.get_profile("calm"),
    derandomize=False,
    max_examples=200,
    print_blob=True,
)
settings.load_profile("calm")

# Scripts that are run as programs: by other interpreters, or where PyTorch is.
collect_ignore = [
    "system/old_library",
    "support/kubernetes_server.py",
    "support/preset_workers.py",
    "support/profiled_training.py",
    "support/profiled_victims.py",
    "support/torch_profiles.py",
    "support/torch_workers.py",
    "support/watch_program.py",
]
# Tests of many parts at once, and comparisons with slow code, run through lines that have tests of
# their own: what they cover is not counted, for they take twice as long while it is.
NOT_COUNTED: Final = frozenset(
    {
        *(f"system/{name}" for name in ("compat", "detection", "e2e", "engines", "profiles")),
        *(f"system/{name}" for name in ("faults", "fuzz", "oracle", "property")),
        *("test_architecture.py", "test_import_time.py"),
    }
)


FAST: Final = "not (merge or nightly)"  # the selection of scripts/test
# What of tests/system is in the fast lane, beside the tests in e2e that are marked as smoke tests.
FAST_SYSTEM_TESTS: Final = frozenset(
    {"compat", "contract", "property", "e2e/test_cli.py", "e2e/test_project_documents.py"}
)
NIGHTLY_TIMEOUT_S: Final = 3600
# Who runs the tests that a selection by marks leaves out.
OTHER_LANES: Final = {
    FAST: ".ci/run and .ci/nightly",
    "not nightly": ".ci/nightly",
}
PASSED: Final = "rule-runner/passed"  # the name of the last session's passed tests in the cache


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option to leave out what has passed elsewhere."""
    text = "Leave out the tests that FILE lists as passed."
    parser.addoption("--passed", type=Path, metavar="FILE", help=text)


SYSTEM: Final = Path(__file__).parent / "system"


def is_fast(path: Path) -> bool:
    """Return whether a test file's place puts its tests into the fast lane."""
    fast = {SYSTEM / name for name in FAST_SYSTEM_TESTS}
    return not path.is_relative_to(SYSTEM) or not fast.isdisjoint([path, *path.parents])


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave folders without fast tests alone: some import frameworks for longer than a minute."""
    if config.option.markexpr != FAST or collection_path.parent != SYSTEM:
        return None
    folders = {name.partition("/")[0] for name in FAST_SYSTEM_TESTS}
    return collection_path.name not in folders or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark lanes and tests whose coverage is not counted, time nightly tests, obey --passed."""
    here = Path(__file__).parent
    not_counted = {here / name for name in NOT_COUNTED}
    is_counted = {
        path: not_counted.isdisjoint([path, *path.parents])
        for path in {item.path for item in items}
    }
    for item in items:
        if not is_counted[item.path]:
            item.add_marker("no_cover")
        if not (is_fast(item.path) or item.get_closest_marker("smoke")):
            item.add_marker("merge")
        if item.get_closest_marker("nightly") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(NIGHTLY_TIMEOUT_S))
    if (path := config.getoption("--passed")) is not None:
        passed = set(json.loads(path.read_text()))
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in passed])
        items[:] = [item for item in items if item.nodeid not in passed]


def remember_passed(config: pytest.Config, stats: dict[str, list[Any]]) -> None:
    """Write the names of the passed tests to the cache, for --passed in another checkout."""
    cache = getattr(config, "cache", None)
    if cache is None:  # -p no:cacheprovider
        return
    passed, failed = (
        {report.nodeid for kind in kinds for report in stats.get(kind, ())}
        for kinds in (["passed"], ["failed", "error"])
    )
    cache.set(PASSED, sorted(passed - failed))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Iterator[None]:
    """Print, as the last line, what skipped tests need and who runs the long ones."""
    yield
    remember_passed(terminalreporter.config, terminalreporter.stats)
    sentences = []
    if skipped := terminalreporter.stats.get("skipped"):
        needed = needs.summary(report.longrepr[2] for report in skipped)
        if needed:  # not for examples that are there to be read
            sentences.append(f"Skipped tests need: {needed}. .ci/run installs what it can.")
    # With several processes nobody tells this one what they have deselected.
    chosen = terminalreporter.config.option
    if (left_to := OTHER_LANES.get(chosen.markexpr)) and chosen.numprocesses:
        sentences.append(f"Longer tests are left to {left_to}.")
    if sentences:
        terminalreporter.write_line(" ".join(sentences))


@pytest.fixture(autouse=True)
def _no_cover_in_processes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes that such a test starts count nothing either."""
    if request.node.get_closest_marker("no_cover"):
        for name in uncounted.NAMES:
            monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _warn_again() -> None:
    """Let each test see the warnings that an earlier one has logged."""
    warn_once.cache_clear()


@pytest.fixture(autouse=True)
def _no_profiler_stays() -> Iterator[None]:
    """Fail a test that leaves a profiler active: later ones in the process could start none."""
    yield
    active = sys.getprofile()
    sys.setprofile(None)
    assert active is None, f"The test left a profiler active: {active!r}."


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


@pytest.fixture
def sigterm_restored() -> Iterator[None]:
    """Restore the handler of SIGTERM, which container mode replaces."""
    on_sigterm = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, on_sigterm)


@pytest.fixture(scope="session")
def aws_server() -> Iterator[str]:
    from botocore import loaders  # noqa: TID251 - slow to import; no client is made here

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
    """Put logging back as it was: commands and `invoke_rule` configure it."""
    loggers = [logging.getLogger(), logging.getLogger("smdebug")]
    states = [(logger, [*logger.handlers], logger.level) for logger in loggers]
    yield
    for logger, handlers, level in states:
        logger.handlers[:] = handlers
        logger.setLevel(level)  # not by its attribute: what loggers remember of it is forgotten so
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()
