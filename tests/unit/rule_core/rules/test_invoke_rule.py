"""invoke_rule: the documented loop, in Python."""

import logging
from collections.abc import Callable
from typing import Any

import evaluating
import numpy as np
import pytest
from evaluating import END, ScriptedClock, WoundClock
from memory_store import MemoryStore

from rule_core.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepNotYetAvailable,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from rule_core.logger import get_logger
from rule_core.modes import ModeKeys
from rule_core.reading.native_index import NativeIndex
from rule_core.rules.invoke_rule import invoke_rule
from rule_core.rules.invoke_rule import invoke_rule as same
from rule_core.rules.rule import Rule
from rule_core.trials.create_trial import create_trial
from rule_core.trials.trial import Trial

STEPS = (0, 3, 5, 2_000_000_000)
MET = [f"The condition of rule Acts was met at step {step}." for step in (3, 5)]


def files(*steps: int, ended: bool = True) -> dict[str, bytes]:
    return evaluating.trial({step: {"loss": np.float32([step])} for step in steps}, ended=ended)


def trial(found: dict[str, bytes] | None = None, clock: WoundClock | None = None) -> Trial:
    index = NativeIndex(MemoryStore(files(*STEPS) if found is None else found))
    return Trial("t", "/t", index, clock or WoundClock())


class Acts(Rule):
    def __init__(self, base_trial: Any, act: Callable[[int], Any] = lambda _: False) -> None:
        super().__init__(base_trial)
        self.act = act
        self.steps: list[int] = []

    def invoke_at_step(self, step: int) -> Any:
        self.steps.append(step)
        return self.act(step)


class Old(Acts):
    """Overrides `invoke`, as old rules do."""

    def invoke(self, step: int) -> None:
        super().invoke(step)


def test_whole_job_ends_with_no_more_data() -> None:
    rule = Acts(trial())
    with pytest.raises(NoMoreData, match=r"its last step is 2000000000\.$"):
        invoke_rule(rule)
    assert rule.steps == list(STEPS)
    assert same is invoke_rule


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 5, [0, 3]),
        (3, 6, [3, 5]),
        (1, 4, [3]),
        (None, 1, [0]),
        (4, 5, []),
        (5, 5, []),
        (6, 2, []),
    ],
)
@pytest.mark.parametrize("kind", [Acts, Old])
def test_end_step_is_exclusive(
    kind: type[Acts], start: int | None, end: int, expected: list[int]
) -> None:
    rule = kind(trial())
    invoke_rule(rule, start_step=start, end_step=end)
    assert rule.steps == expected


def test_end_beyond_the_job_is_no_more_data() -> None:
    rule = Acts(trial(files(0, 3)))
    with pytest.raises(NoMoreData):
        invoke_rule(rule, end_step=10)
    assert rule.steps == [0, 3]


def test_rule_that_overrides_invoke_is_called_for_every_integer_up_to_the_last() -> None:
    class Counts(Old):
        called: list[int] = []

        def invoke(self, step: int) -> None:
            self.called.append(step)
            super().invoke(step)

    rule = Counts(trial(files(0, 3)))
    with pytest.raises(NoMoreData, match=r"before step 4 .* last step is 3"):
        invoke_rule(rule)
    assert Counts.called == [0, 1, 2, 3]
    assert rule.steps == [0, 3]


@pytest.mark.parametrize("kind", [Acts, Old])
def test_trial_without_steps(kind: type[Acts]) -> None:
    with pytest.raises(NoMoreData, match="its last step is -1"):
        invoke_rule(kind(trial(files())))


@pytest.mark.parametrize(
    "err",
    [
        TensorUnavailable("x"),
        TensorUnavailableForStep("x", 1),
        StepUnavailable(1, ModeKeys.GLOBAL),
    ],
    ids=lambda err: type(err).__name__,
)
def test_what_is_missing_is_passed_over(err: Exception) -> None:
    def act(_: int) -> bool:
        raise err

    rule = Acts(trial(), act)
    invoke_rule(rule, end_step=6)
    assert rule.steps == [0, 3, 5]


@pytest.mark.parametrize(
    "err", [KeyError("x"), StepNotYetAvailable(1, ModeKeys.GLOBAL)], ids=lambda e: type(e).__name__
)
def test_anything_else_comes_out(err: Exception) -> None:
    def act(_: int) -> bool:
        raise err

    base = trial()
    with pytest.raises(type(err)):
        invoke_rule(Acts(base, act))
    assert (base.dynamic_refresh, base.horizon) == (True, None)


def test_profiler_data_that_ends_ends_it() -> None:
    def act(_: int) -> bool:
        raise NoMoreProfilerData(5)

    rule = Acts(trial(), act)
    invoke_rule(rule)
    assert rule.steps == [0]


