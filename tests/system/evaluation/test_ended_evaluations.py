"""The same command after its evaluation has ended: it is finished, and its verdict repeated."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
import saved
import vanishing
from click.testing import CliRunner
from evaluating import END, Script, WoundClock, configured, json_lines, rule_job
from memory_store import MemoryStore
from told import DOWN, ListSink

from rule_core.severity import Severity
from rule_runner.cli import main
from rule_runner.config.defaults import RuleMode
from rule_runner.engine.outcome import EvaluationOutcome, exit_code
from rule_runner.engine.runner import Runner
from rule_runner.errors import OutputError
from smdebug.rules import Rule


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class Above(Rule):
    """Met at each loss above a limit; counts its steps."""

    limit = 1.0
    judged: list[int]

    def invoke_at_step(self, step: int) -> bool:
        self.judged.append(step)
        value = float(self.base_trial.tensor("loss").value(step)[0])
        return value > self.limit and self.found(step, "loss", measured=value, limit=self.limit)


class Never(Above):
    limit = 1e9


class KilledError(BaseException):
    """The process ends here."""


def die(*_: object) -> None:
    raise KilledError


@pytest.fixture(autouse=True)
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the steps that rules are asked to judge."""
    found: list[int] = []
    monkeypatch.setattr(Above, "judged", found, raising=False)
    return found


def losses(count: int = 4, *, ended: bool = True) -> dict[str, bytes]:
    steps = {step: {"loss": np.float32([step])} for step in range(count)}
    return evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)


def evaluate(
    output: Path,
    *rules: Any,
    files: dict[str, bytes] | None = None,
    waits: tuple[Callable[[], object], ...] = (),
    sinks: tuple[ListSink, ...] = (),
    deadline: float = 30.0,
    **more: Any,
) -> EvaluationOutcome:
    config = configured(output, rules or [Above], sink_deadline=deadline, **more)
    script = Script(WoundClock(), waits)
    store = MemoryStore(losses() if files is None else files)
    return evaluating.runner(config, store, script, sinks=sinks).run()


def statuses(found: EvaluationOutcome) -> list[str]:
    return [one.status for one in found.result.rules]


