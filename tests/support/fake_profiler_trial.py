"""A profiler trial made of arrays, and a rule that judges each of its windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from profiler_writer import BEGIN_US, Series

from builtin_rules.profiler.statistics.window_rule import WindowRule
from rule_core.profiler.system.samples import SeriesKey, SystemSamples
from rule_core.profiler.traces.event import TraceEvent
from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from smdebug.exceptions import NoMoreProfilerData
from smdebug.rules.extensions import Finding

SECOND = 1_000_000


def event(
    name: str,
    start_s: float,
    duration_s: float,
    *,
    phase: str | None = None,
    node: str = "algo-1-51",
    pid: int = 51,
    file_type: str = "PythontimelineMetrics",
    **args: Any,
) -> TraceEvent:
    """Return an event; `start_s` is a second of the job."""
    return TraceEvent(
        BEGIN_US + round(start_s * SECOND),
        name,
        round(duration_s * SECOND),
        1,
        1,
        args,
        node,
        "X",
        file_type,
        name if phase is None else phase,
        pid,
        1,
    )


class FakeProfilerTrial:
    """What a rule sees of a profiler trial, from memory."""

    name = "fake"

    def __init__(
        self, *series: Series, events: Sequence[TraceEvent] = (), end_s: float = 0.0
    ) -> None:
        self._samples = _samples(series)
        self._events = sorted(events, key=lambda event: (event.end_time, event.start_time))
        self.first_timestamp = BEGIN_US
        ends = [BEGIN_US + round(end_s * SECOND), *self._samples.time_us[-1:].tolist()]
        self.newest_timestamp = max([*ends, *(int(event.end_time) for event in events)])
        self.dynamic_refresh = True
        self.horizon: int | None = None
        self.judged: int | None = None
        self.is_whole = False
        self.reads = self.damaged = 0
        self.missed: dict[str, None] = {}
        self.waits: list[tuple[int, int]] = []

    @property
    def has_framework_data(self) -> bool:
        return bool(self._events)

    def wait_for_data(self, end_time: int, start_time: int) -> None:
        self.waits.append((end_time, start_time))
        if start_time > self.newest_timestamp:
            raise NoMoreProfilerData(end_time)

    def system_samples(self, start: int, end: int) -> SystemSamples:
        time_us = self._samples.time_us
        samples = self._samples.where((start <= time_us) & (time_us < end))
        self.reads += bool(len(samples))
        return samples

    def framework_events(self, start: int, end: int) -> list[TraceEvent]:
        events = [event for event in self._events if start <= event.end_time < end]
        self.reads += bool(events)
        return events


def _samples(series: Sequence[Series]) -> SystemSamples:
    keys: dict[SeriesKey, int] = {}
    times, values, numbers = [np.empty(0, np.int64)], [np.empty(0)], [np.empty(0, np.int32)]
    for one in series:
        values.append(np.asarray(one.values, np.float64))
        seconds = one.begin_s + one.every_s * np.arange(len(values[-1]))
        times.append(BEGIN_US + np.round(seconds * SECOND).astype(np.int64))
        number = keys.setdefault(SeriesKey(one.node, one.type, one.dimension, one.name), len(keys))
        numbers.append(np.full(len(seconds), number, np.int32))
    time_us, value, number = map(np.concatenate, (times, values, numbers))
    order = np.argsort(time_us, kind="stable")
    return SystemSamples(time_us[order], value[order], number[order], tuple(keys))


@dataclass(frozen=True, slots=True)
class Windows:
    """What a rule said: the windows that meet its condition, why others were skipped, and more."""

    met: list[int]
    skipped: dict[int, str]
    findings: list[Finding]
    report: dict[str, Any]
    rule: WindowRule


def judge_windows(
    rule_class: type[WindowRule],
    trial: FakeProfilerTrial,
    *,
    output_dir: Path | None = None,
    **params: Any,
) -> Windows:
    """Let a rule judge all windows, whatever it finds, and the end."""
    rule = rule_class(trial, **params)
    rule.output_dir = output_dir
    invoker = InProcessInvoker(rule_class.__name__, rule, [trial])  # type: ignore[list-item] - a fake
    did = {}
    while (result := invoker.judge(len(did))).did is not InvocationOutcome.ENDED:
        assert result.did is not InvocationOutcome.FAILED, result
        did[len(did)] = result
    assert {result.did for result in did.values()} <= {
        InvocationOutcome.MET,
        InvocationOutcome.CLEAR,
        InvocationOutcome.SKIPPED,
    }, did
    assert invoker.finish(len(did) - 1).did in {InvocationOutcome.CLEAR, InvocationOutcome.SKIPPED}
    return Windows(
        [step for step, result in did.items() if result.did is InvocationOutcome.MET],
        {
            step: result.reason
            for step, result in did.items()
            if result.did is InvocationOutcome.SKIPPED
        },
        [finding for result in did.values() for finding in result.findings],
        rule.report,
        rule,
    )
