"""The rules in the profiler report: which, and how one of them judges the report's windows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from builtin_rules.profiler.batch_size import BatchSize
from builtin_rules.profiler.cpu_bottleneck import CPUBottleneck
from builtin_rules.profiler.dataloader import Dataloader
from builtin_rules.profiler.gpu_memory_increase import GPUMemoryIncrease
from builtin_rules.profiler.io_bottleneck import IOBottleneck
from builtin_rules.profiler.load_balancing import LoadBalancing
from builtin_rules.profiler.low_gpu_utilization import LowGPUUtilization
from builtin_rules.profiler.max_initialization_time import MaxInitializationTime
from builtin_rules.profiler.overall_framework_metrics import OverallFrameworkMetrics
from builtin_rules.profiler.overall_system_usage import OverallSystemUsage
from builtin_rules.profiler.step_outlier import StepOutlier
from builtin_rules.profiler.window_rule import WindowRule

SUB_RULES: Final = MappingProxyType[str, type[WindowRule]](
    {
        "BatchSize": BatchSize,
        "CPUBottleneck": CPUBottleneck,
        "Dataloader": Dataloader,
        "GPUMemoryIncrease": GPUMemoryIncrease,
        "IOBottleneck": IOBottleneck,
        "LoadBalancing": LoadBalancing,
        "LowGPUUtilization": LowGPUUtilization,
        "MaxInitializationTime": MaxInitializationTime,
        "OverallFrameworkMetrics": OverallFrameworkMetrics,
        "OverallSystemUsage": OverallSystemUsage,
        "StepOutlier": StepOutlier,
    }
)
HITS_KEPT: Final = 200  # of a rule; beyond that further devices are only counted by the rule
Place = tuple[str, str | None, str | None]  # quantity, tensor, worker


@dataclass(slots=True)
class Hit:
    """Where the condition of a rule was met: how often, and what was measured there last.

    Attributes
    ----------
    windows
        How many windows.
    step
        The last one of them.
    """

    quantity: str
    tensor: str | None
    worker: str | None
    measured: float = 0.0
    limit: float = 0.0
    note: str = ""
    windows: int = 0
    step: int = 0


@dataclass(slots=True)
class SubRule:
    """One rule of the report, how far it has judged, and what it has found.

    Attributes
    ----------
    failure
        How it failed: then it judges no further; "" if it has not.
    judged, met
        How many windows it has judged, and in how many its condition was met.
    skipped
        How many windows it has not judged, by reason.
    hits
        Where its condition was met.
    """

    name: str
    rule: WindowRule
    failure: str = ""
    judged: int = 0
    met: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    hits: dict[Place, Hit] = field(default_factory=dict)
    _open: int | None = None  # a window that goes on behind the newest data that were judged
    _last_report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def triggered(self) -> int:
        """How often the rule was triggered."""
        return int(self.report["RuleTriggered"])

    @property
    def report(self) -> Mapping[str, Any]:
        """The rule's own report; of one that fails to make it, the last that it made."""
        try:
            self._last_report = self.rule.report
        except Exception as err:  # noqa: BLE001 - one rule must not take the others with it
            self._fail(err, "while its report was made")
            self._last_report = self._last_report or {
                "RuleTriggered": 0,
                "Violations": 0,
                "Details": {},
                "Datapoints": 0,
                "RuleParameters": self.rule.rule_parameters(),
            }
        return self._last_report

    def judge(self, start_us: int, end_us: int) -> None:
        """Judge the rule's own windows that end in a range of time.

        A window that is longer is judged once the data have reached its end.

        Parameters
        ----------
        start_us, end_us
            The report's window, in epoch microseconds.
        """
        begun, length = self.rule.base_trial.first_timestamp, self.rule.scan_interval_us
        first, last = ((at - begun) // length for at in (start_us, end_us - 1))
        for step in range(first, last + 1):
            if self._open is not None and self._open < step:
                self.finish()
            self._open = step
            if begun + (step + 1) * length <= end_us:
                self.finish()

    def finish(self) -> None:
        """Judge the window that goes on, if there is one: no more data of it will come."""
        step, self._open = self._open, None
        if step is None or self.failure:
            return
        try:
            met = bool(self.rule.invoke_at_step(step))
        except Exception as err:  # noqa: BLE001 - one rule must not take the others with it
            self._fail(err, f"at window {step}")
        else:
            self._take(step, met=met)

    def _take(self, step: int, *, met: bool) -> None:
        findings, reason = self.rule.take_evidence()
        notes = {(one.tensor, one.worker): one.note or "" for one in findings}
        if reason and not findings:
            self.skipped[reason] = self.skipped.get(reason, 0) + 1
        else:
            self.judged += 1
            self.met += met
        for measured in self.rule.take_measurements():
            for (tensor, worker), value, is_met in measured.points:
                place = (measured.quantity, tensor, worker)
                if is_met and (place in self.hits or len(self.hits) < HITS_KEPT):
                    hit = self.hits.setdefault(place, Hit(*place))
                    hit.measured, hit.limit, hit.step = value, measured.limit, step
                    hit.note = notes.get((tensor, worker), "")
                    hit.windows += 1

    def _fail(self, err: Exception, where: str) -> None:
        if not self.failure:
            text = " ".join(str(err).split())
            self.failure = f"{type(err).__name__} {where}{text and f': {text}'}"[:500]
            self.rule.logger.warning("Rule %r failed: %s", self.name, self.failure, exc_info=err)
