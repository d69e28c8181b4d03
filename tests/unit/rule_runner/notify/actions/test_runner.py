"""Actions in an evaluation: after everything is on disk, once, and never at a verdict's cost."""

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import evaluating
import jsonschema  # type: ignore[import-untyped] # it comes without types
import msgspec
import numpy as np
import pytest
import saved
import structlog
from evaluating import END, Script, WoundClock, configured, json_lines, rule_job
from memory_store import MemoryStore

from rule_core.rules.actions.base import Action, ActionOutcome, ActionState, ActionTrigger, Deadline
from rule_core.severity import Severity
from rule_runner.config.defaults import RuleMode
from rule_runner.engine.outcome import exit_code
from rule_runner.errors import OutputError, ParameterError
from rule_runner.notify.actions import runner as job_actions
from rule_runner.notify.actions.journal import Journal
from rule_runner.results.schema import RULE_SCHEMA, RuleResult
from smdebug.rules import Rule
from smdebug.rules.action.action import StopTrainingAction

DONE = ActionOutcome(ActionState.DONE, "Told.")


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


class Above(Rule):
    """Met at each loss above 2."""

    def invoke_at_step(self, step: int) -> bool:
        value = float(self.base_trial.tensor("loss").value(step)[0])
        return self.found(step, tensor="loss", measured=value, limit=2.0) if value > 2 else False


class Never(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return bool(self.base_trial.tensor("loss").value(step)[0] < 0)


@dataclass
class Told(Action):
    """Records its calls, and acts as the test wants."""

    does: Callable[[], ActionOutcome] = lambda: DONE
    found: ActionOutcome | None = None
    told: list[ActionTrigger] = field(default_factory=list)
    name: str = "email"  # type: ignore[misc]  # each its own
    repeatable: ClassVar[bool] = False
    rule_name: str = ""

    @property
    def target(self) -> str:
        return "a***@example.com"

    def resolve(self, deadline: Deadline) -> "Action | ActionOutcome":
        del deadline
        return self.found or self

    def plan(self, trigger: ActionTrigger) -> str:
        return f"It would be told of {trigger.rule}."

    def carry_out(self, trigger: ActionTrigger, deadline: Deadline) -> ActionOutcome:
        assert deadline.remaining_s() > 0
        self.told.append(trigger)
        return self.does()


def losses(count: int = 6, *, ended: bool = True) -> dict[str, bytes]:
    steps = {step: {"loss": np.array([step], np.float32)} for step in range(count)}
    return evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)


def evaluate(
    output: Path, actions: Sequence[Action], rule: type[Rule] = Above, **more: Any
) -> RuleResult:
    mode = more.pop("mode", RuleMode.ENFORCE)
    job = rule_job(rule, "mine", operator_actions=tuple(actions), mode=mode)
    found = evaluating.runner(configured(output, [job], **more), MemoryStore(losses())).run()
    assert exit_code(found, fail_on=None) == 0
    (result,) = found.result.rules
    on_disk = saved.result(output)
    jsonschema.validate(on_disk, json.loads(RULE_SCHEMA.read_text()))
    assert on_disk["actions"] == [
        {key: getattr(one, key) for key in one.__struct_fields__} for one in result.actions
    ]
    return result


def states(result: RuleResult) -> list[str]:
    return [one.state for one in result.actions]


def unend(output: Path) -> None:
    """Make an ended evaluation look like one that was killed before its end was written."""
    document = saved.document(output)
    document["rules"][0]["ended_at"] = document["ended_at"] = None
    (output / "results.json").write_text(json.dumps(document))


