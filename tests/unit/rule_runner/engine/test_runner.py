"""Runner: evaluations from their opening to their verdicts, over trials in memory."""

import signal
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import evaluating
import msgspec
import numpy as np
import pytest
import rawtrial
import saved
from evaluating import END, Script, WoundClock, configured, json_lines, rule_job, runner
from faulty_store import REMOTE, CountingStore
from memory_store import MemoryStore
from told import DOWN, ListSink

from rule_core.severity import Severity
from rule_core.storage.base import StorageUnavailableError
from rule_runner.engine.observer import Observer
from rule_runner.engine.outcome import EvaluationOutcome, exit_code
from rule_runner.engine.runner import Runner
from rule_runner.engine.stop_requests import Signals, StopReason
from rule_runner.engine.verdicts import Verdicts
from rule_runner.errors import ClientError, OutputError, TrialError
from rule_runner.notify.delivery import Undelivered
from rule_runner.notify.event import Event
from rule_runner.notify.publisher import EventPublisher
from rule_runner.notify.sinks import Sent
from rule_runner.report import text
from rule_runner.results import durable_files
from rule_runner.results.schema import RuleResult
from rule_runner.steps.tensor_steps import TensorSteps
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import NoMoreData, RuleEvaluationConditionMet, StepNotYetAvailable
from smdebug.rules import Rule

NO_DATA = "ClientError: No debugging data was saved by the training job."


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def losses(*values: float, ended: bool = True) -> dict[str, bytes]:
    steps = {at: {"loss": np.float32([value])} for at, value in enumerate(values)}
    return evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)


class Below(Rule):
    """Met when the loss is below a limit."""

    limit = 0.5

    def invoke_at_step(self, step: int) -> bool:
        loss = float(self.base_trial.tensor("loss").value(step)[0])
        return loss < self.limit and self.found(step, "loss", measured=loss, limit=self.limit)


class Never(Below):
    limit = -1.0


class Raises(Rule):
    at = 40

    def invoke_at_step(self, step: int) -> bool:
        if step == self.at:
            {}["conv1"]
        return bool(self.base_trial.tensor("loss").value(step)[0] < -1)


class Reads(Rule):
    """Reads nothing."""

    def invoke_at_step(self, step: int) -> bool:
        del step
        self.base_trial.tensor_names(collection="gradients")
        return False


class Slow(Below):
    """Calls something while it judges a step."""

    during: dict[int, Callable[[], object]]

    def invoke_at_step(self, step: int) -> bool:
        self.during.get(step, int)()
        return super().invoke_at_step(step)


def run(
    output: Path,
    files: dict[str, bytes],
    *rules: Any,
    script: Script | None = None,
    observer: Observer | None = None,
    **more: Any,
) -> EvaluationOutcome:
    config = configured(output, rules, **more)
    with Signals() as signals:
        options = {"observer": observer, "signals": signals}
        return runner(config, MemoryStore(files), script, **options).run()


def only(found: EvaluationOutcome) -> RuleResult:
    (result,) = found.result.rules
    return result


def seen(result: RuleResult) -> tuple[str, int | None, int]:
    return result.outcome, result.step, result.coverage.judged


@pytest.mark.parametrize(
    ("severity", "outcome", "codes"),
    [
        (Severity.NOTE, "NoIssuesFound", [0, 0, 0]),
        (Severity.WARNING, "IssuesFound", [0, 0, 10]),
        (Severity.ERROR, "IssuesFound", [0, 10, 10]),
    ],
)
def test_the_severity_of_findings_decides_the_exit_code(
    tmp_path: Path, severity: Severity, outcome: str, codes: list[int]
) -> None:
    class Finds(Rule):
        SEVERITY = severity

        def invoke_at_step(self, step: int) -> bool:
            self.found(step)
            return True

    found = run(tmp_path, losses(3, 3, 3), rule_job(Finds))
    result = only(found)
    assert result.outcome == outcome
    counts = (result.findings_count, result.notes_count)
    assert counts == ((0, 3) if severity is Severity.NOTE else (1, 0))
    levels = (None, Severity.ERROR, Severity.WARNING)
    assert [exit_code(found, fail_on=level) for level in levels] == codes


def codes(found: EvaluationOutcome) -> tuple[int, int]:
    return exit_code(found, fail_on=None), exit_code(found, fail_on=Severity.WARNING)


# -- verdicts --------------------------------------------------------------------------------


def test_condition_met_ends_the_rule_with_evidence(tmp_path: Path) -> None:
    found = run(tmp_path, losses(1, 0.25, 0.1), Below)
    result = only(found)
    assert seen(result) == ("IssuesFound", 1, 2)
    assert [(one.step, one.tensor, one.measured, one.limit) for one in result.evidence] == [
        (1, "loss", 0.25, 0.5)
    ]
    assert result.status_details == (
        "RuleEvaluationConditionMet: Evaluation of the rule Below at step 1 "
        "resulted in the condition being met\n"
    )
    assert codes(found) == (0, 10)
    written = saved.result(tmp_path)
    assert (written["outcome"], written["step"]) == ("IssuesFound", 1)
    assert written["ended_at"] is not None
    assert [one["measured"] for one in json_lines(tmp_path / "findings.jsonl")] == [0.25]


def test_what_was_read_is_dropped_at_the_end(tmp_path: Path) -> None:
    store = CountingStore(MemoryStore(losses(3.0, 2.0)))
    job = runner(configured(tmp_path, [Never]), store)
    job.run()
    trial = job.step_sources.trials[0]
    before = len(store.reads)
    assert trial.tensor("loss").value(0)[0] == 3.0
    assert len(store.reads) > before


def test_no_issue_over_all_steps(tmp_path: Path) -> None:
    found = run(tmp_path, losses(1, 2, 3), Never)
    assert seen(only(found)) == ("NoIssuesFound", None, 3)
    assert only(found).status_details is None
    assert codes(found) == (0, 0)
    summary = found.result.trial
    assert (summary.steps, summary.first_step, summary.last_step, summary.ended) == (3, 0, 2, True)
    assert summary.workers == ["worker_0"]


def test_keep_going_finds_all(tmp_path: Path) -> None:
    result = only(run(tmp_path, losses(0.1, 1, 0.2), Below, keep_going=True))
    assert seen(result) == ("IssuesFound", 0, 3)
    assert [one.step for one in result.evidence] == [0, 2]
    assert [one["step"] for one in json_lines(tmp_path / "findings.jsonl")] == [0, 2]


