"""RejectedRequests: what is left of records about requests that are not valid HTTP."""

import logging

import h11
import pytest
from evaluating import WoundClock
from structlog.testing import capture_logs

from rule_runner.service.rejected_requests import RejectedRequests


def record(name: str, message: str, error: Exception | None = None) -> logging.LogRecord:
    exc_info = None if error is None else (type(error), error, None)
    level = logging.WARNING if error is None else logging.ERROR
    return logging.LogRecord(name, level, "", 0, message, (), exc_info)


def test_many_rejected_requests_are_one_line_a_minute() -> None:
    clock = WoundClock()
    rejected = RejectedRequests(clock)
    invalid = record("uvicorn.error", "Invalid HTTP request received.")
    late = record("asyncio", "Fatal error: protocol", h11.LocalProtocolError("Response"))
    with capture_logs() as logs:
        assert not any(rejected.filter(entry) for entry in [invalid, late] * 50)
        clock.sleep(60)
        assert not rejected.filter(invalid)
    assert [(entry["event"], entry["count"]) for entry in logs] == [
        ("requests_rejected", 1),
        ("requests_rejected", 100),
    ]


@pytest.mark.parametrize(
    "entry",
    [
        record("uvicorn.error", "Exception in ASGI application", h11.LocalProtocolError("Data")),
        record("asyncio", "Fatal error: protocol", ValueError()),
        record("asyncio", "socket.accept() out of system resource"),
    ],
)
def test_defects_stay_in_the_log(entry: logging.LogRecord) -> None:
    assert RejectedRequests(WoundClock()).filter(entry)