def test_everything_is_on_disk_before_an_action(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look() -> ActionOutcome:
        (finding,) = json_lines(tmp_path / "findings.jsonl")
        status = saved.result(tmp_path)["status"]
        event = json_lines(tmp_path / "events.jsonl")[-1]["detail"]["DebugRuleEvaluationStatuses"]
        (intent,) = json_lines(tmp_path / "actions.jsonl")
        seen.extend([finding["step"], status, event[0]["RuleEvaluationStatus"], intent["state"]])
        return DONE

    result = evaluate(tmp_path, [Told(look)])
    assert seen == [3, "IssuesFound", "IssuesFound", "intended"]
    assert [(one.name, one.target, one.state, one.detail) for one in result.actions] == [
        ("email", "a***@example.com", "done", "Told.")
    ]
    assert result.notes == []
    lines = json_lines(tmp_path / "actions.jsonl")
    assert [(one["action"], one["target"], one["state"]) for one in lines] == [
        ("email", "a***@example.com", "intended"),
        ("email", "a***@example.com", "done"),
    ]
    assert len({one["id"] for one in lines}) == 1


def test_messages_about_two_trainings_in_one_place_have_two_ids(tmp_path: Path) -> None:
    ids = []
    for output in "ab":
        action = Told()
        evaluate(tmp_path / output, [action])
        ids.append(action.told[0].facts["id"])
    assert ids[0] != ids[1]


def test_what_an_action_is_reported(tmp_path: Path) -> None:
    action = Told()
    evaluate(tmp_path, [action], training_job_name="mnist-1")
    (trigger,) = action.told
    (finding,) = json_lines(tmp_path / "findings.jsonl")
    facts = dict(trigger.facts)
    names = {"id": finding["id"], "configuration_name": "mine"}
    facts["finding"] = names | msgspec.to_builtins(facts["finding"])
    assert (trigger.rule, facts) == (
        "Above",
        {
            "schema_version": 1,
            "id": finding["id"],
            "rule": "Above",
            "configuration_name": "mine",
            "status": "IssuesFound",
            "step": 3,
            "details": "RuleEvaluationConditionMet: Evaluation of the rule Above at step 3 "
            "resulted in the condition being met",
            "finding": finding,
        },
    )
    assert trigger.text == (
        "Training job mnist-1, rule job mine, step 3, tensor 'loss', measured 3.0, limit 2.0. "
        "The condition is met for loss at step 3."
    )


def test_actions_come_in_their_order_and_each_for_itself(tmp_path: Path) -> None:
    def breaks() -> ActionOutcome:
        secret = "a defect's text, which is not shown"
        raise RuntimeError(secret)

    refused = ActionOutcome(ActionState.REFUSED, "No.")
    actions = [
        Told(breaks, name="sms"),
        Told(found=refused, name="webhook"),
        Told(name="command"),
    ]
    with structlog.testing.capture_logs() as logs:
        result = evaluate(tmp_path, actions)
    assert (result.status, [(one.name, one.state) for one in result.actions]) == (
        "IssuesFound",
        [("sms", "failed"), ("webhook", "refused"), ("command", "done")],
    )
    assert [one.detail for one in result.actions[:2]] == ["RuntimeError was raised.", "No."]
    ended = [one for one in logs if one["event"] == "action_ended"]
    assert [(one["log_level"], one["state"]) for one in ended] == [
        ("warning", "failed"),
        ("warning", "refused"),
        ("info", "done"),
    ]


@pytest.mark.parametrize(
    ("more", "rule", "told"),
    [
        pytest.param({}, Above, 1, id="first-hit"),
        pytest.param({"keep_going": True}, Above, 1, id="keep-going"),
        pytest.param({"mode": RuleMode.OBSERVE}, Above, 0, id="observe"),
        pytest.param({}, Never, 0, id="nothing-found"),
    ],
)
def test_how_often(tmp_path: Path, more: dict[str, Any], rule: type[Rule], told: int) -> None:
    action = Told()
    result = evaluate(tmp_path, [action], rule, **more)
    assert (len(action.told), states(result)) == (told, ["done"] * told)


def test_further_findings_begin_nothing(tmp_path: Path) -> None:
    action = Told()
    job = rule_job(Above, operator_actions=(action,))
    runner = evaluating.runner(configured(tmp_path, [job]), MemoryStore(losses()))
    (one,) = runner.jobs
    assert one.actions is not None
    for number in range(3):
        finding = job_actions.FindingTrigger(str(number), ActionTrigger("Above"))
        one.actions.begin(finding, Severity.ERROR)
        one.actions.join()
    runner.context.closing.close()
    assert action.told == [ActionTrigger("Above")]


class Stop(Told):
    stops_training: ClassVar[bool] = True


class Rising(Above):
    """A warning above 2, an error above 4, and a note at each step."""

    def invoke_at_step(self, step: int) -> bool:
        value = float(self.base_trial.tensor("loss").value(step)[0])
        self.found(step, note="Only noted.", severity=Severity.NOTE)
        severity = Severity.ERROR if value > 4 else Severity.WARNING
        return value <= 2 or self.found(step, measured=value, severity=severity)


@pytest.mark.parametrize(
    ("more", "stopped_at"),
    [
        ({}, []),
        ({"keep_going": True}, [5.0]),
        ({"stop_on": Severity.WARNING}, [3.0]),
        ({"stop_on": Severity.WARNING, "keep_going": True}, [3.0]),
    ],
)
def test_stopping_a_training_needs_an_error(
    tmp_path: Path, more: dict[str, Any], stopped_at: list[float]
) -> None:
    stop, mail = Stop(), Told()
    result = evaluate(tmp_path, [stop, mail], Rising, **more)
    measured = [trigger.facts["finding"].measured for trigger in stop.told]
    assert (measured, [trigger.facts["step"] for trigger in mail.told]) == (stopped_at, [3])
    assert (result.step, result.severity) == (3, "error" if "keep_going" in more else "warning")
    assert states(result) == ["done" if stopped_at else "refused", "done"]
    if not stopped_at:
        assert result.actions[0].detail == job_actions.TOO_MILD.format("error")
        written = (tmp_path / "actions.jsonl").read_text()
        assert evaluate(tmp_path, [stop, mail], Rising, **more) == result
        assert (tmp_path / "actions.jsonl").read_text() == written


def test_dry_run_only_says_what_would_be_done(tmp_path: Path) -> None:
    action, refused = Told(), Told(found=ActionOutcome(ActionState.REFUSED, "No."))
    result = evaluate(tmp_path, [action, refused], dry_run=True)
    assert [(one.state, one.detail) for one in result.actions] == [
        ("dry_run", "It would be told of Above."),
        ("refused", "No."),
    ]
    assert (action.told, [one["state"] for one in json_lines(tmp_path / "actions.jsonl")]) == (
        [],
        ["dry_run", "refused"],
    )
    unend(tmp_path)
    assert states(evaluate(tmp_path, [action, refused])) == ["done", "refused"]


@pytest.mark.parametrize(
    ("outcome", "again"),
    [
        (DONE, 1),
        (ActionOutcome(ActionState.FAILED, ""), 1),
        (ActionOutcome(ActionState.UNKNOWN, ""), 1),
    ],
)
def test_a_restart_does_nothing_again(tmp_path: Path, outcome: ActionOutcome, again: int) -> None:
    action = Told(lambda: outcome)
    first = evaluate(tmp_path, [action])
    unend(tmp_path)
    second = evaluate(tmp_path, [action])
    assert (len(action.told), second.actions) == (again, first.actions)


def test_another_action_of_the_same_finding_is_done(tmp_path: Path) -> None:
    evaluate(tmp_path, [Told()])
    unend(tmp_path)
    other = Told(name="sms")
    assert states(evaluate(tmp_path, [other])) == ["done"]
    assert len(other.told) == 1


def cut_outcome(output: Path) -> None:
    """Forget what came of the actions, as a crash in the middle of one does."""
    path = output / "actions.jsonl"
    lines = [line for line in path.read_text().splitlines(keepends=True) if '"intended"' in line]
    path.write_text("".join(lines))
    unend(output)


def test_a_message_that_was_perhaps_sent_is_not_sent_again(tmp_path: Path) -> None:
    action = Told()
    evaluate(tmp_path, [action])
    for _ in range(2):
        cut_outcome(tmp_path)
        result = evaluate(tmp_path, [action])
        assert (len(action.told), states(result)) == (1, ["unknown"])
        assert result.actions[0].detail == job_actions.LOST
    unend(tmp_path)
    assert states(evaluate(tmp_path, [action])) == ["unknown"]


def test_a_stop_that_was_perhaps_done_is_done_again_for_the_same_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = ["mnist-1"]
    stopped: list[str] = []

    def resolve(action: StopTrainingAction, deadline: Deadline) -> Action | ActionOutcome:
        del deadline
        name = action.training_job_prefix
        return action if action.exact else StopTrainingAction("", name + running[-1], exact=True)

    def carry_out(action: StopTrainingAction, *_: object) -> ActionOutcome:
        stopped.append(action.training_job_prefix)
        return DONE

    monkeypatch.setattr(StopTrainingAction, "resolve", resolve)
    monkeypatch.setattr(StopTrainingAction, "carry_out", carry_out)
    evaluate(tmp_path, [StopTrainingAction("", "my-")])
    cut_outcome(tmp_path)
    running.append("mnist-2")  # which now is what the beginning of the name means
    result = evaluate(tmp_path, [StopTrainingAction("", "my-")])
    assert stopped == ["my-mnist-1", "my-mnist-1"]
    assert [(one.target, one.state) for one in result.actions] == [("my-mnist-1", "done")]
    unend(tmp_path)
    evaluate(tmp_path, [StopTrainingAction("", "my-")])
    assert len(stopped) == 2


def test_a_stop_that_failed_is_tried_again_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[ActionOutcome] = [ActionOutcome(ActionState.FAILED, "Denied."), DONE]
    monkeypatch.setattr(StopTrainingAction, "resolve", lambda *_: answers.pop(0))
    assert states(evaluate(tmp_path, [StopTrainingAction("", "a")])) == ["failed"]
    unend(tmp_path)
    assert states(evaluate(tmp_path, [StopTrainingAction("", "a")])) == ["done"]


def test_overwriting_forgets_what_was_done(tmp_path: Path) -> None:
    action = Told()
    for _ in range(2):
        evaluate(tmp_path, [action], overwrite=True)
    assert len(action.told) == 2
    evaluate(tmp_path, [], overwrite=True)
    assert not (tmp_path / "actions.jsonl").exists()


def test_an_action_that_never_ends_costs_its_time_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_actions, "SLACK_S", 0.1)
    over = threading.Event()

    def hangs() -> ActionOutcome:
        over.wait()
        return DONE

    actions = [Told(hangs), Told(name="sms")]
    result = evaluate(tmp_path, actions, action_timeout=0.1)
    over.set()
    assert (result.status, states(result)) == ("IssuesFound", ["unknown", "done"])
    assert result.actions[0].detail == "The action had not ended after 0.1 s."


