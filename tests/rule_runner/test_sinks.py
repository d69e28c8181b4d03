"""Sinks: one line an event, and no failure that counts."""

import io
import json
from collections.abc import Mapping

import pytest
import structlog

from rule_runner.events import Event
from rule_runner.sinks import StdoutSink, send_safely

EVENT: Event = {"id": "1", "detail": {"Name": "a\n\x9b\u202e\ud800é"}}


class BrokenSink:
    name = "broken"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def send(self, event: Mapping[str, object]) -> None:
        assert event is EVENT
        raise self._error


def test_stdout_gets_one_harmless_line(capsys: pytest.CaptureFixture[str]) -> None:
    StdoutSink().send(EVENT)
    out = capsys.readouterr().out
    assert out == '{"id": "1", "detail": {"Name": "a\\n\\u009b\\u202e\ufffdé"}}\n'


def test_another_stream_may_be_given() -> None:
    stream = io.StringIO()
    sink = StdoutSink(stream)
    sink.send({"id": "1"})
    sink.send({"id": "2"})
    assert [json.loads(line)["id"] for line in stream.getvalue().splitlines()] == ["1", "2"]


def test_a_sink_that_takes_an_event_is_not_logged() -> None:
    with structlog.testing.capture_logs() as logs:
        assert send_safely(StdoutSink(io.StringIO()), EVENT)
    assert logs == []


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), KeyError("x")], ids=repr)
def test_a_sink_that_fails_is_logged(error: Exception) -> None:
    with structlog.testing.capture_logs() as logs:
        assert not send_safely(BrokenSink(error), EVENT)
    expected = {
        "event": "sink_failed",
        "log_level": "warning",
        "sink": "broken",
        "event_id": "1",
        "reason": repr(error),
    }
    assert [expected] == logs


def test_an_interrupt_is_no_failure_of_a_sink() -> None:
    with pytest.raises(KeyboardInterrupt):
        send_safely(BrokenSink(KeyboardInterrupt()), EVENT)
