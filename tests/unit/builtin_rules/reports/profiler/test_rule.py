"""ProfilerReport: seventeen rules over the same windows; what it writes, when, what it takes."""

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from clocks import PatientClock
from fake_profiler_trial import FakeProfilerTrial, event, judge_windows
from profiler_writer import cpu, gpu, memory

from builtin_rules.profiler_table import PROFILER_RULES, CPUBottleneck, ProfilerReport, StepOutlier
from builtin_rules.reports.profiler.sub_rules import SUB_RULES
from smdebug.exceptions import RuleEvaluationConditionMet, SMDebugRuntimeError, SMDebugValueError
from smdebug.rules import invoke_rule

MINUTE = 120  # samples
STEP = "Step:ModeKeys.TRAIN"


def a_trial(minutes: float = 12, **more: Any) -> FakeProfilerTrial:
    """Return a job whose GPU does nothing and whose core is busy: processors are the bottleneck."""
    count = round(minutes * MINUTE)
    return FakeProfilerTrial(
        cpu(np.full(count, 95.0)), gpu(np.full(count, 5.0)), memory(np.full(count, 9.0)), **more
    )


def reports(folder: Path) -> dict[str, dict[str, Any]]:
    found = (folder / "profiler-output" / "profiler-reports").glob("*.json")
    return {path.stem: json.loads(path.read_text()) for path in found}


def test_it_is_constructed_without_a_trial() -> None:
    """It is asked what it requires before there is one."""
    assert ProfilerReport(None).rules


def test_it_judges_as_its_rules_do_alone_and_finds_nothing_itself(tmp_path: Path) -> None:
    events = [event(STEP, 2.0 * at, 1.0 + at % 2, step_num=str(at)) for at in range(300)]
    judged = judge_windows(ProfilerReport, a_trial(events=events), output_dir=tmp_path)
    assert (judged.met, judged.findings, judged.skipped) == ([], [], {})
    found = reports(tmp_path)
    assert set(found) == set(SUB_RULES) == set(PROFILER_RULES) - {"ProfilerReport"}
    for name, rule in SUB_RULES.items():
        alone = judge_windows(rule, a_trial(events=events), output_dir=tmp_path / "alone")
        assert alone.rule.rule_name == name
        assert reports(tmp_path / "alone")[name] == found[name], name
    assert found["CPUBottleneck"]["RuleTriggered"] == 4
    assert found["StepOutlier"]["Datapoints"] == 300
    assert list(judged.report["Details"]) == list(SUB_RULES)


def test_a_window_is_read_once(tmp_path: Path) -> None:
    trial = a_trial(3, events=[event(STEP, 30.0, 1.0)])
    judge_windows(ProfilerReport, trial, output_dir=tmp_path)
    assert trial.reads == 3 + 1


def test_nothing_in_a_window_is_not_judged(tmp_path: Path) -> None:
    trial = FakeProfilerTrial(cpu([1.0]), cpu([1.0], begin_s=150.0))
    judged = judge_windows(ProfilerReport, trial, output_dir=tmp_path)
    assert judged.skipped == {1: "no profiler data in this window"}


def test_a_rule_that_fails_is_named_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked = []

    def fail(_: CPUBottleneck, step: int) -> bool:
        asked.append(step)
        assert step != 1, "a <b>bug</b>\nof ours"
        return False

    monkeypatch.setattr(CPUBottleneck, "judge", fail)
    monkeypatch.setattr(logging.getLogger("smdebug"), "propagate", True)
    caplog.set_level(logging.WARNING, "smdebug")
    judged = judge_windows(ProfilerReport, a_trial(), output_dir=tmp_path)
    rule = judged.rule
    assert isinstance(rule, ProfilerReport)
    failures = {one.name: one.failure for one in rule.rules if one.failure}
    assert (list(failures), asked) == (["CPUBottleneck"], [0, 1])
    assert failures["CPUBottleneck"].startswith("AssertionError at window 1: a <b>bug</b> of ours")
    assert caplog.text.count("Rule 'CPUBottleneck' failed: AssertionError at window 1") == 1
    found = reports(tmp_path)
    assert (found["CPUBottleneck"]["RuleTriggered"], len(found)) == (0, 17)
    assert found["LowGPUUtilization"]["RuleTriggered"] == 4
    page = (tmp_path / "profiler-output" / "profiler-report.html").read_text()
    assert "CPUBottleneck failed and stopped judging: AssertionError at window 1" in page
    assert "a &lt;b&gt;bug&lt;/b&gt; of ours" in page


def test_a_rule_whose_report_fails_keeps_its_last_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: StepOutlier) -> dict[str, Any]:
        raise ZeroDivisionError

    monkeypatch.setattr(StepOutlier, "details", fail)
    judge_windows(ProfilerReport, a_trial(2), output_dir=tmp_path)
    found = reports(tmp_path)
    assert (len(found), found["StepOutlier"]["Details"]) == (17, {})
    assert found["StepOutlier"]["RuleParameters"].startswith("threshold:3\n")
    page = (tmp_path / "profiler-output" / "profiler-report.html").read_text()
    assert (
        "StepOutlier failed and stopped judging: ZeroDivisionError while building its report"
        in page
    )