def test_found_without_true_is_listed_by_keep_going_only(tmp_path: Path) -> None:
    class Hints(Rule):
        def invoke_at_step(self, step: int) -> bool:
            self.found(step, measured=1)
            return False

    plain = only(run(tmp_path / "a", losses(1, 2), Hints))
    going = only(run(tmp_path / "b", losses(1, 2), Hints, keep_going=True))
    assert (seen(plain), plain.findings_count) == (("NoIssuesFound", None, 2), 0)
    assert (seen(going), going.findings_count) == (("NoIssuesFound", None, 2), 2)
    assert plain.notes == [
        "Rule 'Hints' reported findings but returned False; they are dropped and do not count."
    ]
    assert not (tmp_path / "a" / "findings.jsonl").exists()
    assert len(json_lines(tmp_path / "b" / "findings.jsonl")) == 2


def test_range_limits_what_is_judged_and_not_what_is_looked_back_at(tmp_path: Path) -> None:
    class LooksBack(Rule):
        seen: list[list[int]]

        def invoke_at_step(self, step: int) -> bool:
            self.found(step, measured=str(self.base_trial.tensor("loss").prev_steps(step)))
            return True

    job = rule_job(LooksBack, start_step=2, end_step=4)
    result = only(run(tmp_path, losses(1, 2, 3, 4, 5), job, keep_going=True))
    assert [one.measured for one in result.evidence] == ["[0, 1, 2]", "[0, 1, 2, 3]"]
    assert (result.coverage.known, result.coverage.first, result.coverage.last) == (2, 2, 3)


def test_range_that_ends_before_the_trial_does_not_wait(tmp_path: Path) -> None:
    script = Script(WoundClock())
    job = rule_job(Never, end_step=2)
    found = run(tmp_path, losses(1, 2, 3, 4, ended=False), job, script=script)
    assert (seen(only(found)), found.stop) == (("NoIssuesFound", None, 2), None)


def test_range_without_steps_is_not_evaluated(tmp_path: Path) -> None:
    found = run(tmp_path, losses(1, 2), rule_job(Never, start_step=5))
    assert only(found).status_details == (
        "InsufficientInformationForRuleInvocation: Rule 'Never' judged none of 0 known steps. "
        "Trial '/trial' holds 2 steps (0 to 1), 1 tensors and the collections 'losses'."
    )


def test_rule_that_raises_is_one_sentence_and_leaves_the_others_alone(tmp_path: Path) -> None:
    found = run(tmp_path, losses(*[1.0] * 50), Raises, Never, rule_job(Below, "Other"))
    raises, never, other = found.result.rules
    assert (raises.status, raises.coverage.judged) == ("Error", 40)
    assert raises.status_details == (
        "ClientError: Rule 'Raises' raised KeyError at step 40: 'conv1'."
    )
    assert [seen(one) for one in (never, other)] == [("NoIssuesFound", None, 50)] * 2
    assert codes(found) == (1, 1)


def test_error_after_a_hit_is_a_note(tmp_path: Path) -> None:
    class Both(Raises):
        at = 2

        def invoke_at_step(self, step: int) -> bool:
            return super().invoke_at_step(step) or step == 1

    result = only(run(tmp_path, losses(1, 2, 3, 4), Both, keep_going=True))
    assert seen(result) == ("IssuesFound", 1, 2)
    assert result.notes == ["Rule 'Both' raised KeyError at step 2: 'conv1'."]


def test_end_of_rule_is_met_and_ends_it(tmp_path: Path) -> None:
    class Ends(Rule):
        def invoke_at_step(self, step: int) -> bool:
            raise RuleEvaluationConditionMet(self.rule_name, step, end_of_rule=step == 1)

    result = only(run(tmp_path, losses(1, 2, 3), Ends, keep_going=True))
    assert seen(result) == ("IssuesFound", 0, 2)


def test_rule_that_wants_no_more_steps_has_its_verdict(tmp_path: Path) -> None:
    class Enough(Never):
        def invoke_at_step(self, step: int) -> bool:
            if step == 2:
                raise NoMoreData(step, ModeKeys.TRAIN, 1)
            return super().invoke_at_step(step)

    result = only(run(tmp_path, losses(1, 2, 3, 4), Enough))
    assert seen(result) == ("NoIssuesFound", None, 2)
    assert result.coverage.skipped == {"the rule ended": 1}


# -- nothing judged --------------------------------------------------------------------------


def test_rule_that_read_nothing_is_not_evaluated(tmp_path: Path) -> None:
    found = run(tmp_path, losses(1, 2), Reads)
    result = only(found)
    assert (result.outcome, result.status) == ("NotEvaluated", "Error")
    assert result.status_details == (
        "InsufficientInformationForRuleInvocation: Rule 'Reads' judged none of 2 known steps "
        "(skipped for nothing read: 2). It looked for collection 'gradients'. "
        "The nearest names: 'loss'. "
        "Trial '/trial' holds 2 steps (0 to 1), 1 tensors and the collections 'losses'."
    )
    assert codes(found) == (1, 1)
    assert exit_code(found, fail_on=Severity.WARNING, lenient=True) == 0


def test_other_collections_than_the_rule_needs(tmp_path: Path) -> None:
    result = only(run(tmp_path, losses(1, 2), rule_job("VanishingGradient")))
    assert result.status_details == (
        "InsufficientInformationForRuleInvocation: Rule 'VanishingGradient' judged none of 2 known "
        "steps (skipped for no gradients at this step: 2). It looked for gradients (collection "
        "'gradients'). The nearest names: 'loss'. "
        "Trial '/trial' holds 2 steps (0 to 1), 1 tensors and the collections 'losses'."
    )


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({END: b""}, id="end-mark-alone"),
        pytest.param(losses(), id="collections-and-end-mark"),
    ],
)
def test_ended_trial_without_data(tmp_path: Path, files: dict[str, bytes]) -> None:
    found = run(tmp_path, files, Never)
    assert only(found).outcome == "NotEvaluated"
    assert only(found).status_details == f"{NO_DATA} Trial '/trial' holds no steps."
    assert codes(found) == (1, 1)


def test_empty_trial_is_not_waited_for_with_no_wait(tmp_path: Path) -> None:
    script = Script(WoundClock())
    found = run(tmp_path, {}, Never, script=script, wait=False)
    assert (only(found).outcome, script.waits) == ("NotEvaluated", [])


def test_no_wait_judges_what_is_ready_and_says_that_the_trial_goes_on(tmp_path: Path) -> None:
    script = Script(WoundClock())
    found = run(tmp_path, losses(1, 2, ended=False), Never, script=script, wait=False)
    result = only(found)
    assert (seen(result), result.trial_ended) == (("NoIssuesFound", None, 2), False)
    assert (found.stop, script.waits) == (None, [])


