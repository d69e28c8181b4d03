"""What a rule can do at a step, and what comes of it: data, never an exception."""

import sys
from asyncio import CancelledError
from collections.abc import Callable
from typing import Any

import evaluating
import numpy as np
import pytest
from evaluating import WoundClock
from memory_store import MemoryStore

from rule_core.reading.native_index import NativeIndex
from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome, InvocationResult
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import (
    InsufficientInformationForRuleInvocation,
    InvalidWorker,
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules import Rule
from smdebug.rules.extensions import Finding, Severity
from smdebug.trials import Trial

TRAIN = ModeKeys.TRAIN


@pytest.fixture(autouse=True)
def _quiet() -> None:
    evaluating.log_nothing()


def trial(*, ended: bool = True) -> Trial:
    steps = {step: {"loss": np.ones(1, np.float32)} for step in (0, 5, 40)}
    index = NativeIndex(MemoryStore(evaluating.trial(steps, {"losses": ["loss"]}, ended=ended)))
    index.refresh()
    index.finish()
    return Trial("trial", "/trial", index, WoundClock())


class Does(Rule):
    """Does what a test says."""

    def __init__(self, base_trial: Any, act: Callable[["Does", int], Any]) -> None:
        super().__init__(base_trial)
        self.act = act

    def invoke_at_step(self, step: int) -> Any:
        return self.act(self, step)


def judged(act: Callable[[Any, int], Any], step: int = 40) -> InvocationResult:
    base = trial()
    return InProcessInvoker("Does", Does(base, act), [base]).judge(step)


def raising(err: BaseException) -> Callable[[Any, int], Any]:
    def act(*_: object) -> None:
        raise err

    return act


def reads(answer: Any) -> Callable[[Any, int], Any]:
    def act(rule: Any, step: int) -> Any:
        rule.base_trial.tensor("loss").value(step)
        return answer

    return act


@pytest.mark.parametrize(
    ("answer", "did"),
    [
        pytest.param(False, InvocationOutcome.CLEAR, id="False"),
        pytest.param(True, InvocationOutcome.MET, id="True"),
        pytest.param(np.True_, InvocationOutcome.MET, id="numpy-true"),
        pytest.param(np.False_, InvocationOutcome.CLEAR, id="numpy-false"),
        pytest.param(np.array([True]), InvocationOutcome.MET, id="one-element"),
        pytest.param(np.array([[0.0]]), InvocationOutcome.CLEAR, id="one-zero"),
        pytest.param(np.float32(0.5), InvocationOutcome.MET, id="number"),
        pytest.param(0, InvocationOutcome.CLEAR, id="zero"),
        pytest.param("no", InvocationOutcome.MET, id="text"),
        pytest.param([], InvocationOutcome.CLEAR, id="empty-list"),
        pytest.param(None, InvocationOutcome.CLEAR, id="None"),
    ],
)
def test_answer_is_taken_for_its_truth_value(answer: Any, did: InvocationOutcome) -> None:
    assert did is judged(reads(answer)).did


def test_answer_without_a_truth_value_is_the_rules_error() -> None:
    found = judged(reads(np.array([True, False])))
    assert found.did is InvocationOutcome.FAILED
    assert found.ends
    assert found.reason.startswith("Rule 'Does' raised ValueError at step 40: The truth value of")


def test_met_without_evidence_says_at_least_the_step() -> None:
    assert (Finding(40),) == judged(reads(True)).findings


def test_evidence_of_a_met_condition_is_kept_in_order() -> None:
    def act(rule: Rule, step: int) -> bool:
        rule.found(step, tensor="a", measured=1, limit=2)
        return rule.found(step, worker="w", note="n")

    found = judged(act)
    assert (
        InvocationOutcome.MET,
        (Finding(40, "a", None, 1, 2), Finding(40, None, "w", None, None, "n")),
    ) == (
        found.did,
        found.findings,
    )


def test_notes_alone_do_not_meet_the_condition() -> None:
    def act(rule: Rule, step: int) -> bool:
        assert not rule.found(step, tensor="a", severity=Severity.NOTE)
        assert not rule.measured(step, "q", 3, 2, met=True, severity=Severity.NOTE)
        assert not rule.measured_all(
            step, "q", {("a", None): 3}, 2, met=[("a", None)], severity=Severity.NOTE
        )
        return True

    result = judged(act)
    assert result.did is InvocationOutcome.CLEAR
    assert [finding.severity for finding in result.findings] == [Severity.NOTE] * 3


def test_notes_beside_a_warning_meet_the_condition() -> None:
    def act(rule: Rule, step: int) -> bool:
        rule.found(step, tensor="a", severity=Severity.NOTE)
        return rule.found(step, tensor="b", severity=Severity.WARNING)

    result = judged(act)
    assert result.did is InvocationOutcome.MET
    assert [finding.severity for finding in result.findings] == ["note", "warning"]


def test_found_and_then_false_is_judged_and_hands_over_what_was_found() -> None:
    def act(rule: Rule, step: int) -> bool:
        rule.found(step, measured=3)
        return False

    found = judged(act)
    assert (InvocationOutcome.CLEAR, (Finding(40, measured=3),)) == (found.did, found.findings)


def test_evidence_of_one_step_does_not_reach_the_next() -> None:
    base = trial()

    def act(rule: Any, step: int) -> bool:
        if step == 0:
            rule.found(step)
            raise StepUnavailable(step, TRAIN)
        return bool(rule.base_trial.tensor("loss").value(step)[0] > 5)

    invoker = InProcessInvoker("Does", Does(base, act), [base])
    assert InvocationOutcome.SKIPPED is invoker.judge(0).did
    assert (invoker.judge(5).did, invoker.judge(40).findings) == (InvocationOutcome.CLEAR, ())


def test_rule_that_read_nothing_did_not_judge() -> None:
    found = judged(lambda *_: False)
    assert (found.did, found.reason) == (InvocationOutcome.SKIPPED, "nothing read")


def test_true_of_a_rule_that_read_nothing_counts() -> None:
    assert InvocationOutcome.MET is judged(lambda *_: True).did


def test_reading_another_trial_is_judging() -> None:
    base, other = trial(), trial()
    rule = Does(base, lambda *_: other.tensor("loss").value(0)[0] > 5)
    assert InvocationOutcome.CLEAR is InProcessInvoker("Does", rule, [base, other]).judge(5).did


def test_not_judged_with_its_reason() -> None:
    found = judged(lambda rule, _: rule.not_judged("too early"))
    assert (found.did, found.reason, found.findings) == (InvocationOutcome.SKIPPED, "too early", ())


@pytest.mark.parametrize(
    ("err", "did", "reason", "ends"),
    [
        (RuleEvaluationConditionMet("Does", 40), InvocationOutcome.MET, "", False),
        (RuleEvaluationConditionMet("Does", 40, end_of_rule=True), InvocationOutcome.MET, "", True),
        (TensorUnavailable("x"), InvocationOutcome.SKIPPED, "TensorUnavailable", False),
        (
            TensorUnavailableForStep("x", 1),
            InvocationOutcome.SKIPPED,
            "TensorUnavailableForStep",
            False,
        ),
        (StepUnavailable(1, TRAIN), InvocationOutcome.SKIPPED, "StepUnavailable", False),
        (
            InsufficientInformationForRuleInvocation("Does", "no labels"),
            InvocationOutcome.SKIPPED,
            "no labels",
            False,
        ),
        (StepNotYetAvailable(1, TRAIN), InvocationOutcome.WAITS, "StepNotYetAvailable", False),
        (NoMoreData(1, TRAIN, 0), InvocationOutcome.ENDED, "", True),
        (NoMoreProfilerData(1), InvocationOutcome.ENDED, "", True),
        (
            KeyError("conv1"),
            InvocationOutcome.FAILED,
            "Rule 'Does' raised KeyError at step 40: 'conv1'.",
            True,
        ),
        (ValueError(), InvocationOutcome.FAILED, "Rule 'Does' raised ValueError at step 40.", True),
        (
            InvalidWorker("w"),
            InvocationOutcome.FAILED,
            "Rule 'Does' raised InvalidWorker at step 40: No worker 'w' here.",
            True,
        ),
        (
            SystemExit(3),
            InvocationOutcome.FAILED,
            "Rule 'Does' raised SystemExit at step 40: 3.",
            True,
        ),
        # No Exception: what a rule's event loop lets out when a task of it was cancelled.
        (
            CancelledError(),
            InvocationOutcome.FAILED,
            "Rule 'Does' raised CancelledError at step 40.",
            True,
        ),
        (
            RecursionError("deep"),
            InvocationOutcome.FAILED,
            "Rule 'Does' raised RecursionError at step 40: deep.",
            True,
        ),
    ],
    ids=lambda value: repr(value) if isinstance(value, BaseException) else "",
)
def test_what_a_rule_raises_is_data(
    err: BaseException, did: InvocationOutcome, reason: str, ends: bool
) -> None:
    found = judged(raising(err))
    assert (did, reason, ends) == (found.did, found.reason, found.ends)


def test_interrupt_is_not_the_rules() -> None:
    with pytest.raises(KeyboardInterrupt):
        judged(raising(KeyboardInterrupt()))


@pytest.mark.parametrize("err", [ValueError("x"), SystemExit(1), StepUnavailable(1, TRAIN)])
def test_trials_show_all_again_after_any_exception(err: BaseException) -> None:
    base = trial()
    InProcessInvoker("Does", Does(base, raising(err)), [base]).judge(5)
    assert (base.horizon, base.dynamic_refresh) == (None, True)


def test_trials_are_held_also_for_a_rule_that_overrides_invoke() -> None:
    class Old(Rule):
        seen: Any = None

        def invoke_at_step(self, step: int) -> bool:
            raise NotImplementedError

        def invoke(self, step: int) -> None:
            self.seen = (self.base_trial.steps(), self.base_trial.dynamic_refresh)
            self.base_trial.tensor("loss").value(step)
            raise RuleEvaluationConditionMet(self.rule_name, step)

    base = trial()
    rule = Old(base)
    assert InvocationOutcome.MET is InProcessInvoker("Old", rule, [base]).judge(5).did
    assert rule.seen == ([0, 5], False)


def test_what_was_asked_for_in_vain_is_handed_over() -> None:
    def act(rule: Any, _: int) -> bool:
        rule.base_trial.tensor_names(collection="gradients")
        rule.base_trial.tensor_names(regex="relu")
        rule.base_trial.tensor("bias")
        return False

    assert judged(act).missed == ("collection 'gradients'", "pattern 'relu'", "tensor 'bias'")


def test_time_in_the_rule_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([10.0, 12.5])
    monkeypatch.setattr("rule_runner.engine.invocation.time.perf_counter", lambda: next(ticks))
    assert judged(reads(False)).seconds == 2.5


def test_exponential_pattern_is_one_sentence() -> None:
    name = "a" * 60 + "!"
    files = evaluating.trial({0: {name: np.ones(1, np.float32)}})
    index = NativeIndex(MemoryStore(files))
    index.refresh()
    base = Trial("t", "/t", index)
    rule = Does(base, lambda rule, _: bool(rule.base_trial.tensor_names(regex="^(a|aa)+$")))
    found = InProcessInvoker("Does", rule, [base]).judge(0)
    assert found.did is InvocationOutcome.FAILED
    assert found.reason == (
        "Rule 'Does' raised SMDebugValueError at step 0: Pattern '^(a|aa)+$' takes more than 0.5 s "
        "on a name of 61 characters. Write it without nested repetitions."
    )


def test_infinite_recursion_of_a_rule_is_its_error() -> None:
    def act(rule: Any, step: int) -> Any:
        return act(rule, step)

    limit = sys.getrecursionlimit()
    assert InvocationOutcome.FAILED is judged(act).did
    assert limit == sys.getrecursionlimit()


def test_closing_is_nothing() -> None:
    base = trial()
    InProcessInvoker("Does", Does(base, reads(False)), [base]).close()