@pytest.mark.parametrize("length_s", [20, 60, 150, 3600])
def test_a_rule_keeps_to_windows_of_its_own_length(tmp_path: Path, length_s: int) -> None:
    given = {"CPUBottleneck_scan_interval_us": 1_000_000 * length_s, "CPUBottleneck_patience": 100}
    trial = FakeProfilerTrial(
        *(cpu(np.full(300, 95.0), begin_s=at) for at in (0.0, 800.0)),
        *(gpu(np.full(300, 5.0), begin_s=at) for at in (0.0, 800.0)),
    )
    judge_windows(ProfilerReport, trial, output_dir=tmp_path, **given)
    alone = judge_windows(
        CPUBottleneck,
        trial,
        output_dir=tmp_path / "alone",
        scan_interval_us=1_000_000 * length_s,
        patience=100,
    )
    assert reports(tmp_path)["CPUBottleneck"] == reports(tmp_path / "alone")["CPUBottleneck"]
    assert alone.report["RuleTriggered"] == len(alone.met) > 0


def test_a_long_window_is_judged_though_those_after_it_have_no_data(tmp_path: Path) -> None:
    given = {"CPUBottleneck_scan_interval_us": 150_000_000, "CPUBottleneck_patience": 100}
    trial = FakeProfilerTrial(
        *(series(np.full(200, 95.0), begin_s=at) for at in (0.0, 800.0) for series in (cpu, gpu))
    )
    rule = ProfilerReport(trial, CPUBottleneck_gpu_threshold=100, **given)
    rule.output_dir = tmp_path
    for step in (0, 1, 13, 14):  # as the runner walks: there is nothing between
        rule.invoke(step)
    rule.invoke_at_end(14)
    assert reports(tmp_path)["CPUBottleneck"]["Datapoints"] == 400
    (bottleneck,) = (one for one in rule.rules if one.name == "CPUBottleneck")
    assert bottleneck.judged == 2


def test_it_is_written_at_once_then_every_minute_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = PatientClock(1e6)
    rule = ProfilerReport(a_trial(7), clock=clock)
    rule.output_dir = tmp_path
    written = []
    monkeypatch.setattr(
        "builtin_rules.reports.profiler.page.write",
        lambda folder, gathered: written.append((clock.now, folder, gathered.ended)),
    )
    for step in range(7):
        rule.invoke(step)
        clock.sleep(25.0)
    rule.invoke_at_end(6)
    rule.invoke_at_end(6)
    assert written == [
        (0.0, tmp_path, False),
        (75.0, tmp_path, False),
        (150.0, tmp_path, False),
        (175.0, tmp_path, True),
    ]


def test_the_files_are_whole_and_no_others_are_there(tmp_path: Path) -> None:
    judge_windows(ProfilerReport, a_trial(2), output_dir=tmp_path)
    files = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")}
    assert files == {
        "profiler-output/profiler-report.html",
        "profiler-output/profiler-report.ipynb",
        *(f"profiler-output/profiler-reports/{name}.json" for name in SUB_RULES),
    }


def test_it_goes_where_the_trial_says_and_else_to_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trial = a_trial(1)
    invoke_rule(ProfilerReport(trial))
    assert len(reports(tmp_path)) == 17
    trial.output_dir = str(tmp_path / "trial")
    invoke_rule(ProfilerReport(trial))
    assert len(reports(tmp_path / "trial")) == 17


def test_no_report_at_all_is_an_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger("smdebug"), "propagate", True)
    caplog.set_level(logging.WARNING, "smdebug")
    (tmp_path / "profiler-output").touch()
    rule = ProfilerReport(a_trial(2))
    rule.output_dir = tmp_path
    rule.invoke(0)
    assert "Report not written: " in caplog.text
    with pytest.raises(SMDebugRuntimeError, match=r"No report could be written to '.*': "):
        rule.invoke_at_end(0)


def test_a_report_that_was_written_before_is_enough(tmp_path: Path) -> None:
    rule = ProfilerReport(a_trial(2))
    rule.output_dir = tmp_path
    rule.invoke(0)
    rule.invoke(1)
    notebook = tmp_path / "profiler-output" / "profiler-report.ipynb"
    notebook.unlink()
    notebook.mkdir()
    assert rule.invoke_at_end(1) is False


def test_a_trial_without_anything_gets_no_report(tmp_path: Path) -> None:
    rule = ProfilerReport(a_trial(1))
    rule.output_dir = tmp_path
    assert rule.invoke_at_end(0) is False
    assert list(tmp_path.iterdir()) == []