def test_no_wait_looks_for_late_files_of_an_ended_trial(tmp_path: Path) -> None:
    files = two_workers({0: [0, 1]})
    late = rawtrial.step_files(1, {"loss": np.float32([1])}, worker="worker_1")
    script = Script(WoundClock(), [lambda: files.update(late)])
    found = run(tmp_path, files, Never, script=script, wait=False)
    assert seen(only(found)) == ("NoIssuesFound", None, 2)
    assert only(found).trial_ended


# -- following -------------------------------------------------------------------------------


def two_workers(steps: dict[int, list[int]], *, ended: bool = True) -> dict[str, bytes]:
    """Return files of two workers: which of them wrote each step."""
    files: dict[str, bytes] = {END: b""} if ended else {}
    for worker in (0, 1):
        key = rawtrial.collections_key(f"worker_{worker}")
        files[key] = rawtrial.collections({"losses": ["loss"]}, 2)
        for step, workers in steps.items():
            if worker in workers:
                values = {"loss": np.float32([1])}
                files |= rawtrial.step_files(step, values, worker=f"worker_{worker}")
    return files


def test_late_files_within_the_grace_are_judged_and_those_after_it_are_lost(tmp_path: Path) -> None:
    files = two_workers({0: [0, 1], 1: [0]})

    def more(step: int) -> Callable[[], None]:
        late = rawtrial.step_files(step, {"loss": np.float32([1])}, worker="worker_1")
        return lambda: files.update(late)

    clock = WoundClock()
    steps = [int] * 8 + [more(1)] + [int] * 8 + [more(2)] + [int] * 12 + [more(3)]
    script = Script(clock, steps)
    result = only(run(tmp_path, files, Never, script=script))
    assert (seen(result), result.coverage.last) == (("NoIssuesFound", None, 3), 2)
    assert result.coverage.missing_workers == {"worker_0": 1}
    assert result.notes == []
    assert set(script.waits) == {0.1}


def test_missing_event_file_is_waited_for_and_then_noted(tmp_path: Path) -> None:
    files = losses(1, 2, 3, ended=False)
    event = files.pop(rawtrial.event_key(1))
    script = Script(WoundClock(), [int] * 120 + [lambda: files.update({END: b""})])
    result = only(run(tmp_path, files, Never, script=script, event_file_wait=10.0))
    assert event
    assert (seen(result), result.coverage.skipped) == (
        ("NoIssuesFound", None, 2),
        {"TensorUnavailableForStep": 1} | {},
    ) or result.coverage.skipped == {"TensorDamaged": 1}
    key = rawtrial.event_key(1)
    assert result.notes == [
        f"Step 1 of worker 'worker_0' is unreadable. File {key!r} does not exist."
    ]


@pytest.mark.parametrize("waits", [1, 99])
def test_event_file_that_comes_in_time_is_judged(tmp_path: Path, waits: int) -> None:
    files = losses(1, 2, 3, ended=False)
    event = files.pop(rawtrial.event_key(1))
    steps = [int] * waits + [lambda: files.update({rawtrial.event_key(1): event, END: b""})]
    result = only(run(tmp_path, files, Never, script=Script(WoundClock(), steps)))
    assert (seen(result), result.notes) == (("NoIssuesFound", None, 3), [])


def test_rule_that_asks_to_wait_is_asked_again_and_the_others_go_on(tmp_path: Path) -> None:
    class Waits(Never):
        asked: list[int] = []

        def invoke_at_step(self, step: int) -> bool:
            self.asked.append(step)
            if step == 1 and self.asked.count(1) < 3:
                raise StepNotYetAvailable(2, self.base_trial.modes()[0])
            return super().invoke_at_step(step)

    files = losses(1, 2, ended=False)
    files = {key: data.replace(b"GLOBAL", b"TRAIN") for key, data in files.items()}
    more = {key: data.replace(b"GLOBAL", b"TRAIN") for key, data in losses(1, 2, 3).items()}
    del more[END]
    steps: list[Callable[[], object]] = [int, lambda: files.update(more), int]
    script = Script(WoundClock(), [*steps, lambda: files.update({END: b""})])
    waits, never = run(tmp_path, files, Waits, Never, script=script).result.rules
    assert Waits.asked == [0, 1, 1, 1, 2]
    assert [seen(one) for one in (waits, never)] == [("NoIssuesFound", None, 3)] * 2


def test_rule_that_waits_for_ever_is_skipped_when_the_trial_has_ended(tmp_path: Path) -> None:
    class Waits(Never):
        def invoke_at_step(self, step: int) -> bool:
            if step == 1:
                raise StepNotYetAvailable(2, self.base_trial.modes()[0])
            return super().invoke_at_step(step)

    files = {key: data.replace(b"GLOBAL", b"TRAIN") for key, data in losses(1, 2, 3).items()}
    result = only(run(tmp_path, files, Waits))
    assert seen(result) == ("NoIssuesFound", None, 2)
    assert result.coverage.skipped == {"StepNotYetAvailable": 1}


def test_other_trials_are_waited_for(tmp_path: Path) -> None:
    class Compares(Rule):
        def invoke_at_step(self, step: int) -> bool:
            (other,) = self.other_trials
            ours = self.base_trial.tensor("loss").value(step)
            theirs = other.tensor("loss").value(step)
            return bool(ours[0] != theirs[0]) and self.found(step, measured=float(theirs[0]))

    base, other = losses(1, 2, 3), losses(1, ended=False)
    steps: list[Callable[[], object]] = [int, lambda: other.update(losses(1, 5, ended=False)), int]
    script = Script(WoundClock(), [*steps, lambda: other.update(losses(1, 5, 6))])
    config = configured(tmp_path, [Compares], "/base", other_trials=("/other",), keep_going=True)
    found = runner(config, {"/base": MemoryStore(base), "/other": MemoryStore(other)}, script)
    result = only(found.run())
    assert [(one.step, one.measured) for one in result.evidence] == [(1, 5.0), (2, 6.0)]


def test_silence_is_judged_though_one_worker_is_a_step_ahead(tmp_path: Path) -> None:
    class Silence(Below):
        limit = -1.0

        def invoke_while_waiting(self, step: int) -> bool:
            return self.found(step, worker="worker_0")

    files = two_workers({0: [0, 1], 1: [0, 1], 2: [1]}, ended=False)
    script = Script(WoundClock(), [int] * 3)
    result = only(run(tmp_path, files, Silence, script=script))
    assert (result.outcome, result.step, result.coverage.judged) == ("IssuesFound", 2, 3)


def test_a_finding_in_an_evaluation_names_the_mode(tmp_path: Path) -> None:
    class Always(Rule):
        def invoke_at_step(self, step: int) -> bool:
            self.base_trial.tensor("loss").value(step)
            return self.found(step, "loss", measured=1.0)

    files = losses(1) | rawtrial.step_files(1, {"loss": np.float32([1])}, mode="EVAL")
    findings = only(run(tmp_path, files, Always, keep_going=True)).findings
    assert [finding.mode for finding in findings] == [msgspec.UNSET, "EVAL"]
    assert (
        text.evidence(findings[1]) == "The condition is met for loss at step 1. (EVAL, measured 1)"
    )


