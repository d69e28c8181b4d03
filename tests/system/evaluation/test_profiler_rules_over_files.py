"""Profiler rules over files: the same verdicts as over arrays, in the container's loop."""

from pathlib import Path

import numpy as np
import pytest
import timeline_writer
from profiler_writer import BEGIN_US, END, Series, cpu, files, gpu, write

from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.profiler_table import PROFILER_RULES
from smdebug.exceptions import NoMoreProfilerData, RuleEvaluationConditionMet
from smdebug.trials import create_trial


def run(rule: WindowRule) -> list[int]:
    """Invoke a rule window after window, as the documented loop does; return where it is met."""
    met = []
    for step in range(100):
        try:
            rule.invoke(step)
        except RuleEvaluationConditionMet:
            met.append(step)
        except NoMoreProfilerData:
            return met
    raise AssertionError


@pytest.mark.parametrize("name", [one for one in PROFILER_RULES if one != "ProfilerReport"])
def test_a_job_of_108_s_on_processors_alone_is_silent(name: str, tmp_path: Path) -> None:
    series = [cpu([90.0] * 216, f"cpu{at}") for at in range(4)]
    waits = Series("cpu", "I/OWaitPercentage", "cpu0", [80.0] * 216)
    write(tmp_path, files(*series, waits) | END)
    rule = PROFILER_RULES[name](create_trial(str(tmp_path), profiler=True))
    assert run(rule) == []
    assert rule.report["RuleTriggered"] == 0
    if name == "OverallSystemUsage":
        assert rule.report["Datapoints"] == 5 * 216
        assert (rule.report["Details"]["GPU"], rule.report["Details"]["GPU memory"]) == ({}, {})


def test_the_last_incomplete_minute_is_judged(tmp_path: Path) -> None:
    values = np.r_[[90.0] * 120, [1.0] * 7]
    write(tmp_path, files(gpu(values)) | END)
    trial = create_trial(str(tmp_path), profiler=True)
    rule = PROFILER_RULES["LowGPUUtilization"](trial, patience=125, window=5)
    assert run(rule) == [1]


def test_a_late_first_step_in_a_timeline_is_found(tmp_path: Path) -> None:
    write(tmp_path, files(cpu([1.0] * 480)) | END)
    steps = [timeline_writer.step(at, 130e6 + at * 1e6, 5e5) for at in range(5)]
    timeline_writer.write(tmp_path, steps, start_us=BEGIN_US)
    trial = create_trial(str(tmp_path), profiler=True)
    rule = PROFILER_RULES["MaxInitializationTime"](trial, threshold=2)
    assert run(rule) == [2]
    assert rule.report["Details"]["step_num"] == {
        "first": BEGIN_US + 130_000_000,
        "last": BEGIN_US + 134_000_000,
    }
