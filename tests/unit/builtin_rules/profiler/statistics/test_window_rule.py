"""WindowRule: windows, waiting, the report, and its file."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import BEGIN_US, cpu, gpu

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL, NumberParam
from builtin_rules.profiler.statistics.report_file import plain, write_report
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.profiler_table import PROFILER_RULES
from smdebug.exceptions import NoMoreProfilerData, RuleEvaluationConditionMet, SMDebugValueError

MINUTE = 60_000_000


class Seen(WindowRule):
    """Remembers what it was shown; its condition is met when asked for."""

    PARAMS = (
        SCAN_INTERVAL.param,
        NumberParam("wanted", "Meets the condition.", default=0, unit="-"),
    )
    REPORTED = ("wanted", "scan_interval_us")
    wanted: float

    def __init__(self, base_trial: Any, scan_interval_us: Any = MINUTE, wanted: Any = 0) -> None:
        super().__init__(base_trial, scan_interval_us=scan_interval_us, wanted=wanted)
        self.seen: list[tuple[list[int], list[int]]] = []
        self.asked = 0

    def judge(self, step: int) -> bool:
        times = (self.samples(step).time_us - BEGIN_US).tolist()
        self.seen.append((times, [int(one.end_time) - BEGIN_US for one in self.events(step)]))
        assert (self.base_trial.dynamic_refresh, self.base_trial.horizon) == (False, step)
        return bool(self.wanted)

    def details(self) -> dict[str, Any]:
        self.asked += 1
        return {"windows": len(self.seen)}


def test_what_lies_on_a_border_belongs_to_the_later_window() -> None:
    trial = FakeProfilerTrial(
        cpu([0.0] * 3, every_s=60.0), events=[event("a", 59.0, 1.0), event("b", 59.0, 0.5)]
    )
    rule = judge_windows(Seen, trial).rule
    assert isinstance(rule, Seen)
    assert rule.seen == [([0], [59_500_000]), ([MINUTE], [MINUTE]), ([2 * MINUTE], [])]


def test_windows_have_the_length_that_is_given() -> None:
    rule = Seen(FakeProfilerTrial(cpu([0.0] * 5)), scan_interval_us="1000000")
    assert [rule.window_of(step) for step in (0, 2)] == [
        (BEGIN_US, BEGIN_US + 1_000_000),
        (BEGIN_US + 2_000_000, BEGIN_US + 3_000_000),
    ]


def test_invoke_waits_for_its_window_and_then_judges_it() -> None:
    trial = FakeProfilerTrial(cpu([0.0] * 5))
    rule = Seen(trial, wanted=1)
    with pytest.raises(RuleEvaluationConditionMet, match="Seen at step 0"):
        rule.invoke(0)
    assert trial.waits == [(BEGIN_US + MINUTE, BEGIN_US)]
    with pytest.raises(NoMoreProfilerData):
        rule.invoke(1)
    assert (trial.dynamic_refresh, trial.horizon) == (True, None)


def test_details_are_worked_out_when_they_are_asked_for() -> None:
    rule = judge_windows(Seen, FakeProfilerTrial(cpu([0.0] * 480))).rule
    assert isinstance(rule, Seen)
    assert rule.asked == 1
    assert rule.report["Details"] == {"windows": 4}
    assert rule.asked == 1
    rule.report = {"mine": 1}
    assert rule.report == {"mine": 1}


def test_parameters_of_the_report_are_a_line_each() -> None:
    rule = Seen(FakeProfilerTrial(cpu([0.0])), wanted="0.5")
    assert rule.report["RuleParameters"] == "wanted:0.5\nscan_interval_us:60000000"
    with pytest.raises(SMDebugValueError, match="'scan_interval_us' must be a whole number >= 1"):
        Seen(FakeProfilerTrial(cpu([0.0])), scan_interval_us=0)


def test_numbers_stay_whole() -> None:
    param = NumberParam("x", "X.", default=70, unit="-", minimum=0, maximum=100)
    assert (param.default_text, param.parse("2.5"), str(param.parse("10.0"))) == ("70", 2.5, "10")
    with pytest.raises(
        SMDebugValueError, match=r"must be a finite number in \[0, 100\], got '101'"
    ):
        param.parse("101")


@pytest.mark.parametrize("name", [one for one in PROFILER_RULES if one != "ProfilerReport"])
def test_the_report_is_written_at_the_end(name: str, tmp_path: Path) -> None:
    judged = judge_windows(PROFILER_RULES[name], FakeProfilerTrial(gpu([1.0])), output_dir=tmp_path)
    path = tmp_path / "profiler-output" / "profiler-reports" / f"{name}.json"
    assert json.loads(path.read_text()) == plain(judged.report)
    assert list(path.parent.iterdir()) == [path]


def test_a_report_that_cannot_be_written_costs_no_verdict(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "profiler-output").touch()
    monkeypatch.setattr(logging.getLogger("smdebug"), "propagate", True)
    judge_windows(Seen, FakeProfilerTrial(cpu([0.0])), output_dir=tmp_path)
    assert "Report not written" in caplog.text


def test_a_report_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rule_core.storage.local_output.LocalPendingFile.publish", full)
    with pytest.raises(OSError, match="No space left"):
        write_report(tmp_path, "Seen", {})
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_what_json_cannot_hold_gets_a_name() -> None:
    assert plain(
        {
            "nan": float("nan"),
            "far": [np.inf, -np.inf],
            "array": np.array([[1, 2]]),
            "flag": np.bool_(True),
            "text": "x",
            "none": None,
            "path": Path("a"),
        }
    ) == {
        "nan": "NaN",
        "far": ["Infinity", "-Infinity"],
        "array": [[1, 2]],
        "flag": True,
        "text": "x",
        "none": None,
        "path": "a",
    }