def test_window_gives_up_waiting_for_a_worker(tmp_path: Path) -> None:
    steps = {step: [0] for step in range(1, 10)} | {0: [0, 1]}
    files = two_workers(dict(sorted(steps.items())), ended=False)
    result = only(run(tmp_path, files, Never, wait=False, window=4))
    assert (result.coverage.judged, result.coverage.last) == (7, 6)
    assert result.coverage.missing_workers == {"worker_1": 6}


def test_what_is_waited_for_is_reported_after_ten_seconds_and_then_every_minute(
    tmp_path: Path,
) -> None:
    said: list[tuple[str, int]] = []

    class Listens(Observer):
        def waiting(self, text: str, seconds: float) -> None:
            said.append((text, round(seconds)))

    files = losses(1, ended=False)
    script = Script(WoundClock(), [int] * 1500 + [lambda: files.update({END: b""})])
    run(tmp_path, files, Never, script=script, observer=Listens())
    text = "a step after step 0, or the end, of trial 'memory'"
    assert said == [(text, 10), (text, 70), (text, 130)]


def test_progress_is_reported_step_by_step(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []

    class Listens(Observer):
        def progress(self, judged: int, known: int) -> None:
            told.append((judged, known))

    run(tmp_path, losses(1, 2, 3), Never, Below, observer=Listens())
    assert told == [(1, 3), (2, 3), (3, 3)]


# -- stopping --------------------------------------------------------------------------------


def test_signal_finishes_the_step_in_hand(tmp_path: Path) -> None:
    class Signalled(Slow):
        during = {1: lambda: signal.raise_signal(signal.SIGTERM)}

    found = run(tmp_path, losses(1, 2, 0.1), Signalled)
    result = only(found)
    assert seen(result) == ("Stopped", None, 2)
    assert result.status_details == "Stopped by signal SIGTERM."
    assert codes(found) == (143, 143)
    events = [
        one["detail"]["DebugRuleEvaluationStatuses"][0]["RuleEvaluationStatus"]
        for one in json_lines(tmp_path / "events.jsonl")
    ]
    assert events == ["InProgress", "InProgress", "Stopping", "Stopped"]


def test_hit_in_the_step_in_hand_counts(tmp_path: Path) -> None:
    class Signalled(Slow):
        during = {1: lambda: signal.raise_signal(signal.SIGINT)}

    found = run(tmp_path, losses(1, 0.1, 2), Signalled)
    assert seen(only(found)) == ("IssuesFound", 1, 2)
    assert codes(found) == (0, 10)


def test_verdict_that_was_reached_before_the_signal_stands(tmp_path: Path) -> None:
    class Signalled(Slow):
        limit = -1.0
        during = {2: lambda: signal.raise_signal(signal.SIGINT)}

    hit, late = run(tmp_path, losses(1, 0.1, 2), Below, Signalled).result.rules
    assert seen(hit) == ("IssuesFound", 1, 2)
    assert seen(late) == ("NoIssuesFound", None, 3)
    assert late.notes == ["Stopped by signal SIGINT."]


def test_a_signal_after_the_last_step_costs_no_verdict_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    give = Verdicts.give

    def signalled(self: Verdicts, stop: StopReason | None) -> None:
        signal.raise_signal(signal.SIGINT)
        give(self, stop)

    monkeypatch.setattr(Verdicts, "give", signalled)
    found = run(tmp_path, losses(1, 2), Never)
    assert seen(only(found)) == ("NoIssuesFound", None, 2)
    assert (found.stop, codes(found)) == (StopReason("Stopped by signal SIGINT.", 130), (0, 0))


def test_signal_between_any_two_steps_and_resumption(tmp_path: Path) -> None:
    for step in range(5):

        class Signalled(Slow):
            limit = -1.0
            during = {step: lambda: signal.raise_signal(signal.SIGTERM)}

        found = run(tmp_path / str(step), losses(1, 2, 3, 4, 5, ended=False), Signalled)
        assert seen(only(found)) == ("Stopped", None, step + 1)


@pytest.mark.parametrize(
    ("more", "text", "code"),
    [
        ({"timeout": 30.0}, "Stopped after 30 s (--timeout).", 124),
        (
            {"idle_timeout": 60.0},
            "Stopped after 60 s without news of the trial (--idle-timeout).",
            124,
        ),
    ],
    ids=["timeout", "idle-timeout"],
)
def test_time_limits(tmp_path: Path, more: dict[str, Any], text: str, code: int) -> None:
    found = run(tmp_path, losses(1, ended=False), Never, **more)
    assert (seen(only(found)), only(found).status_details) == (("Stopped", None, 1), text)
    assert only(found).notes == [text]
    assert codes(found) == (code, code)


class Takes(Never):
    """Takes `seconds` of the clock for a step."""

    clock: WoundClock
    seconds: float

    def invoke_at_step(self, step: int) -> bool:
        self.clock.now += self.seconds
        return super().invoke_at_step(step)


def judging_takes(seconds: float) -> tuple[Script, type[Takes]]:
    """Return a script, and a rule that takes so long for a step of its clock."""
    script = Script(WoundClock())
    return script, type("Takes", (Takes,), {"clock": script.clock, "seconds": seconds})


IDLE = {"idle_timeout": 0.3}


def test_idle_timeout_of_zero_is_no_limit(tmp_path: Path) -> None:
    waiting = runner(configured(tmp_path, [Never], idle_timeout=0.0), MemoryStore(losses(1)))
    waiting.clock.sleep(1e6)
    assert waiting.stops.idle() is None


@pytest.mark.parametrize("seconds", [0.0, 0.1, 5.0])
def test_ended_trial_whose_judging_takes_longer_than_the_idle_timeout_has_its_verdict(
    tmp_path: Path, seconds: float
) -> None:
    script, rule = judging_takes(seconds)
    files = two_workers({step: [0, 1] for step in range(5)})
    found = run(tmp_path, files, rule, script=script, **IDLE)
    assert (seen(only(found)), found.stop) == (("NoIssuesFound", None, 5), None)


def test_end_of_another_trial_is_waited_for_beyond_the_idle_timeout(tmp_path: Path) -> None:
    config = configured(tmp_path, [Never], "/base", other_trials=("/other",), **IDLE)
    trials = {"/base": losses(1, 2), "/other": two_workers({0: [0, 1], 1: [0]})}
    places = {path: MemoryStore(files) for path, files in trials.items()}
    found = runner(config, places, Script(WoundClock(), [int] * 9)).run()
    assert (seen(only(found)), found.stop) == (("NoIssuesFound", None, 2), None)


def test_idle_timeout_of_a_running_trial_counts_from_the_last_step_that_was_judged(
    tmp_path: Path,
) -> None:
    script, rule = judging_takes(30.0)
    began = script.clock.now
    found = run(tmp_path, losses(1, 2, ended=False), rule, script=script, idle_timeout=20.0)
    assert (seen(only(found)), codes(found)) == (("Stopped", None, 2), (124, 124))
    assert script.clock.now - began == pytest.approx(80, abs=2)


def test_files_that_come_in_the_last_moment_are_looked_for_before_the_idle_timeout_ends_all(
    tmp_path: Path,
) -> None:
    files = losses(1, ended=False)
    store = CountingStore(MemoryStore(files, "s3://bucket/trial"), REMOTE)
    script = Script(WoundClock(), [int, int, lambda: files.update(losses(1, 2))])
    found = runner(configured(tmp_path, [Never], **IDLE), store, script).run()
    assert (seen(only(found)), found.stop) == (("NoIssuesFound", None, 2), None)


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(losses(1, 2, 3), id="one-worker"),
        pytest.param(two_workers({step: [0, 1] for step in range(3)}), id="two-workers"),
    ],
)
@pytest.mark.parametrize("seconds", [0.1, 20.0])
def test_timeout_in_the_moment_of_the_last_step_leaves_the_verdict(
    tmp_path: Path, files: dict[str, bytes], seconds: float
) -> None:
    script, rule = judging_takes(seconds)
    found = run(tmp_path, files, rule, script=script, timeout=3 * seconds)
    assert (seen(only(found)), codes(found)) == (("NoIssuesFound", None, 3), (0, 0))
    assert only(found).trial_ended


