"""Logging: text or JSON lines on stderr, as much of it as was asked for."""

import io
import json
import logging
import subprocess
import sys
from typing import Any

import pytest
import structlog

from rule_runner.logs import configure
from smdebug.core.logger import get_logger


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Captured = pytest.CaptureFixture[str]


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("verbosity", "levels"),
    [
        (-5, ["error"]),
        (-1, ["error"]),
        (0, ["warning", "error"]),
        (1, ["info", "warning", "error"]),
        (2, ["debug", "info", "warning", "error"]),
        (9, ["debug", "info", "warning", "error"]),
    ],
)
def test_verbosity(capsys: Captured, verbosity: int, levels: list[str]) -> None:
    configure(verbosity, as_json=True)
    for log in (structlog.get_logger(), logging.getLogger("a rule's own")):
        for level in ("debug", "info", "warning", "error"):
            getattr(log, level)("step_judged")
    out, err = capsys.readouterr()
    assert [one["level"] for one in lines(err)] == [*levels, *levels]
    assert out == ""


def test_line_is_json_with_event_keys_time_and_what_is_bound(capsys: Captured) -> None:
    configure(0, as_json=True)
    structlog.contextvars.bind_contextvars(rule_job="first")
    structlog.get_logger().warning("step_skipped", step=3, reason="x\x1b[31m")
    err = capsys.readouterr().err
    (line,) = lines(err)
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "step_skipped",
        "level": "warning",
        "step": 3,
        "reason": "x\x1b[31m",
        "rule_job": "first",
    }
    assert "\x1b" not in err


def test_traceback_is_in_the_line(capsys: Captured) -> None:
    configure(0, as_json=True)
    try:
        {}["conv1"]
    except KeyError:
        structlog.get_logger().warning("rule_failed", exc_info=True)
    (line,) = lines(capsys.readouterr().err)
    assert "KeyError: 'conv1'" in line["exception"]


def test_logger_of_the_analysis_core_goes_the_same_way(capsys: Captured) -> None:
    configure(0, as_json=True)
    get_logger().warning("Trial %r: %s", "/t", "odd")
    assert "Trial '/t': odd" in capsys.readouterr().err


def test_pipe_gets_text_without_colours_and_what_a_terminal_would_obey(capsys: Captured) -> None:
    configure(0)
    structlog.get_logger().warning("step_skipped", reason="a\x1b]0;title\x07b", step=4)
    get_logger().error("odd")
    first, second = capsys.readouterr().err.splitlines()
    assert first.split() == [
        first.split()[0],
        *("[warning", "]", "step_skipped", "reason=a\\x1b]0;title\\x07b", "step=4"),
    ]
    assert second.split()[1:] == ["[error", "]", "odd", "[smdebug]"]


@pytest.mark.parametrize("as_json", [True, False])
def test_terminal_gets_no_json_and_nothing_that_it_obeys(
    monkeypatch: pytest.MonkeyPatch, as_json: bool
) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    configure(0, as_json=as_json)
    structlog.get_logger().warning("step_skipped", reason="a\x1b]0;title\x07b", step=4)
    text = stream.getvalue()
    assert "step_skipped" in text
    assert "\x1b]0;" not in text
    assert "\x07" not in text
    assert not text.startswith("{")


def test_configuring_twice_says_all_once(capsys: Captured) -> None:
    configure(0, as_json=True)
    configure(0, as_json=True)
    structlog.get_logger().warning("once")
    assert len(lines(capsys.readouterr().err)) == 1


LATE = """
import logging, sys
from rule_runner.logs import configure, get_logger
configure({verbosity}, as_json={as_json})
log = get_logger("a.b")
log.debug("dropped")
log.info("dropped too")
assert "structlog" not in sys.modules, "imported for what nobody sees"
{event}
assert "structlog" in sys.modules
"""


@pytest.mark.parametrize(
    ("event", "key", "text"),
    [
        ("log.warning('seen')", "event", "seen"),
        ("log.exception('seen', exc_info=False)", "level", "error"),
        ("logging.getLogger('rule').warning('seen')", "logger", "rule"),
        ("import structlog; structlog.get_logger().warning('seen')", "event", "seen"),
    ],
)
def test_structlog_is_imported_with_the_first_event_and_configured(
    event: str, key: str, text: str
) -> None:
    code = LATE.format(verbosity=0, as_json=True, event=event)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    (line,) = lines(ended.stderr)
    assert (line["event"], line[key]) == ("seen", text)
    assert line["timestamp"].endswith("Z")


def test_the_last_configuration_counts_when_structlog_is_imported() -> None:
    code = LATE.format(
        verbosity=2, as_json=True, event="configure(0); log.info('dropped'); log.warning('seen')"
    ).replace("log.debug", "configure(-1); log.debug")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr.split()[1:] == ["[warning", "]", "seen"]


LIBRARY = """
import logging, sys
from rule_runner.logs import get_logger, through_logging
logging.basicConfig(format="%(name)s %(message)s", stream=sys.stdout)
with through_logging():
    get_logger("a.b").info("dropped")
    assert "structlog" not in sys.modules
    get_logger("a.b").warning("seen", step=3)
import structlog
assert not structlog.is_configured()
with through_logging():
    assert structlog.is_configured()
assert not structlog.is_configured()
"""


def test_a_library_imports_structlog_late_too() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", LIBRARY], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "a.b event='seen' step=3\n"


def test_after_a_block_without_events_structlog_is_left_alone() -> None:
    code = LIBRARY.replace('    get_logger("a.b").warning("seen", step=3)\n', "")
    subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