def test_what_cannot_be_written_down_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        msg = "Cannot write 'actions.jsonl': No space left on device."
        raise OutputError(msg)

    monkeypatch.setattr(Journal, "write", full)
    action = Told()
    result = evaluate(tmp_path, [action])
    assert (action.told, states(result)) == ([], ["refused"])
    assert result.actions[0].detail == (
        "The action was not carried out, because it could not be recorded. "
        "Cannot write 'actions.jsonl': No space left on device."
    )


def test_an_outcome_is_reported_while_other_rules_go_on(tmp_path: Path) -> None:
    files = losses(ended=False)
    jobs = [rule_job(Above, "mine", operator_actions=(Told(),)), rule_job(Never)]
    seen: list[list[str]] = []

    def look() -> None:
        actions = runner.jobs[0].actions
        assert actions is not None
        actions.join()
        runner.context.record_action_results()
        result = saved.result(tmp_path, "mine")
        seen.append([one["state"] for one in result["actions"]])

    script = Script(WoundClock(), [look, lambda: files.update({END: b""})])
    runner = evaluating.runner(configured(tmp_path, jobs), MemoryStore(files), script)
    assert [one.status for one in runner.run().result.rules] == ["IssuesFound", "NoIssuesFound"]
    assert seen == [["done"]]