def test_timeout_before_the_last_step_still_stops(tmp_path: Path) -> None:
    script, rule = judging_takes(20.0)
    files = two_workers({step: [0, 1] for step in range(3)})
    found = run(tmp_path, files, rule, script=script, timeout=40.0)
    assert (seen(only(found)), codes(found)) == (("Stopped", None, 2), (124, 124))


def test_store_that_does_not_answer_in_the_last_moment_leaves_the_stop_a_stop(
    tmp_path: Path,
) -> None:
    store = Refusing(losses(1, ended=False))
    store.prefix = "none"

    class Breaks(Never):
        def invoke_at_step(self, step: int) -> bool:
            store.prefix = END
            signal.raise_signal(signal.SIGTERM)
            return super().invoke_at_step(step)

    with Signals() as signals:
        found = runner(configured(tmp_path, [Breaks]), store, signals=signals).run()
    assert codes(found) == (143, 143)


def test_a_step_that_no_rule_wants_is_not_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    missing_workers = TensorSteps.missing_workers

    def recorded(self: TensorSteps, step: int) -> list[str] | None:
        steps.append(step)
        return missing_workers(self, step)

    monkeypatch.setattr(TensorSteps, "missing_workers", recorded)
    first, last = rule_job(Never, end_step=1), rule_job(Below, start_step=3)
    both = run(tmp_path, losses(1, 2, 3, 4), first, last)
    assert [rule.coverage.judged for rule in both.result.rules] == [1, 1]
    assert steps == [0, 3]


def test_nothing_judged_before_a_stop(tmp_path: Path) -> None:
    found = run(tmp_path, {}, Never, timeout=30.0)
    assert (only(found).outcome, only(found).status_details) == (
        "Stopped",
        "Stopped after 30 s (--timeout). Nothing was judged.",
    )
    assert codes(found) == (124, 124)


def test_stop_file(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    stop.write_text("now")
    found = run(tmp_path / "out", losses(1, 2), Never, stop_files=(stop,))
    assert only(found).status_details == f"Stopped by stop file '{stop}'. Nothing was judged."
    assert found.stop == StopReason(f"Stopped by stop file '{stop}'.", 124)


def test_error_while_stopping_is_an_error(tmp_path: Path) -> None:
    class Signalled(Slow):
        def fail() -> None:  # type: ignore[misc]
            signal.raise_signal(signal.SIGTERM)
            int("late")

        during = {1: fail}

    found = run(tmp_path, losses(1, 2, 3), Signalled)
    assert only(found).status == "Error"
    assert codes(found) == (1, 1)


def test_rule_that_does_not_come_back_ends_the_process_with_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class ExitedError(KeyboardInterrupt):
        pass

    def leave(code: int) -> None:
        raise ExitedError(code)

    monkeypatch.setattr("rule_runner.engine.stop_requests.os._exit", leave)

    class Hangs(Slow):
        def twice() -> None:  # type: ignore[misc]
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGTERM)

        during = {1: twice}

    with pytest.raises(ExitedError) as left:
        run(tmp_path, losses(1, 2, 3), Hangs)
    assert left.value.args == (143,)
    result = saved.result(tmp_path)
    assert (result["status"], result["coverage"]["judged"]) == ("Stopped", 1)
    assert result["ended_at"] is not None


# -- opening ---------------------------------------------------------------------------------


def test_missing_trial_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match=r"^Trial '.*/no' does not exist\.$"):
        Runner(configured(tmp_path / "out", [Never], str(tmp_path / "no")))
    assert not (tmp_path / "out").exists()


def test_folder_of_trials_is_an_error_at_once(tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "runs" / "a", losses(1, 2))
    with pytest.raises(
        TrialError, match=r"^Folder '.*/runs' is not a trial, but contains '.*/runs/a'"
    ):
        Runner(configured(tmp_path / "out", [Never], str(tmp_path / "runs")))
    assert not (tmp_path / "out").exists()


def test_folder_of_trials_is_an_error_once_the_trial_was_waited_for(tmp_path: Path) -> None:
    rawtrial.write(tmp_path / "runs" / "a", losses(1, 2))
    clock = WoundClock()
    config = configured(tmp_path / "out", [Never], str(tmp_path / "runs"), wait_for_trial=5.0)
    found = Runner(config, clock=clock, waiter=Script(clock)).run()
    assert "is not a trial, but contains" in (only(found).status_details or "")
    assert clock.now - WoundClock().now == pytest.approx(5, abs=1.5)


