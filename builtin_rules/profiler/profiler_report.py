"""ProfilerReport: judges by all profiler rules at once, and writes a report that people read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from builtin_rules.profiler.parameters import MINUTE_US
from builtin_rules.profiler.window_rule import WindowRule
from builtin_rules.profiler_report import parameters
from builtin_rules.profiler_report.gathered import Gathered
from builtin_rules.profiler_report.shared_window import SharedWindow
from builtin_rules.profiler_report.step_history import StepHistory
from builtin_rules.profiler_report.sub_rules import SUB_RULES, SubRule
from builtin_rules.profiler_report.usage_history import UsageHistory
from smdebug.core.clock import Clock, SystemClock
from smdebug.exceptions import SMDebugRuntimeError
from smdebug.rules import Page

REFRESH_S: Final = 60.0
NOTHING: Final = "no profiler data in this window"
TRIGGERED: Final = "triggered"


class ProfilerReport(WindowRule):
    """Met when never: this rule writes a report, in which the findings of eleven others stand.

    It judges each window by BatchSize, CPUBottleneck, Dataloader, GPUMemoryIncrease, IOBottleneck,
    LoadBalancing, LowGPUUtilization, MaxInitializationTime, OverallFrameworkMetrics,
    OverallSystemUsage and StepOutlier, whose conditions stand on their own pages. The windows are a
    minute long; a rule that is given another length by its own parameter keeps to that one. A rule
    that fails is named in the report, and the others go on.

    It writes `profiler-output/profiler-report.html`, which needs no other file and no network, the
    notebook `profiler-report.ipynb` beside it, and `profiler-output/profiler-reports/<Rule>.json`
    of each rule: after the first window, afterwards at most once a minute, and at the end. They go
    to the output folder of the rule job; in Python to that of the trial, or to the working folder.

    With `met_if_triggered` the condition is met at the end of the data, if any rule was triggered.
    """

    READS = "the system metrics and framework events that the rules in it read."
    PARAMS = parameters.declared()
    PAGE = Page(
        why="""
        One page tells how a job used its machines, what slowed it down, and what to do first. It
        can be kept, sent and printed.
        """,
        save="""
        Nothing of the training script: the platform's profiler samples the system metrics. Steps,
        operators and data loading are in the report if the job was run with framework profiling.
        """,
        missing="""
        A window without any profiler data is skipped. What a job did not save has no chart: the
        page says so instead. Of each rule it says how many windows were judged, and why others
        were not.
        """,
        remedy="""
        - It does not fire by itself. Open `profiler-output/profiler-report.html` in the output
          folder; what is worth doing first stands at its top.
        - For an exit code or an action, evaluate the rules themselves, or set `met_if_triggered`.
        """,
        limits="""
        Of a long job charts show parts of time: the smallest and the largest value of each part
        are exact, the median is to a point. Of more than 600 devices the others have no chart.
        """,
    )
    scan_interval_us = MINUTE_US
    met_if_triggered: bool

    def __init__(
        self, base_trial: Any, action_str: Any = "", *, clock: Clock | None = None, **given: Any
    ) -> None:
        super().__init__(base_trial, **self.respelled(given))
        self._action_str = action_str or ""
        self.clock = clock or SystemClock()
        self._shared = SharedWindow(base_trial)
        values = {one.name: getattr(self, one.name) for one in self.PARAMS}
        self.rules = [
            SubRule(name, rule(self._shared, **parameters.of_rule(name, values)))
            for name, rule in SUB_RULES.items()
        ]
        self._usage: UsageHistory | None = None
        self._steps: StepHistory | None = None
        self._tried_at: float | None = None
        self._written = False
        self._ended = False

    @classmethod
    def respelled(cls, raw: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return parameters by their declared names, those in the text of a dict among them.

        Raises
        ------
        SMDebugValueError
            If the text is no flat dict, or a parameter is given twice.
        """
        return parameters.respelled(raw, {one.name.lower(): one.name for one in cls.PARAMS})

    def judge(self, step: int) -> bool:
        """Judge window `step` by all rules, and write the report if it is time."""
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
        self.has_seen(self._report["Datapoints"] + len(samples) + len(events))
        now = self.clock.monotonic()
        if self._tried_at is None or now - self._tried_at >= REFRESH_S:
            self._tried_at = now
            self._try_to_write()
        return False if len(samples) or events else self.not_judged(NOTHING)

    def invoke_at_end(self, step: int) -> bool:
        """Write the report as it is at the end; say whether the condition is met then.

        Raises
        ------
        SMDebugRuntimeError
            If there is something to report, and no report at all could be written.
        """
        for rule in self.rules:
            rule.finish()
        self._shared.forget()
        is_first, self._ended = not self._ended, True
        if is_first and self._usage is not None:
            reason = self._try_to_write()
            if reason and not self._written:
                msg = f"No report could be written to {str(self.folder)!r}: {reason}."
                raise SMDebugRuntimeError(msg)
        met = [rule for rule in self.rules if self.met_if_triggered and rule.triggered]
        for rule in met:
            self.found(step, rule.name, measured=rule.triggered, limit=0, note=TRIGGERED)
        return bool(met)

    def details(self) -> dict[str, Any]:
        """Return the reports of the rules, by name."""
        return {rule.name: dict(rule.report) for rule in self.rules}

    @property
    def folder(self) -> Path:
        """Where the report is written."""
        return Path(self.output_dir or getattr(self.base_trial, "output_dir", None) or ".")

    def _gathered(self) -> Gathered:
        trial = self.base_trial
        return Gathered(
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
        )

    def _try_to_write(self) -> str:
        """Write the report; return what hinders it."""
        # Imported here: the page's template engine is needed by nobody else at start-up.
        from builtin_rules.profiler_report.output import write  # noqa: PLC0415

        try:
            write(self.folder, self._gathered())
        except OSError as err:
            self.logger.warning("Report not written: %s", err)
            return err.strerror or str(err)
        self._written = True
        return ""