def test_a_second_signal_waits_for_no_action(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over, begun = threading.Event(), threading.Event()

    def hangs() -> ActionOutcome:
        begun.set()
        over.wait()
        return DONE

    jobs = [rule_job(Above, operator_actions=(Told(hangs), Told(name="sms"))), rule_job(Never)]
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)

    def signal() -> None:
        assert begun.wait(60)
        runner._end_at_once(15)
        seen.extend(saved.result(tmp_path, "Above")["actions"])
        over.set()

    seen: list[dict[str, Any]] = []
    script = Script(WoundClock(), [signal])
    files = losses(ended=False)
    runner = evaluating.runner(configured(tmp_path, jobs), MemoryStore(files), script)
    runner.run()
    assert ended == [143]
    assert [(one["name"], one["state"], one["detail"]) for one in seen] == [
        ("email", "unknown", job_actions.INTERRUPTED),
        ("sms", "refused", job_actions.TOO_LATE),
    ]


def test_a_folder_that_cannot_be_written_any_more_costs_the_actions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        msg = "Cannot write 'findings.jsonl': No space left on device."
        raise OutputError(msg)

    monkeypatch.setattr("rule_runner.results.output_folder.OutputFolder.append_finding", full)
    action = Told()
    job = rule_job(Above, operator_actions=(action,))
    found = evaluating.runner(configured(tmp_path, [job]), MemoryStore(losses())).run()
    (result,) = found.result.rules
    assert (found.output_error != "", result.status, action.told) == (True, "IssuesFound", [])
    assert [(one.state, one.detail) for one in result.actions] == [
        ("refused", job_actions.TOO_LATE)
    ]


@pytest.mark.parametrize("mode", list(RuleMode))
def test_what_is_no_action_is_reported_before_anything_runs(tmp_path: Path, mode: RuleMode) -> None:
    job = rule_job(Above, actions='{"name": "emial"}', mode=mode)
    with pytest.raises(ParameterError, match=r"^Unknown action 'emial'\."):
        evaluating.runner(configured(tmp_path / "out", [job]), MemoryStore(losses()))
    assert not (tmp_path / "out").exists()


def test_actions_that_an_ended_evaluation_left_are_carried_out_once(tmp_path: Path) -> None:
    before = evaluate(tmp_path, [])
    for expected in (["Above"], []):
        action = Told()
        result = evaluate(tmp_path, [action])
        assert (states(result), result.ended_at) == (["done"], before.ended_at)
        assert [one.rule for one in action.told] == expected


def test_the_intent_can_be_recorded_elsewhere_before_an_action(tmp_path: Path) -> None:
    order: list[str] = []

    def recorded() -> None:
        if (tmp_path / "actions.jsonl").exists():
            order.append("recorded")

    def act() -> ActionOutcome:
        order.append("done")
        return DONE

    job = rule_job(Above, "mine", operator_actions=(Told(act),))
    config = configured(tmp_path, [job])
    evaluating.runner(config, MemoryStore(losses()), recorded=recorded).run()
    assert order == ["recorded", "done"]