def test_trial_may_come_into_a_folder_of_trials(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    rawtrial.write(root / "a", losses(1, 2))
    script = Script(WoundClock(), [int, int, lambda: rawtrial.write(root, losses(1, 2, 3))])
    config = configured(tmp_path / "out", [Never], str(root), wait_for_trial=5.0)
    found = Runner(config, clock=script.clock, waiter=script).run()
    assert seen(only(found)) == ("NoIssuesFound", None, 3)


def test_trial_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x" * 5000)
    with pytest.raises(TrialError, match=r"^File '.*/file' is in no format that is read as a"):
        Runner(configured(tmp_path / "out", [Never], str(tmp_path / "file")))


def test_trial_of_an_unknown_kind(tmp_path: Path) -> None:
    with pytest.raises(TrialError, match=r"^Trials at ftp:// addresses cannot be read"):
        Runner(configured(tmp_path / "out", [Never], "ftp://host/trial"))


def test_trial_is_waited_for_if_asked(tmp_path: Path) -> None:
    root = tmp_path / "trial"
    script = Script(WoundClock(), [int, int, lambda: rawtrial.write(root, losses(1, 2))])
    config = configured(tmp_path / "out", [Never], str(root), wait_for_trial=5.0)
    found = Runner(config, clock=script.clock, waiter=script).run()
    assert seen(only(found)) == ("NoIssuesFound", None, 2)


def test_trial_is_not_waited_for_longer(tmp_path: Path) -> None:
    clock = WoundClock()
    config = configured(tmp_path / "out", [Never], str(tmp_path / "no"), wait_for_trial=5.0)
    found = Runner(config, clock=clock, waiter=Script(clock)).run()
    assert only(found).status_details == f"ClientError: Trial '{tmp_path / 'no'}' does not exist."
    assert clock.now - WoundClock().now == pytest.approx(5, abs=1.5)
    assert codes(found) == (1, 1)


def test_wrong_parameter_opens_no_output_folder(tmp_path: Path) -> None:
    job = rule_job("AllZero", parameters={"treshold": "1"})
    with pytest.raises(ClientError, match=r"Unknown parameter 'treshold'.*'threshold'"):
        runner(configured(tmp_path / "out", [job]), MemoryStore(losses(1)))
    assert not (tmp_path / "out").exists()


def test_left_out_parameter_of_a_custom_rule_is_noted(tmp_path: Path) -> None:
    found = run(tmp_path, losses(1), rule_job(Never, parameters={"limt": "1"}))
    assert only(found).notes == ["Rule 'Never' has no parameter 'limt': left out."]


def test_second_evaluation_into_one_folder_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    first = runner(configured(tmp_path, [Never]), MemoryStore(losses(1)))
    with pytest.raises(OutputError, match="is in use by process"):
        runner(configured(tmp_path, [Never]), MemoryStore(losses(1)))
    assert seen(only(first.run())) == ("NoIssuesFound", None, 1)
    assert seen(only(run(tmp_path, losses(1, 2), Never, overwrite=True))) == (
        "NoIssuesFound",
        None,
        2,
    )


def test_rule_that_cannot_be_made_leaves_the_others_alone(tmp_path: Path) -> None:
    class Refuses(Never):
        def __init__(self, base_trial: Any) -> None:
            super().__init__(base_trial)
            int("no licence")

    refuses, never = run(tmp_path, losses(1), Refuses, Never).result.rules
    assert refuses.status_details == (
        "ClientError: Rule 'Refuses' raised ValueError while it was constructed: "
        "invalid literal for int() with base 10: 'no licence'."
    )
    assert seen(never) == ("NoIssuesFound", None, 1)


def test_collections_are_each_rules_own(tmp_path: Path) -> None:
    class Adds(Rule):
        def invoke_at_step(self, step: int) -> bool:
            self.base_trial.collection("mine").include("loss")
            return self.found(step, measured=len(self.base_trial.tensor_names(collection="mine")))

    first, second = run(tmp_path, losses(1), Adds, Looks).result.rules
    assert [one.evidence[0].measured for one in (first, second)] == [1, 0]


class Looks(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return self.found(step, measured=len(self.base_trial.tensor_names(collection="mine")))


# -- faults ----------------------------------------------------------------------------------


def test_files_that_come_after_the_end_are_counted_as_lost(tmp_path: Path) -> None:
    class Late(Never):
        def invoke_at_step(self, step: int) -> bool:
            if step == 1:
                files.update(rawtrial.step_files(2, {"loss": np.float32([1])}))
            return super().invoke_at_step(step)

    files = losses(1, 2)
    result = only(run(tmp_path, files, Late))
    assert (seen(result), result.coverage.known) == (("NoIssuesFound", None, 2), 2)
    assert result.notes == ["1 index files arrived after the end and were not judged."]


def test_count_of_lost_files_that_cannot_be_had_costs_nothing(tmp_path: Path) -> None:
    store = Refusing(losses(1))
    store.prefix = "none"

    class Breaks(Never):
        def invoke_at_step(self, step: int) -> bool:
            store.prefix = "index/"
            return super().invoke_at_step(step)

    found = runner(configured(tmp_path, [Breaks]), store).run()
    assert (seen(only(found)), only(found).notes) == (("NoIssuesFound", None, 1), [])


def test_error_of_the_trial_leaves_verdicts_that_were_reached(tmp_path: Path) -> None:
    files = losses(0.1, 1, ended=False)
    store = Refusing(files)
    store.prefix = "none"

    def break_it() -> None:
        store.prefix = "index/"

    script = Script(WoundClock(), [break_it])
    found = runner(configured(tmp_path, [Below, Never]), store, script).run()
    assert [seen(one) for one in found.result.rules] == [("IssuesFound", 0, 1), ("Error", None, 2)]


class Refusing(MemoryStore):
    """Cannot list what is under a prefix."""

    prefix = "index/"

    def list_keys(self, prefix: str, *, start_after: str = "") -> Any:
        if prefix == self.prefix:
            raise StorageUnavailableError(prefix, "Permission denied")
        return super().list_keys(prefix, start_after=start_after)


def test_unreadable_index_folder_is_one_sentence(tmp_path: Path) -> None:
    found = runner(configured(tmp_path, [Never]), Refusing(losses(1))).run()
    assert only(found).status_details == ("ClientError: Cannot read 'index/': Permission denied.")
    assert codes(found) == (1, 1)


def test_our_own_defect_is_an_internal_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("rule_runner.steps.tensor_steps.TensorSteps.look", broken)
    found = run(tmp_path, losses(1), Never)
    assert only(found).status_details == (
        "InternalServerError: We encountered an internal error. Please try again."
    )
    assert codes(found) == (70, 70)


def test_full_disk_ends_the_evaluation_keeps_what_was_found_and_goes_on_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Cannot write 'x': No space left on device."

    def refuse(*_: object, **__: object) -> None:
        raise OutputError(text)

    class Fills(Slow):
        def full() -> None:  # type: ignore[misc]
            monkeypatch.setattr(
                "rule_runner.results.output_folder.OutputFolder.append_finding", refuse
            )

        during = {2: full}

    found = run(tmp_path, losses(0.1, 1, 0.1, 1), Fills, keep_going=True)
    assert (found.output_error, codes(found)) == (text, (73, 73))
    assert seen(only(found)) == ("IssuesFound", 0, 3)
    assert [one["step"] for one in json_lines(tmp_path / "findings.jsonl")] == [0]
    monkeypatch.undo()
    Fills.during = {}
    found = run(tmp_path, losses(0.1, 1, 0.1, 1), Fills, keep_going=True)
    assert [one["step"] for one in json_lines(tmp_path / "findings.jsonl")] == [0, 2]
    assert (only(found).findings_count, only(found).coverage.judged, codes(found)) == (
        2,
        4,
        (0, 10),
    )


def test_root_that_vanishes_is_waited_for(tmp_path: Path) -> None:
    root = rawtrial.write(tmp_path / "trial", losses(1, ended=False))
    away = tmp_path / "away"
    more = losses(1, 2)

    def back() -> None:
        away.rename(root)
        rawtrial.write(root, more)

    script = Script(WoundClock(), [lambda: root.rename(away), int, back])
    config = configured(tmp_path / "out", [Never], str(root))
    found = Runner(config, clock=script.clock, waiter=script).run()
    assert seen(only(found)) == ("NoIssuesFound", None, 2)


# -- resuming --------------------------------------------------------------------------------


class KilledError(BaseException):
    """The process ends here."""


def die() -> None:
    raise KilledError


def three(folder: Path) -> list[Any]:
    """Evaluate three rules, and return what they came to."""
    found = run(folder, losses(1, 0.25, 1), Below, Never, rule_job(Raises, "R", end_step=3))
    return [(seen(one), one.evidence, one.status_details) for one in found.result.rules]


def kept(folder: Path) -> list[Any]:
    """Return what the output folder of three rules holds, without the times."""
    assert not (folder / ".sagemaker-ignore").exists()
    names = ("findings.jsonl", "results.json")
    files = [_without_times((folder / name).read_text()) for name in names]
    states = _states(json_lines(folder / "events.jsonl"))
    assert len(set(map(str, states))) == len(states)
    return [*files, states[-1]]


def test_every_place_where_something_is_written_may_be_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kill at the first write, then at the second, and so on: the end is always the same."""
    left = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any) -> Any:
            nonlocal left
            left -= 1
            return call(*args) if left else die()

        return counted

    whole = tmp_path / "whole"
    expected = three(whole)
    monkeypatch.setattr(durable_files, "write_all", dying(durable_files.write_all))
    monkeypatch.setattr(Path, "replace", dying(Path.replace))
    deaths = 0
    while True:
        folder = tmp_path / str(deaths)
        left = deaths + 1
        try:
            three(folder)
        except KilledError:
            deaths += 1
        else:
            break
        left = -1
        assert three(folder) == expected
        assert kept(folder) == kept(whole)
    assert deaths > 10


def _without_times(text: str) -> list[str]:
    times = ("_at", "_s", "fingerprint", '"id"', "run_id")
    return [
        line for line in text.replace(", ", ",\n").splitlines() if not any(t in line for t in times)
    ]


def _states(events: list[dict[str, Any]]) -> list[Any]:
    return [
        (
            one["detail"]["TrainingJobStatus"],
            [
                (state["RuleConfigurationName"], state["RuleEvaluationStatus"])
                for state in one["detail"]["DebugRuleEvaluationStatuses"]
            ],
        )
        for one in events
    ]


def test_rules_that_change_status_at_the_same_step_share_an_event(tmp_path: Path) -> None:
    run(tmp_path, losses(1, 0.25, 1), Below, Never, rule_job(Below, "again"))
    changed = [one["detail"]["ChangedRules"] for one in json_lines(tmp_path / "events.jsonl")]
    assert [names for names in changed if names] == [
        ["Below", "Never", "again"],
        ["Below", "again"],
        ["Never"],
    ]


def test_another_configuration_does_not_resume(tmp_path: Path) -> None:
    script = Script(WoundClock(), [die])
    with pytest.raises(KilledError):
        run(tmp_path, losses(1, ended=False), Never, script=script)
    with pytest.raises(OutputError, match="holds another evaluation"):
        run(tmp_path, losses(1), rule_job(Never, end_step=5))
    assert seen(only(run(tmp_path, losses(1, 2), Never))) == ("NoIssuesFound", None, 2)


def test_an_evaluation_that_pauses_leaves_no_other_trace_than_one_that_follows(
    tmp_path: Path,
) -> None:
    pause, out, whole = (tmp_path / name for name in ("pause", "out", "whole"))
    shown = list[str]()

    class Watching(Never):
        def invoke_at_step(self, step: int) -> bool:
            if out.exists():
                shown.append(saved.result(out, "Below")["outcome"])
            return super().invoke_at_step(step)

    rules, values = (Below, Never, Watching), (1.0, 1.0, 0.75, 0.25, 0.3)
    run(whole, losses(*values), *rules)
    pause.touch()
    for count in range(1, len(values) + 1):
        shown.clear()
        growing = losses(*values[:count], ended=False)
        found = run(out, growing, *rules, pause_file=str(pause))
        assert codes(found) == (75, 75)
        assert saved.document(out)["ended_at"] is None
    assert {*shown} == {"IssuesFound"}, "an issue stays while its steps are judged again"
    pause.unlink()
    assert codes(run(out, losses(*values), *rules, pause_file=str(pause))) == (0, 10)
    for file in ("results.json", "findings.jsonl"):
        texts = [(folder / file).read_text() for folder in (out, whole)]
        assert _without_times(texts[0]) == _without_times(texts[1])
    states = [_states(json_lines(folder / "events.jsonl")) for folder in (out, whole)]
    # The end of the trial is an event of its own, unless it is there from the start.
    paused, followed = ([rules for rules, _ in groupby(rules for _, rules in s)] for s in states)
    assert paused == followed


def test_a_trial_that_is_about_to_end_is_not_paused(tmp_path: Path) -> None:
    pause = tmp_path / "pause"
    pause.touch()
    found = run(tmp_path / "out", losses(1, 1), Never, pause_file=str(pause))
    assert seen(only(found)) == ("NoIssuesFound", None, 2)


def test_an_event_says_how_long_files_have_waited_to_be_judged(tmp_path: Path) -> None:
    clock = WoundClock()

    class Slow(Below):
        def invoke_at_step(self, step: int) -> bool:
            clock.now += 2
            return super().invoke_at_step(step)

    class Waits(Never):
        def invoke_at_step(self, step: int) -> bool:
            if step == 2 and not clock.now > 6:
                raise StepNotYetAvailable(3, self.base_trial.modes()[0])
            return super().invoke_at_step(step)

    config = configured(tmp_path, [Waits, Slow])
    runner(config, MemoryStore(losses(1, 1, 0, 1)), Script(clock)).run()
    found = [one["detail"] for one in json_lines(tmp_path / "events.jsonl")]
    lags = [
        [one["EvaluationLagSeconds"] for one in detail["DebugRuleEvaluationStatuses"]]
        for detail in found
    ]
    # Waits stands at step 1 when Slow has found something at step 2; in the end all are judged.
    assert lags == [[0.0, 0.0], [0.0, 0.0], [6.0, 0.0], [0.0, 0.0]]


class DownSink(ListSink):
    """Is down, and lets something be done at its second try."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self.failure = DOWN
        self.act = act

    def send(self, events: Sequence[Event]) -> Sent:
        if self.tried.is_set():
            self.act()
        return super().send(events)


def test_a_signal_ends_the_wait_for_sinks_and_costs_no_verdict(tmp_path: Path) -> None:
    sink = DownSink(
        lambda: found.stops.by_signal(signal.SIGTERM) if found.step_sources.ended else None
    )
    config = configured(tmp_path, [Below], sink_deadline=1e6)
    found = runner(config, MemoryStore(losses(1, 0)), sinks=[sink])
    evaluated = found.run()
    assert evaluated.result.rules[0].status == "IssuesFound"
    assert [(one.sink, one.unsent, one.reason) for one in evaluated.undelivered_events] == [
        ("list", 3, "it is down")
    ]
    assert exit_code(evaluated, fail_on=None) == 0


def test_sinks_have_the_time_of_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drain, deadlines = EventPublisher.drain, []

    def recorded(
        publisher: EventPublisher, seconds: float, stopped: Callable[[], bool]
    ) -> list[Undelivered]:
        deadlines.append(seconds)
        return drain(publisher, seconds, stopped)

    monkeypatch.setattr(EventPublisher, "drain", recorded)
    sink = DownSink(int)
    config = configured(tmp_path, [Below], sink_deadline=0)
    evaluated = runner(config, MemoryStore(losses(1, 0)), sinks=[sink]).run()
    (undelivered,) = evaluated.undelivered_events
    assert (undelivered.unsent, sink.taken, deadlines) == (3, [], [0])


# -- minimum coverage ------------------------------------------------------------------------


def modes_of(steps: dict[int, str], **tensors: Sequence[int]) -> dict[str, bytes]:
    """Return an ended trial with the modes of its steps, and the steps of its tensors."""
    files: dict[str, bytes] = {rawtrial.collections_key(): rawtrial.collections({}), END: b""}
    for step, mode in steps.items():
        values = {name: np.float32([1]) for name, at in tensors.items() if step in at}
        files |= rawtrial.step_files(step, values, mode=mode, mode_step=step)
    return files


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        pytest.param(0.0, ("NoIssuesFound", 0), id="none"),
        pytest.param(0.8, ("NoIssuesFound", 0), id="exactly"),
        pytest.param(0.81, ("NotEvaluated", 1), id="less"),
        pytest.param(1.0, ("NotEvaluated", 1), id="all"),
    ],
)
def test_rule_that_judged_too_few_of_its_steps_is_not_evaluated(
    tmp_path: Path, share: float, expected: tuple[str, int]
) -> None:
    files = modes_of(dict.fromkeys(range(10), "TRAIN"), loss=range(8), other=range(10))
    found = run(tmp_path, files, Never, min_coverage=share)
    assert (only(found).outcome, exit_code(found, fail_on=None)) == expected
    if share == 1.0:
        assert only(found).status_details == (
            "InsufficientInformationForRuleInvocation: Rule 'Never' judged 8 of 10 steps "
            "(skipped for TensorUnavailableForStep: 2): 80.0%, and the minimum coverage is 100.0%."
        )
        assert exit_code(found, fail_on=None, lenient=True) == 1


