"""invoke_rule: runs one rule over the steps of its trial."""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import count
from typing import Any

from rule_core.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from rule_core.logger import get_logger, show_log
from rule_core.model.segments import first_of_segment, segment_of, step_in_segment, step_text
from rule_core.modes import ModeKeys
from rule_core.rules.rule import Rule

SKIPPED = (TensorUnavailableForStep, StepUnavailable, TensorUnavailable)


def invoke_rule(
    rule_obj: Rule,
    start_step: int | None = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
) -> None:
    """Invoke a rule at each global step; steps without its tensors are skipped.

    A rule that overrides `Rule.invoke` is invoked for every integer, as documented; any other rule
    for the steps of the trial, with the same verdicts. A profiler trial has no steps: the rule is
    invoked for 0, 1, 2, ... until it raises `NoMoreProfilerData`. The same rule object judges all
    segments of a resumed run; see `Rule.segment_begins`. However the loop ends, the rule's
    `invoke_at_end` is called last; its result counts if the training job has ended. The start, each
    met condition and the end are logged, and printed unless the program configures logging; see
    `show_log`.

    Parameters
    ----------
    start_step, end_step
        ``start_step <= step < end_step`` in each segment; without `end_step` the loop runs to the
        end of the job.
    raise_eval_cond
        Whether to raise `RuleEvaluationConditionMet` instead of logging it and continuing.

    Raises
    ------
    NoMoreData
        If the training job ends before `end_step`, as in a run over a whole job.
    RuleEvaluationConditionMet
        With `raise_eval_cond`, when the condition is met.
    """
    show_log()
    logger = get_logger(rule_obj.rule_name)
    logger.info("Started rule %s at step %d.", rule_obj.rule_name, start_step or 0)
    last_steps: list[int] = []
    result_counts = False
    try:
        _invoke_at_steps(rule_obj, start_step or 0, end_step, raise_eval_cond, last_steps)
    except (NoMoreData, NoMoreProfilerData) as end:
        result_counts = True
        last = _last_step(rule_obj, last_steps)
        severity = rule_obj.met_severity(rule_obj.invoke_at_end, last)
        if severity is not None:
            rule_obj.carry_out_actions(last, severity)
            if raise_eval_cond:
                raise RuleEvaluationConditionMet(rule_obj.rule_name, last) from None
            _log_condition_met(rule_obj, last)
        if isinstance(end, NoMoreData):
            raise
    finally:
        if not result_counts:
            rule_obj.invoke_at_end(_last_step(rule_obj, last_steps))
        last_text = f"after step {step_text(*last_steps)}" if last_steps else "without any step"
        logger.info("Ended rule %s %s.", rule_obj.rule_name, last_text)


def _is_profiler_trial(trial: Any) -> bool:
    """Return whether a trial is a profiler trial, which has no steps."""
    return hasattr(trial, "wait_for_data")


def _last_step(rule_obj: Rule, last_steps: list[int]) -> int:
    trial = rule_obj.base_trial
    steps = last_steps if _is_profiler_trial(trial) else trial.steps(show_incomplete_steps=True)
    return max(steps, default=0)


def _log_condition_met(rule_obj: Rule, step: int) -> None:
    text = "The condition of rule %s was met at step %s."
    get_logger(rule_obj.rule_name).info(text, rule_obj.rule_name, step_text(step))


def _invoke_at_steps(
    rule_obj: Rule,
    start_step: int,
    end_step: int | None,
    raise_eval_cond: bool,
    last_steps: list[int],
) -> None:
    """Invoke a rule at its steps; `last_steps` receives the last step."""
    logger = get_logger(rule_obj.rule_name)
    overridden = type(rule_obj).invoke is not Rule.invoke
    walk = _every_step if overridden or _is_profiler_trial(rule_obj.base_trial) else _known_steps
    segment = 0
    for step in walk(rule_obj.base_trial, start_step, end_step):
        if segment_of(step) != segment:
            segment = segment_of(step)
            rule_obj.segment_begins(segment)
        try:
            rule_obj.invoke(step)
        except SKIPPED as err:
            logger.debug("Step %d is skipped. %s", step, err)
        except RuleEvaluationConditionMet as met:
            last_steps[:] = [step]
            if raise_eval_cond:
                raise
            _log_condition_met(rule_obj, step)
            if met.end_of_rule:
                break
        last_steps[:] = [step]


def _known_steps(trial: Any, start: int, end: int | None) -> Iterator[int]:
    """Yield the steps that all workers wrote, as they arrive, up to the end of the job."""
    next_step = start
    while True:
        steps = trial.steps()
        for step in steps:
            own = step_in_segment(step)
            if step < next_step or own < start or (end is not None and own >= end):
                continue
            yield step
            next_step = step + 1
        if end is not None and (next_step >= end or any(step >= end for step in steps)):
            return
        if trial.loaded_all_steps and not any(step >= next_step for step in trial.steps()):
            raise NoMoreData(next_step, ModeKeys.GLOBAL, steps[-1] if steps else -1)
        if not any(step >= next_step for step in trial.steps()):
            trial.clock.sleep(trial.pause_s)


def _every_step(trial: Any, start: int, end: int | None) -> Iterator[int]:
    """Yield every integer up to the last step of an ended job; without end for a profiler trial."""
    if _is_profiler_trial(trial):
        yield from count(start) if end is None else range(start, end)
        return
    step = start
    while end is None or step_in_segment(step) < end:
        steps = trial.steps(show_incomplete_steps=True)
        last = steps[-1] if steps else -1
        if trial.loaded_all_steps and step > last:
            raise NoMoreData(step, ModeKeys.GLOBAL, last)
        yield step
        following = steps[bisect_right(steps, step) :][:1]
        step += 1
        if following and segment_of(following[0]) > segment_of(step):
            step = max(following[0], first_of_segment(following[0]) + start)
