"""Pauses between repeated work."""

from contextlib import suppress

from watched import Watch

from rule_runner.errors import OutputError
from rule_runner.watch.pace import Pace


def test_work_that_failed_is_soon_tried_again(watch: Watch) -> None:
    pace = Pace(watch.clock, 1.0)
    with suppress(OutputError), pace.measured():
        watch.clock.now += 5.0
        raise OutputError
    watch.clock.now += 1.0
    assert pace.is_due
