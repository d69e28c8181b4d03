"""Logging: text or JSON lines on stderr, as much of it as was asked for."""

import io
import json
import logging
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
