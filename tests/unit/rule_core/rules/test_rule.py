"""Rule: every documented way to construct and to call it."""

import contextlib
import math
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import pytest
from evaluating import WoundClock
from memory_store import MemoryStore

from rule_core.exceptions import (
    NoMoreData,
    RuleEvaluationConditionMet,
    SMDebugValueError,
    StepUnavailable,
)
from rule_core.reading.native_index import NativeIndex
from rule_core.rules.actions.actions import Actions
from rule_core.rules.actions.base import Action
from rule_core.rules.actions.message import MessageAction
from rule_core.rules.actions.stop_training import StopTrainingAction
from rule_core.rules.evidence import Finding, Measured
from rule_core.rules.invoke_rule import invoke_rule
from rule_core.rules.requirements import RequiredTensors
from rule_core.rules.rule import Rule
from rule_core.rules.rule import Rule as SameRule
from rule_core.severity import Severity
from rule_core.trials.trial import Trial

STOP = '{"name": "stoptraining"}'
UNNAMED = "The training job is unknown. Set training_job_prefix to its name."


def trial(*, ended: bool = True, name: str = "trial") -> Trial:
    steps = {step: {"loss": np.float32([step]), "acc": np.float32([1])} for step in (0, 3, 5)}
    files = evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)
    index = NativeIndex(MemoryStore(files))
    index.refresh()
    index.refresh()
    if ended:
        index.finish()
    return Trial(name, "/trial", index, WoundClock())


class Plain(Rule):
    """Returns scripted answers."""

    answer: Any = False

    def invoke_at_step(self, step: int) -> Any:
        self.seen = (step, self.base_trial.steps(), self.base_trial.dynamic_refresh)
        return self.answer


BASE, OTHER = trial(), trial(name="other")


@pytest.mark.parametrize(
    ("args", "kwargs", "others", "actions"),
    [
        pytest.param((), {}, None, "", id="base-only"),
        pytest.param((STOP,), {}, None, STOP, id="base-action"),
        pytest.param((None,), {}, None, "", id="base-None"),
        pytest.param(([OTHER],), {}, [OTHER], "", id="base-others"),
        pytest.param((OTHER,), {}, [OTHER], "", id="base-other"),
        pytest.param((STOP, [OTHER]), {}, [OTHER], STOP, id="base-action-others"),
        pytest.param(([OTHER], STOP), {}, [OTHER], STOP, id="base-others-action"),
        pytest.param((None, STOP), {}, None, STOP, id="base-None-action"),
        pytest.param(([OTHER], None), {}, [OTHER], "", id="base-others-None"),
        pytest.param((), {"other_trials": None}, None, "", id="others-None"),
        pytest.param((), {"other_trials": [OTHER]}, [OTHER], "", id="others-by-name"),
        pytest.param((), {"other_trials": (OTHER,)}, (OTHER,), "", id="others-tuple"),
        pytest.param((), {"action_str": STOP}, None, STOP, id="action-by-name"),
        pytest.param(("",), {"other_trials": [OTHER]}, [OTHER], "", id="mixed"),
    ],
)
def test_every_call_style(
    args: tuple[Any, ...], kwargs: dict[str, Any], others: Any, actions: str
) -> None:
    rule = Plain(BASE, *args, **kwargs)
    assert rule.base_trial is BASE
    assert rule.other_trials == others
    assert rule.trials == [BASE, *(others or [])]
    assert rule.actions.actions == Actions(actions, "Plain").actions
    assert (rule.rule_name, rule.actions.rule_name) == ("Plain", "Plain")
    assert rule.report == {
        "RuleTriggered": 0,
        "Violations": 0,
        "Details": {},
        "Datapoints": 0,
        "RuleParameters": "",
    }
    assert isinstance(rule.req_tensors, RequiredTensors)


def test_one_class_under_both_import_paths() -> None:
    assert Rule is SameRule


def test_rule_without_invoke_at_step_cannot_be_made() -> None:
    class Lacks(Rule):
        pass

    with pytest.raises(TypeError, match="invoke_at_step"):
        Lacks(BASE)  # type: ignore[abstract]


@pytest.mark.parametrize(
    "answer",
    [True, np.True_, np.array([1]), "x", np.float64(0.1)],
    ids=["true", "numpy", "array", "text", "number"],
)
def test_true_answer_raises(answer: Any) -> None:
    rule = Plain(trial())
    rule.answer = answer
    with pytest.raises(RuleEvaluationConditionMet) as met:
        rule.invoke(3)
    assert (met.value.rule_name, met.value.step, met.value.end_of_rule) == ("Plain", 3, False)
    assert str(met.value) == (
        "Evaluation of the rule Plain at step 3 resulted in the condition being met\n"
    )


