"""Base configurations of the built-in profiler rules: one class for each rule."""

from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeVar

from rule_runner.debugger.checks import require

KIND: Final = "kind"
PERCENTILE: Final = "a valid percentile, 0 to 100"
POSITIVE: Final = "a positive number"
TEXT: Final = "a string if given"
HIGHEST_PERCENTILE: Final = 100

_T = TypeVar("_T")


def _parameter(default: _T, kind: str) -> _T:
    value: _T = field(default=default, metadata={KIND: kind})
    return value


class ProfilerRuleBase:
    """A profiler rule and its parameters.

    Attributes
    ----------
    rule_name
        Name of the rule.
    rule_parameters
        The parameters in the request, not converted: in the order of the arguments, then
        `rule_to_invoke`.

    Raises
    ------
    AssertionError
        If a percentile is not within 0 to 100, or a value is not positive.
    TypeError
        If a value is not a number, or an argument is unknown.
    """

    rule_name: str
    rule_parameters: dict[str, Any]

    def _take(self, parameters: dict[str, Any]) -> None:
        self.rule_name = type(self).__name__
        self.rule_parameters = parameters | {"rule_to_invoke": self.rule_name}


class PlainRule(ProfilerRuleBase):
    """A profiler rule whose fields are its parameters."""

    def __post_init__(self) -> None:
        parameters = {}
        for item in fields(self):  # type: ignore[arg-type]  # each rule is a dataclass
            parameters[item.name] = value = getattr(self, item.name)
            check(item.name, item.metadata[KIND], value)
        self._take(parameters)


def check(name: str, kind: str, value: Any) -> None:
    """Reject a value that is not of its kind.

    Raises
    ------
    AssertionError
        If it is not.
    TypeError
        If it cannot be compared with numbers and must be.
    """
    if kind == TEXT:
        require(value is None or isinstance(value, str), name, kind, value)
        return
    try:
        holds = 0 <= value <= HIGHEST_PERCENTILE if kind == PERCENTILE else value > 0
    except TypeError as err:
        msg = f"Argument {name} must be a number, got {value!r}."
        raise TypeError(msg) from err
    require(bool(holds), name, kind, value)


SCAN_INTERVAL_US: Final = 60_000_000


@dataclass(eq=False)
class BatchSize(PlainRule):
    """GPU, its memory and CPU are all used little: the batch may be too small."""

    cpu_threshold_p95: float = _parameter(70, PERCENTILE)
    gpu_threshold_p95: float = _parameter(70, PERCENTILE)
    gpu_memory_threshold_p95: float = _parameter(70, PERCENTILE)
    patience: float = _parameter(1000, POSITIVE)
    window: float = _parameter(500, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class CPUBottleneck(PlainRule):
    """The GPU is idle while the CPU is busy."""

    threshold: float = _parameter(50, PERCENTILE)
    gpu_threshold: float = _parameter(10, PERCENTILE)
    cpu_threshold: float = _parameter(90, PERCENTILE)
    patience: float = _parameter(1000, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class Dataloader(PlainRule):
    """Data loader processes are too few or too many for the cores."""

    min_threshold: float = _parameter(70, POSITIVE)
    max_threshold: float = _parameter(200, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class GPUMemoryIncrease(PlainRule):
    """The memory used on a GPU grows."""

    increase: float = _parameter(5, POSITIVE)
    patience: float = _parameter(1000, POSITIVE)
    window: float = _parameter(10, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class IOBottleneck(PlainRule):
    """The GPU is idle while the CPU waits for input and output."""

    threshold: float = _parameter(50, PERCENTILE)
    gpu_threshold: float = _parameter(10, PERCENTILE)
    io_threshold: float = _parameter(50, PERCENTILE)
    patience: float = _parameter(1000, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class LoadBalancing(PlainRule):
    """GPUs of one machine are used unevenly."""

    threshold: float = _parameter(0.5, PERCENTILE)
    patience: float = _parameter(1000, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class LowGPUUtilization(PlainRule):
    """A GPU is used little, or its use fluctuates."""

    threshold_p95: float = _parameter(70, PERCENTILE)
    threshold_p5: float = _parameter(10, PERCENTILE)
    window: float = _parameter(500, POSITIVE)
    patience: float = _parameter(1000, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class MaxInitializationTime(PlainRule):
    """The time before the first step is long."""

    threshold: float = _parameter(20, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class OverallFrameworkMetrics(PlainRule):
    """A summary of the time that the parts of the framework take; it judges nothing."""

    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class OverallSystemUsage(PlainRule):
    """A summary of the use of each resource; it judges nothing."""

    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)


@dataclass(eq=False)
class StepOutlier(PlainRule):
    """Some steps take much longer than the others."""

    stddev: float = _parameter(3, POSITIVE)
    mode: str | None = _parameter(None, TEXT)
    n_outliers: float = _parameter(10, POSITIVE)
    scan_interval_us: float = _parameter(SCAN_INTERVAL_US, POSITIVE)