def test_the_condition_is_met_at_the_end_if_that_is_asked_for(tmp_path: Path) -> None:
    rule = ProfilerReport(a_trial(), met_if_triggered="True")
    rule.output_dir = tmp_path
    with pytest.raises(RuleEvaluationConditionMet, match="ProfilerReport at step 11"):
        invoke_rule(rule, raise_eval_cond=True)
    findings, _ = rule.take_evidence()
    assert [(one.step, one.tensor, one.measured) for one in findings] == [
        (11, "CPUBottleneck", 4),
        (11, "LowGPUUtilization", 4),
    ]


# -- parameters ------------------------------------------------------------------------------


def test_every_parameter_of_every_rule_is_declared() -> None:
    names = [one.name for one in ProfilerReport.PARAMS]
    assert names[:2] == ["BatchSize_cpu_threshold_p95", "BatchSize_gpu_threshold_p95"]
    assert names[-3:] == ["met_if_triggered", "opt_out_telemetry", "custom_rule_parameters"]
    assert len(names) == len({one.lower() for one in names})
    assert len(names) == 3 + sum(len(rule.PARAMS) for rule in SUB_RULES.values())


@pytest.mark.parametrize(
    "given",
    [
        {"CPUBottleneck_threshold": "90", "opt_out_telemetry": "True"},
        {"CPUBottleneck_threshold": 90},
        {"cpubottleneck_THRESHOLD": "90", "Opt_Out_Telemetry": True},
        {"custom_rule_parameters": "{'CPUBottleneck_threshold': '90'}"},
        {"custom_rule_parameters": " {'cpubottleneck_threshold': 90, 'StepOutlier_mode': None,} "},
        {"custom_rule_parameters": "", "CPUBottleneck_threshold": "90.0"},
        {"custom_rule_parameters": None, "CPUBottleneck_threshold": "90.0"},
    ],
)
def test_spellings(given: dict[str, Any]) -> None:
    rule = ProfilerReport(a_trial(1), **given)
    values = {one.name: one.rule for one in rule.rules}
    bottleneck = values["CPUBottleneck"]
    assert isinstance(bottleneck, CPUBottleneck)
    assert (bottleneck.threshold, bottleneck.cpu_threshold) == (90, 90)
    assert bottleneck.report["RuleParameters"].startswith("threshold:90\n")
    outlier = values["StepOutlier"]
    assert isinstance(outlier, StepOutlier)
    assert (outlier.mode, outlier.stddev) == (None, 3)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"CPUBottleneck_treshold": "1"},
            (
                "Unknown parameter 'CPUBottleneck_treshold' of rule 'ProfilerReport'. "
                "Did you mean 'CPUBottleneck_threshold'? Its parameters: 'BatchSize_cpu_thr"
            ),
        ),
        ({"threshold": "1"}, "Unknown parameter 'threshold' of rule 'ProfilerReport'."),
        (
            {"custom_rule_parameters": "{'Nothing_x': 1}"},
            "Unknown parameter 'Nothing_x' of rule 'ProfilerReport'.",
        ),
        (
            {"cpubottleneck_threshold": "101"},
            "Parameter 'CPUBottleneck_threshold' must be a finite number in [0, 100], got '101'.",
        ),
        (
            {"CPUBottleneck_threshold": 1, "cpubottleneck_threshold": 2},
            "Parameter 'CPUBottleneck_threshold' must be given once, got 1 and 2.",
        ),
        (
            {
                "CPUBottleneck_threshold": 1,
                "custom_rule_parameters": "{'CPUBottleneck_threshold': 1}",
            },
            "Parameter 'CPUBottleneck_threshold' must be given once, got 1 and 1.",
        ),
        (
            {"StepOutlier_scan_interval_us": "999999"},
            "Parameter 'StepOutlier_scan_interval_us' must be a whole number >= 1000000, got",
        ),
        ({"opt_out_telemetry": "perhaps"}, "Parameter 'opt_out_telemetry' must be true, false,"),
    ],
)
def test_what_is_wrong_with_parameters(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(SMDebugValueError) as raised:
        ProfilerReport(a_trial(1), **given)
    assert str(raised.value).startswith(problem)


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "{'a': [1]}",
        "{'a': print(1)}",
        "{'a': __import__}",
        "{'a': {}}",
        "{1: 2}",
        "{'a'}",
        "{'a': 1} or {'b': 2}",
        "{'a': 'b'",
        f"{{'a': {'-' * 9000}1}}",
        f"{{'a': '{'x' * 10_000}'}}",
        "{'a': \0}",
        7,
    ],
)
def test_a_text_that_is_no_flat_dict_is_refused_unevaluated(
    text: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = "'custom_rule_parameters' must be the text of a flat Python dict"
    with pytest.raises(SMDebugValueError, match=problem) as raised:
        ProfilerReport(a_trial(1), custom_rule_parameters=text)
    assert len(str(raised.value)) < 400
    assert capsys.readouterr().out == ""