def test_steps_of_modes_that_a_rule_never_judges_are_not_its_own(tmp_path: Path) -> None:
    modes = {step: "EVAL" if step % 2 else "TRAIN" for step in range(10)}
    files = modes_of(modes, loss=range(0, 10, 2), other=range(10))
    found = run(tmp_path, files, Never, min_coverage=1.0)
    assert (seen(only(found)), codes(found)) == (("NoIssuesFound", None, 5), (0, 0))


def test_issue_stays_an_issue_whatever_was_judged(tmp_path: Path) -> None:
    files = losses(1, 2, 0.1) | modes_of(dict.fromkeys(range(3, 9), "GLOBAL"), other=range(9))
    for going in (False, True):
        found = run(tmp_path / f"{going}", files, Below, min_coverage=0.9, keep_going=going)
        assert only(found).outcome == "IssuesFound"


def test_stop_before_the_end_stays_a_stop_whatever_was_judged(tmp_path: Path) -> None:
    found = run(tmp_path, losses(1, 2, ended=False), Never, min_coverage=0.9, timeout=30.0)
    assert (only(found).outcome, codes(found)) == ("Stopped", (124, 124))


def test_rule_may_have_a_minimum_coverage_of_its_own(tmp_path: Path) -> None:
    files = modes_of(dict.fromkeys(range(10), "TRAIN"), loss=range(8), other=range(10))
    own = rule_job(Never, "own", min_coverage=0.5)
    found = run(tmp_path, files, own, Never, min_coverage=0.9)
    assert [rule.outcome for rule in found.result.rules] == ["NoIssuesFound", "NotEvaluated"]


def test_damaged_collections_of_one_worker_leave_workers_and_evidence_agreed(
    tmp_path: Path,
) -> None:
    files = {END: b""}
    for worker in ("worker_0", "worker_1"):
        files[rawtrial.collections_key(worker)] = rawtrial.collections({"losses": ["loss"]}, 2)
        for step in range(3):
            loss = np.float32([1 - step if worker == "worker_1" else 1])
            files |= rawtrial.step_files(step, {"loss": loss}, worker=worker)
    files[rawtrial.collections_key("worker_1")] = b"{"

    class BelowAnywhere(Rule):
        def invoke_at_step(self, step: int) -> bool:
            tensor = self.base_trial.tensor("loss")
            values = {one: float(tensor.value(step, worker=one)[0]) for one in tensor.workers(step)}
            low = [one for one, value in values.items() if value < 0]
            return bool(low) and self.found(step, "loss", worker=low[0])

    found = run(tmp_path, files, BelowAnywhere)
    (evidence,) = only(found).evidence
    assert evidence.worker == "worker_1"
    assert found.result.trial.workers == ["worker_0", "worker_1"]
    assert only(found).coverage.missing_workers == {}
    assert rawtrial.collections_key("worker_1") in only(found).notes[0]