def test_met_condition_is_logged_at_info_with_its_step_and_it_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rule = Acts(trial(), lambda step: step in {3, 5})
    caplog.set_level(logging.INFO, logger=get_logger("Acts").name)
    invoke_rule(rule, end_step=6)
    assert [(record.levelname, record.getMessage()) for record in caplog.records[1:-1]] == [
        ("INFO", "The condition of rule Acts was met at step 3."),
        ("INFO", "The condition of rule Acts was met at step 5."),
    ]
    assert rule.steps == [0, 3, 5]


class Ends(Acts):
    at_end = False

    def invoke_at_end(self, step: int) -> bool:
        self.steps.append(-step)
        return self.at_end


def test_a_rule_is_asked_last_however_the_loop_ends() -> None:
    rule = Ends(trial())
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    invoke_rule(rule, 3, 4)
    rule.act = lambda _: True
    with pytest.raises(RuleEvaluationConditionMet):
        invoke_rule(rule, raise_eval_cond=True)
    last = -STEPS[-1]
    assert rule.steps == [*STEPS, last, 3, last, 0, last]


def test_what_a_rule_finds_at_the_end_is_a_condition_met(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Ends(trial())
    rule.at_end = True
    caplog.set_level(logging.INFO, logger=get_logger("Ends").name)
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    text = f"The condition of rule Ends was met at step {STEPS[-1]}."
    assert [record.getMessage() for record in caplog.records[1:-1]] == [text]
    told: list[str] = []
    monkeypatch.setattr(rule.actions, "invoke", told.append)
    with pytest.raises(RuleEvaluationConditionMet, match=f"at step {STEPS[-1]}"):
        invoke_rule(rule, raise_eval_cond=True)
    assert told == [text]


def test_met_condition_comes_out_if_asked() -> None:
    rule = Acts(trial(), lambda step: step == 3)
    with pytest.raises(RuleEvaluationConditionMet, match="at step 3"):
        invoke_rule(rule, raise_eval_cond=True)
    assert rule.steps == [0, 3]


@pytest.mark.parametrize("raising", [True, False])
def test_end_of_rule(raising: bool) -> None:
    def act(step: int) -> bool:
        msg = "Acts"
        raise RuleEvaluationConditionMet(msg, step, end_of_rule=True)

    rule = Acts(trial(), act)
    if raising:
        with pytest.raises(RuleEvaluationConditionMet):
            invoke_rule(rule, raise_eval_cond=True)
    else:
        invoke_rule(rule)
    assert rule.steps == [0]


@pytest.mark.parametrize("kind", [Acts, Old])
def test_running_job_is_followed_to_its_end(kind: type[Acts]) -> None:
    result = files(0, ended=False)
    clock = ScriptedClock(
        int,
        lambda: result.update(files(0, 3, ended=False)),
        int,
        lambda: result.update(files(0, 3, 4)),
    )
    rule = kind(trial(result, clock))
    with pytest.raises(NoMoreData):
        invoke_rule(rule)
    assert rule.steps == [0, 3, 4]
    assert END in result


def test_end_step_of_a_running_job_needs_no_end_mark() -> None:
    found = files(0, 3, ended=False)
    rule = Acts(trial(found, ScriptedClock(lambda: found.update(files(0, 3, 7, ended=False)))))
    invoke_rule(rule, end_step=5)
    assert rule.steps == [0, 3]


def test_documents_example(tmp_path: Any) -> None:
    """The loop of the documents: a rule over a trial that `create_trial` opened."""
    import rawtrial

    path = rawtrial.write(tmp_path / "trial", files(0, 1))
    base = create_trial(str(path), clock=WoundClock())
    rule = Acts(base, lambda step: base.tensor("loss").value(step)[0] == 1)
    with pytest.raises(RuleEvaluationConditionMet, match="at step 1"):
        invoke_rule(rule, raise_eval_cond=True)


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("", ["Started rule Acts at step 0.", *MET, "Ended rule Acts after step 5."]),
        ("warning", []),
        ("off", []),
    ],
)
def test_invoke_rule_is_not_silent(
    level: str,
    expected: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SMDEBUG_LOG_LEVEL", level)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a program without logging
    with pytest.raises(NoMoreData):
        invoke_rule(Acts(trial(files(0, 3, 5)), lambda step: step > 0))
    output = capsys.readouterr().out
    assert [line.partition("] ")[2] for line in output.splitlines()] == expected


def test_invoke_rule_leaves_the_logging_of_a_program_alone(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    logging.getLogger("smdebug").setLevel(logging.ERROR)
    invoke_rule(Acts(trial(), lambda _: True), end_step=1)
    assert not caplog.messages
    logging.getLogger("smdebug").setLevel(logging.INFO)
    invoke_rule(Acts(trial(), lambda _: True), end_step=1)
    assert len(caplog.messages) == 3
    assert not capsys.readouterr().out
