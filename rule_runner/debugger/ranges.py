"""The profiled part of a training: a range of steps or of time."""

from typing import Any

from rule_runner.debugger.checks import (
    require,
    require_integer,
    require_positive_number,
    require_unix_time,
)


class StepRange:
    """A range of steps.

    Parameters
    ----------
    start_step
        The first step; by default 0.
    num_steps
        Number of steps; by default 1.
    """

    def __init__(self, start_step: int | None, num_steps: int | None) -> None:
        self.start_step = 0 if start_step is None else start_step
        self.num_steps = 1 if num_steps is None else num_steps

    def to_json(self) -> dict[str, Any]:
        """Return the range as a dictionary."""
        return {"StartStep": self.start_step, "NumSteps": self.num_steps}

    request = to_json


class TimeRange:
    """A range of time.

    Parameters
    ----------
    start_unix_time
        Its start in seconds since the epoch; by default step 0.
    duration
        Duration in seconds; by default one step.
    """

    def __init__(self, start_unix_time: int | None, duration: float | None) -> None:
        self.start_unix_time = start_unix_time
        self.duration = duration

    def to_json(self) -> dict[str, Any]:
        """Return the range as a dictionary; without a start it begins at step 0."""
        return ({"StartStep": 0} if self.start_unix_time is None else {}) | self.request()

    def request(self) -> dict[str, Any]:
        """Return the given bounds only, as requests have them."""
        bounds = {"StartTimeInSecSinceEpoch": self.start_unix_time, "Duration": self.duration}
        return {name: value for name, value in bounds.items() if value is not None}


def profiled_range(
    start_step: int | None,
    num_steps: int | None,
    start_unix_time: int | None,
    duration: float | None,
) -> StepRange | TimeRange:
    """Return the requested range; by default a range of time without bounds.

    Raises
    ------
    AssertionError
        If a bound is invalid, or there are bounds of both kinds.
    """
    if start_step is not None:
        require_integer("start_step", start_step, 0)
    if num_steps is not None:
        require_integer("num_steps", num_steps, 1)
    if start_unix_time is not None:
        require_unix_time("start_unix_time", start_unix_time)
    if duration is not None:
        require_positive_number("duration", duration)
    steps = (start_step, num_steps)
    times = (start_unix_time, duration)
    both = steps != (None, None) and times != (None, None)
    require(not both, "range", "of steps or of time, not of both", (*steps, *times))
    return TimeRange(*times) if steps == (None, None) else StepRange(*steps)