@pytest.mark.parametrize("answer", [False, np.False_, np.array([0]), 0, "", None])
def test_false_answer_returns(answer: Any) -> None:
    rule = Plain(trial())
    rule.answer = answer
    rule.invoke(3)
    assert rule.seen == (3, [0, 3], False)


def test_answer_of_several_values_has_no_truth() -> None:
    rule = Plain(trial())
    rule.answer = np.array([True, True])
    with pytest.raises(ValueError, match="truth value"):
        rule.invoke(3)


def test_none_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    rule = Plain(trial())
    rule.answer = None
    rule.invoke(0)
    rule.invoke(3)
    assert [record.getMessage() for record in caplog.records] == [
        "Rule 'Plain' returned None, which counts as False. Return True or False."
    ]


@pytest.mark.parametrize("answer", [True, False, np.array([1, 2])])
@pytest.mark.parametrize("refreshing", [True, False])
def test_trials_are_as_before_whatever_comes(answer: Any, refreshing: bool) -> None:
    base, other = trial(), trial()
    base.dynamic_refresh = refreshing
    rule = Plain(base, other_trials=[other])
    rule.answer = answer
    with contextlib.suppress(RuleEvaluationConditionMet, ValueError):
        rule.invoke(3)
    assert (base.horizon, other.horizon) == (None, None)
    assert (base.dynamic_refresh, other.dynamic_refresh) == (refreshing, True)


@pytest.mark.parametrize("ended", [True, False])
def test_all_steps_of_an_ended_trial_are_seen_at_the_first_step(ended: bool) -> None:
    class Sees(Rule):
        seen: tuple[int, ...] = ()

        def invoke_at_step(self, step: int) -> bool:
            del step
            self.seen += tuple(len(trial.steps()) for trial in self.trials)
            return False

    base, other = trial(), trial(ended=ended)
    rule = Sees(base, other_trials=[other, base])
    rule.invoke(0)
    assert rule.seen == (1, len(other.steps()) if ended else 1, 1)


def test_step_that_was_never_saved() -> None:
    with pytest.raises(StepUnavailable):
        Plain(trial()).invoke(4)
    with pytest.raises(NoMoreData, match="its last step is 5"):
        Plain(trial()).invoke(6)


def test_evidence_is_taken_once() -> None:
    rule = Plain(BASE)
    assert rule.found(np.int64(3), "t", "w", 1, 2, "n") is True  # type: ignore[arg-type]
    assert rule.not_judged("why") is False
    assert rule.take_evidence() == ([Finding(3, "t", "w", 1, 2, "n")], "why")
    assert rule.take_evidence() == ([], None)


def test_step_of_a_finding_must_be_an_integer() -> None:
    with pytest.raises(TypeError):
        Plain(BASE).found(1.5)  # type: ignore[arg-type]


def test_what_is_measured_against_one_limit_stays_together() -> None:
    rule = Plain(BASE)
    assert rule.measured(3, "mean", np.float32(0.5), 1, met=True, tensor="a", worker="w")
    assert rule.measured(3, "mean", 2, 1.0, met=np.False_) is False
    rule.measured(3, "max", 2, 1, met=False)
    rule.measured(3, "max", 2, 4, met=False)
    rule.measured(4, "max", 2, 4, met=False)
    rule.measured(3, "mean", 2, 1.0, met=False)
    rule.measured(3, "max", 2, math.nan, met=False)
    one = ((None, None), 2.0, False)
    *result, last = rule.take_measurements()
    assert result == [
        Measured(3, "mean", 1.0, [(("a", "w"), 0.5, True), one, one]),
        Measured(3, "max", 1.0, [one]),
        Measured(3, "max", 4.0, [one]),
        Measured(4, "max", 4.0, [one]),
    ]
    assert math.isnan(last.limit)
    assert rule.take_measurements() == []
    rule.measured(3, "mean", 2, 1.0, met=False)
    assert rule.take_measurements() == [Measured(3, "mean", 1.0, [one])]
    assert rule.take_evidence() == ([Finding(3, "a", "w", np.float32(0.5), 1)], None)


def test_many_are_measured_at_once_as_one_by_one() -> None:
    means = {("a", "w"): np.float32(0.5), ("b", "w"): 2, ("c", None): 0.25}
    met = {("c", None), ("a", "w")}
    rule, other = Plain(BASE), Plain(BASE)
    assert rule.measured_all(3, "mean", means, 1, met=met, notes={("c", None): "Low."}) is True
    for (tensor, worker), mean in means.items():
        at: Any = {"tensor": tensor, "worker": worker, "note": "Low." if tensor == "c" else None}
        other.measured(3, "mean", mean, 1, met=tensor != "b", **at)
    assert rule.take_measurements() == other.take_measurements()
    assert rule.take_evidence() == other.take_evidence()
    assert rule.measured_all(3, "mean", means, 1, met=()) is False


