"""Configuration of framework metrics: one class for each kind."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Final, TypeVar

from rule_runner.debugger import checks
from rule_runner.debugger.utils import PythonProfiler, cProfileTimer

_E = TypeVar("_E", bound=Enum)
NO_BOUNDS: Final = (None, None, None, None)  # of steps and of time


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


class MetricsConfigBase:
    """A kind of metrics and the range in which they are profiled; by default one without bounds.

    Parameters
    ----------
    name
        Name of the kind.
    start_step, num_steps
        The first step, and the number of steps.
    start_unix_time, duration
        Alternatively the start and the duration in seconds.

    Raises
    ------
    AssertionError
        If a bound is invalid, or there are bounds of both kinds.
    """

    def __init__(
        self,
        name: str,
        start_step: int | None,
        num_steps: int | None,
        start_unix_time: int | None,
        duration: float | None,
    ) -> None:
        if start_step is not None:
            checks.require_integer("start_step", start_step, 0)
        if num_steps is not None:
            checks.require_integer("num_steps", num_steps, 1)
        if start_unix_time is not None:
            checks.require_unix_time("start_unix_time", start_unix_time)
        if duration is not None:
            checks.require_positive_number("duration", duration)
        steps = (start_step, num_steps)
        times = (start_unix_time, duration)
        both = steps != (None, None) and times != (None, None)
        checks.require(not both, "range", "of steps or of time, not of both", (*steps, *times))
        self.name = name
        self.range = TimeRange(*times) if steps == (None, None) else StepRange(*steps)

    def _to_json(self) -> dict[str, Any]:
        """Return the range and further settings as a dictionary."""
        return self.range.request()

    def to_json_string(self) -> str:
        """Return the text that the training job reads: JSON, but for a comma after the last item.

        Strings are quoted without escapes; other values have the form of `str`.
        """
        items = (
            f'"{name}": "{value}", ' if isinstance(value, str) else f'"{name}": {value}, '
            for name, value in self._to_json().items()
        )
        return f"{{{''.join(items)}}}"


@dataclass(eq=False, repr=False)
class DefaultStepsConfig(MetricsConfigBase):
    """Metrics that have default steps.

    Parameters
    ----------
    start_step, num_steps
        The first step, and the number of steps. The number defaults to 1 if a first step is
        given, and the first step to 0; without any range, the default steps are used.
    start_unix_time, duration
        Alternatively the start and the duration in seconds.
    profile_default_steps
        Whether to use the default steps and ignore the others.

    Raises
    ------
    AssertionError
        If an argument is invalid, or there are bounds of both kinds.
    """

    DEFAULT_STEPS: ClassVar[tuple[int, int]]  # the first and how many

    start_step: int | None = None
    num_steps: int | None = None
    start_unix_time: int | None = None
    duration: float | None = None
    profile_default_steps: bool = False

    def __post_init__(self) -> None:
        is_boolean = isinstance(self.profile_default_steps, bool)
        checks.require(is_boolean, "profile_default_steps", "a boolean", self.profile_default_steps)
        steps, times = (self.start_step, self.num_steps), (self.start_unix_time, self.duration)
        if self.profile_default_steps or (*steps, *times) == NO_BOUNDS:
            steps = self.DEFAULT_STEPS
        super().__init__(type(self).__name__, *steps, *times)


class DetailedProfilingConfig(DefaultStepsConfig):
    """The operators, by the framework's own profiler; by default at step 5."""

    DEFAULT_STEPS = (5, 1)


class HorovodProfilingConfig(DefaultStepsConfig):
    """Activity of Horovod; by default at step 13."""

    DEFAULT_STEPS = (13, 1)


class SMDataParallelProfilingConfig(DefaultStepsConfig):
    """Activity of SageMaker's data parallelism; by default at step 15."""

    DEFAULT_STEPS = (15, 1)


@dataclass(eq=False, repr=False)
class DataloaderProfilingConfig(DefaultStepsConfig):
    """Activity of data loaders; by default at step 7.

    Parameters
    ----------
    metrics_regex
        Pattern of the metrics to profile. The other parameters are those of
        `DefaultStepsConfig`.

    Raises
    ------
    AssertionError
        If it is not a regular expression, or the range is invalid.
    """

    DEFAULT_STEPS = (7, 1)

    metrics_regex: str = ".*"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.require_regex("metrics_regex", self.metrics_regex)

    def _to_json(self) -> dict[str, Any]:
        return super()._to_json() | {"MetricsRegex": self.metrics_regex}


class PythonProfilingConfig(DefaultStepsConfig):
    """Python functions; by default at steps 9, 10 and 11.

    Parameters
    ----------
    python_profiler
        A `PythonProfiler` or its value in any case: ``"cProfile"``.
    cprofile_timer
        A `cProfileTimer` or its value; not sent with Pyinstrument, and always `DEFAULT` with
        `profile_default_steps`. The other parameters are those of `DefaultStepsConfig`.

    Raises
    ------
    AssertionError
        If the profiler or timer is unknown, or the range is invalid.
    """

    DEFAULT_STEPS = (9, 3)

    def __init__(
        self,
        start_step: int | None = None,
        num_steps: int | None = None,
        start_unix_time: int | None = None,
        duration: float | None = None,
        profile_default_steps: bool = False,
        python_profiler: PythonProfiler | str = PythonProfiler.CPROFILE,
        cprofile_timer: cProfileTimer | str = cProfileTimer.TOTAL_TIME,
    ) -> None:
        super().__init__(start_step, num_steps, start_unix_time, duration, profile_default_steps)
        self.python_profiler = _member(PythonProfiler, "python_profiler", python_profiler)
        self.cprofile_timer = _member(cProfileTimer, "cprofile_timer", cprofile_timer)
        if profile_default_steps:
            self.cprofile_timer = cProfileTimer.DEFAULT

    def _to_json(self) -> dict[str, Any]:
        settings = {"ProfilerName": self.python_profiler.value}
        if self.python_profiler is PythonProfiler.CPROFILE:
            settings["cProfileTimer"] = self.cprofile_timer.value
        return super()._to_json() | settings


def _member(kind: type[_E], argument: str, value: _E | str) -> _E:
    """Return a member of an enumeration, given as such or by its value in any case."""
    members = {member.value: member for member in kind}
    result = members.get(value.lower()) if isinstance(value, str) else value
    what = f"of type {kind.__name__} or one of {', '.join(map(repr, members))}"
    checks.require(isinstance(result, kind), argument, what, value)
    return kind(result)