def test_what_sinks_lack_is_sent_and_the_verdict_told_again_without_judging(
    tmp_path: Path, judged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    down, sink = ListSink(), ListSink()
    down.failure = DOWN
    with monkeypatch.context() as patch:
        patch.setattr(Runner, "_drain", die)
        with pytest.raises(KilledError):
            evaluate(tmp_path, sinks=(down,))
    before = (tmp_path / "results.json").read_bytes()
    del judged[:]
    found = evaluate(tmp_path, sinks=(sink,))
    assert (judged, statuses(found), found.undelivered_events) == ([], ["IssuesFound"], ())
    assert sink.taken == [one["id"] for one in json_lines(tmp_path / "events.jsonl")]
    assert [exit_code(found, fail_on=on) for on in (None, Severity.WARNING)] == [0, 10]
    (result,) = found.result.rules
    assert found.earlier == result.ended_at
    assert (tmp_path / "results.json").read_bytes() == before
    assert (found.result.trial.steps, found.result.trial.ended) == (4, True)
    evaluate(tmp_path, sinks=(again := ListSink(),))
    assert again.taken == []


@pytest.mark.parametrize(
    ("rule", "more", "again"),
    [
        pytest.param(Above, {}, False, id="first-issue-decides"),
        pytest.param(Above, {"keep_going": True}, True, id="more-issues-may-come"),
        pytest.param(Never, {}, True, id="an-issue-may-come"),
    ],
)
def test_a_trial_that_had_not_ended_is_judged_again_unless_that_changes_nothing(
    tmp_path: Path, judged: list[int], rule: type[Rule], more: dict[str, Any], again: bool
) -> None:
    files = losses(3, ended=False)
    (before,) = evaluate(tmp_path, rule, files=files, wait=False, **more).result.rules
    del judged[:]
    found = evaluate(tmp_path, rule, files=losses(5), **more)
    (result,) = found.result.rules
    assert judged == ([0, 1, 2, 3, 4] if again else [])
    assert result.run_id == before.run_id
    assert result.status == ("NoIssuesFound" if rule is Never else "IssuesFound")
    assert result.trial_ended == again


def test_an_evaluation_that_was_stopped_goes_on_and_takes_no_verdict_back(
    tmp_path: Path, judged: list[int]
) -> None:
    files = losses(ended=False)
    jobs = [Above, Never]
    assert statuses(evaluate(tmp_path, *jobs, files=files, timeout=5)) == ["IssuesFound", "Stopped"]
    again = evaluate(tmp_path, *jobs, files={}, timeout=5)
    assert statuses(again) == ["Stopped", "Stopped"]
    events = json_lines(tmp_path / "events.jsonl")
    told = [one["RuleEvaluationStatus"] for one in rules_of(events[-1])]
    assert told == ["IssuesFound", "Stopped"]
    files[END] = b""
    del judged[:]
    assert statuses(evaluate(tmp_path, *jobs, files=files)) == ["IssuesFound", "NoIssuesFound"]
    assert len({one["detail"]["RunId"] for one in events}) == 1
    assert judged


def rules_of(event: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = event["detail"]["DebugRuleEvaluationStatuses"]
    return found


def test_another_mode_is_judged_again(tmp_path: Path, judged: list[int]) -> None:
    evaluate(tmp_path, rule_job(Above, mode=RuleMode.OBSERVE))
    del judged[:]
    found = evaluate(tmp_path, rule_job(Above))
    assert (judged, exit_code(found, fail_on=Severity.WARNING)) == ([0, 1, 2], 10)


def test_another_rule_beside_ended_ones_is_another_evaluation(tmp_path: Path) -> None:
    evaluate(tmp_path, rule_job(Above, "a"), rule_job(Above, "b"))
    message = r"holds an ended evaluation without rule job 'c'\. .*--overwrite\."
    with pytest.raises(OutputError, match=message):
        evaluate(tmp_path, rule_job(Above, "a"), rule_job(Above, "c"))


def test_a_signal_while_an_ended_evaluation_is_finished_spoils_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(tmp_path)
    before = {one.name: one.read_bytes() for one in tmp_path.glob("*.json*")}
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    runner = evaluating.runner(configured(tmp_path, [Above]), MemoryStore(losses()))
    runner._end_at_once(15)
    runner.run()
    assert ended == [143]
    assert {one.name: one.read_bytes() for one in tmp_path.glob("*.json*")} == before


@pytest.mark.parametrize("form", ["table", "json"])
def test_killed_after_the_verdict_the_same_command_gives_it_with_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    trial = vanishing.write_trial(tmp_path / "trial")
    command = ["evaluate", "--trial", str(trial), "--rule", "VanishingGradient"]
    command += ["--output", str(tmp_path / "out"), "--fail-on-issues", "--format", form]
    with monkeypatch.context() as patch:
        patch.setattr("rule_runner.report.write_report", die)
        with pytest.raises(KilledError):
            CliRunner().invoke(main, command, catch_exceptions=False)
    assert not (tmp_path / "out" / "report.html").exists()
    first, second = (CliRunner().invoke(main, command) for _ in range(2))
    assert (
        (first.exit_code, first.stdout) == (10, second.stdout) == (second.exit_code, first.stdout)
    )
    assert "IssuesFound" in first.stdout
    assert (tmp_path / "out" / "report.html").exists()
    ended_at = saved.result(tmp_path / "out")["ended_at"]
    assert first.stderr == (
        f"Output folder '{tmp_path / 'out'}' holds this evaluation, which ended at {ended_at}: "
        "nothing was judged again. Use --overwrite to evaluate it again.\n"
    )
    assert CliRunner().invoke(main, [*command, "--overwrite"]).stderr == ""