@pytest.mark.parametrize("wrong", [{"step": 1.5}, {"measured": {("a", "w"): "x"}}, {"limit": None}])
def test_what_is_measured_is_numbers(wrong: dict[str, Any]) -> None:
    good: dict[str, Any] = {"step": 1, "quantity": "q", "measured": {("a", "w"): 1}, "limit": 2}
    rule = Plain(BASE)
    with pytest.raises((TypeError, ValueError)):
        rule.measured_all(**good | wrong, met={("a", "w")})
    assert (rule.take_measurements(), rule.take_evidence()) == ([], ([], None))


def test_actions_come_before_the_exception() -> None:
    class Told(Actions):
        said: list[str] = []

        def invoke(self, message: str = "", severity: Severity = Severity.ERROR) -> None:
            assert severity is Severity.ERROR
            self.said.append(message)

    rule = Plain(trial())
    rule.actions = Told("", "Plain")
    rule.answer = True
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(3)
    assert Told.said == ["The condition of rule Plain was met at step 3."]


class Noting(Plain):
    """Records a finding of `severity`, and returns True whatever it is."""

    severity = Severity.NOTE

    def invoke_at_step(self, step: int) -> bool:
        self.found(step, severity=self.severity)
        return True

    def invoke_at_end(self, step: int) -> bool:
        return self.invoke_at_step(step)


@pytest.mark.parametrize(
    ("severity", "stop_on", "mails", "stops"),
    [
        (Severity.NOTE, Severity.ERROR, 0, 0),
        (Severity.NOTE, Severity.WARNING, 0, 0),
        (Severity.WARNING, Severity.ERROR, 1, 0),
        (Severity.WARNING, Severity.WARNING, 1, 1),
        (Severity.ERROR, Severity.ERROR, 1, 1),
    ],
)
def test_notes_trigger_nothing_and_stopping_needs_an_error(
    severity: Severity,
    stop_on: Severity,
    mails: int,
    stops: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[type[Action]] = []
    monkeypatch.setattr(Action, "invoke", lambda self, _message: called.append(type(self)))
    mail = '{"name": "email", "endpoint": "a@example.com"}'
    rule = Noting(trial(), f"[{mail}, {STOP}]")
    rule.severity, rule.actions.stop_on = severity, stop_on
    raised = pytest.raises(RuleEvaluationConditionMet) if mails else contextlib.nullcontext()
    with raised:
        rule.invoke(3)
    assert called == [MessageAction] * mails + [StopTrainingAction] * stops
    with pytest.raises(RuleEvaluationConditionMet if mails else NoMoreData):
        invoke_rule(rule, start_step=100, raise_eval_cond=True)  # only the end is judged
    assert len(called) == 2 * (mails + stops)


def test_a_rule_that_is_asked_to_stop_training_says_what_came_of_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TRAINING_JOB_ARN", raising=False)
    rule = Plain(trial(), STOP)
    rule.answer = True
    with pytest.raises(RuleEvaluationConditionMet):
        rule.invoke(3)
    assert [record.getMessage() for record in caplog.records] == [
        f"Action 'stoptraining' (its own training job) of rule 'Plain': refused. {UNNAMED}"
    ]


def test_actions_are_read_when_first_asked_for() -> None:
    rule = Plain(BASE, "{stop")
    with pytest.raises(SMDebugValueError, match=r"^Actions must be JSON"):
        rule.actions


def test_a_rule_declares_no_actions_by_itself() -> None:
    assert Plain.declared_actions({"threshold": 1}) == ""


# -- required tensors ------------------------------------------------------------------------


class Requires(Plain):
    """Requires a tensor at a step back."""

    def set_required_tensors(self, step: int) -> None:
        self.req_tensors.add("loss", steps=[step, step - 3])


def test_required_tensors_are_set_again_for_each_step() -> None:
    rule = Requires(trial())
    rule.invoke(3)
    assert rule.req_tensors.get_tensor_steps("loss") == [3, 0]
    assert [one.name for one in rule.req_tensors.get()] == ["loss"]
    assert list(rule.req_tensors.get_names()) == ["loss"]
    with pytest.raises(StepUnavailable):
        rule.invoke(5)
    assert rule.req_tensors.get_tensor_steps("loss") == [5, 2]


def test_the_output_folder_is_created_when_a_rule_asks_for_it(tmp_path: Path) -> None:
    rule = Plain(None)
    assert rule.output_dir is None
    rule.output_dir = tmp_path / "deep" / "out"
    assert not (tmp_path / "deep").exists()
    assert rule.output_dir == tmp_path / "deep" / "out"
    assert rule.output_dir.is_dir()
