"""ProfilerReport: evaluates all profiler rules and writes a report."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import MINUTE_US
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.reports.profiler import parameters
from builtin_rules.reports.profiler.report_data import ReportData
from builtin_rules.reports.profiler.step_history import StepHistory
from builtin_rules.reports.profiler.sub_rules import SUB_RULES, SharedWindow, SubRule
from builtin_rules.reports.profiler.usage_history import UsageHistory
from builtin_rules.reports.report_writer import ReportWriter
from smdebug.rules.extensions import Clock, Quantity, SystemClock, set_parameters

NOTHING: Final = "no profiler data in this window"
TRIGGERED: Final = "triggered"


class ProfilerReport(WindowRule):
    """Never met: this rule writes a report with the findings of seventeen profiler rules.

    It evaluates BatchSize, CPUBottleneck, Dataloader, GPUMemoryIncrease, IOBottleneck,
    LoadBalancing, LowGPUUtilization, MaxInitializationTime, OverallFrameworkMetrics,
    OverallSystemUsage and StepOutlier, and for traces of torch.profiler GPUIdleWaitsForHost,
    LowOverlap, MemoryGrows, SmallKernels and StragglerRank, for dumps of a flight recorder
    CollectiveNotJoined; their own pages describe their conditions. Windows are one minute long
    unless a rule's own parameter sets another length. If a rule fails, the report says so and the
    other rules continue.

    The report consists of `profiler-output/profiler-report.html`, a self-contained page, the
    notebook `profiler-report.ipynb` next to it, and `profiler-output/profiler-reports/<Rule>.json`
    for each rule. It is written after the first window, then at most once a minute, and at the end,
    to the output folder of the rule job; in Python to that of the trial or the working directory.

    With `met_if_triggered`, the condition is met at the end of the data if any rule was triggered.
    """

    READS = "the system metrics and framework events that its rules read."
    PARAMS = parameters.declared()
    QUANTITIES = (Quantity(TRIGGERED, "how often a rule was triggered"),)
    scan_interval_us = MINUTE_US
    met_if_triggered: bool

    def __init__(
        self, base_trial: Any, action_str: Any = "", *, clock: Clock | None = None, **raw: Any
    ) -> None:
        super().__init__(base_trial)
        self.given = set_parameters(self, **self.rename_parameters(raw))
        self._action_str = action_str or ""
        self.clock = clock or SystemClock()
        self._shared = SharedWindow(base_trial)
        values = {param.name: getattr(self, param.name) for param in self.PARAMS}
        self.rules = [
            SubRule(name, rule(self._shared, **parameters.of_rule(name, values)))
            for name, rule in SUB_RULES.items()
        ]
        self._usage: UsageHistory | None = None
        self._steps: StepHistory | None = None
        self._writer = ReportWriter(self._write, self.clock, self.logger)
        self._ended = False

    @classmethod
    def rename_parameters(cls, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return parameters by their declared names, including those in the text of a dict.

        Raises
        ------
        SMDebugValueError
            If the text is not a flat dict, or a parameter is given twice.
        """
        return parameters.rename_parameters(
            raw, {param.name.lower(): param.name for param in cls.PARAMS}
        )

    def judge(self, step: int) -> bool:
        """Judge window `step` by all rules, and write the report if it is due."""
        window = self.window_of(step)
        samples = self._shared.system_samples(*window)
        events = self._shared.framework_events(*window)
        if self._usage is None or self._steps is None:
            begin = self.base_trial.first_timestamp
            self._usage, self._steps = UsageHistory(begin), StepHistory(begin)
        self._usage.add(samples)
        self._steps.add(events)
        for rule in self.rules:
            rule.judge(*window)
        self._shared.forget()
        self.record_points(self._report["Datapoints"] + len(samples) + len(events))
        self._writer.refresh()
        return False if len(samples) or events else self.not_judged(NOTHING)

    def invoke_at_end(self, step: int) -> bool:
        """Write the final report; return whether the condition is met.

        Raises
        ------
        SMDebugRuntimeError
            If there is data, but no report could be written.
        """
        for rule in self.rules:
            rule.finish()
        self._shared.forget()
        is_first, self._ended = not self._ended, True
        if is_first and self._usage is not None:
            self._writer.finish(self.folder)
        met = [rule for rule in self.rules if self.met_if_triggered and rule.triggered]
        for rule in met:
            self.found(step, rule.name, measured=rule.triggered, limit=0, quantity=TRIGGERED)
        return bool(met)

    def details(self) -> dict[str, Any]:
        """Return the reports of the rules, by name."""
        return {rule.name: dict(rule.report) for rule in self.rules}

    @property
    def folder(self) -> Path:
        """The folder of the report."""
        return Path(self.output_dir or getattr(self.base_trial, "output_dir", None) or ".")

    def _report_data(self) -> ReportData:
        trial = self.base_trial
        return ReportData(
            trial=trial.name,
            path=str(getattr(trial, "path", "")),
            nodes=getattr(trial, "nodes", ()),
            begin_us=trial.first_timestamp,
            end_us=trial.newest_timestamp,
            ended=self._ended and getattr(trial, "loaded_all_steps", True),
            made_at=datetime.fromtimestamp(self.clock.time(), UTC),
            rules=self.rules,
            usage=self._usage,
            steps=self._steps,
            has_framework_data=trial.has_framework_data,
            problems=tuple(getattr(trial, "problems", ())),
            traces_between=getattr(trial, "torch_traces", lambda *_: []),
        )

    def _write(self) -> None:
        # Imported here, as only reports need the template engine.
        from builtin_rules.reports.profiler.page import write

        write(self.folder, self._report_data())
