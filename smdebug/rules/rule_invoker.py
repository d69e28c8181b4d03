"""invoke_rule: the documented loop of one rule over the steps of its trial, in Python."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from smdebug.core.logger import get_logger
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import (
    NoMoreData,
    NoMoreProfilerData,
    RuleEvaluationConditionMet,
    StepUnavailable,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from smdebug.rules.rule import Rule
from smdebug.trials.view import POLL_S

SKIPPED = (TensorUnavailableForStep, StepUnavailable, TensorUnavailable)


def invoke_rule(
    rule_obj: Rule,
    start_step: int | None = 0,
    end_step: int | None = None,
    raise_eval_cond: bool = False,
) -> None:
    """Invoke a rule at global step after global step; steps without its tensors are passed over.

    A rule that overrides `Rule.invoke` is called for every integer, as documented; any other one
    for the steps that the trial has, which gives the same verdicts. Over a profiler trial, which
    has no steps, they are just counted, until the rule says that there are no more data. However
    the loop ends, the rule's `invoke_at_end` is called last; what it answers counts if the training
    job has ended.

    Parameters
    ----------
    start_step, end_step
        ``start_step <= step < end_step``; without `end_step` it goes on to the end of the job.
    raise_eval_cond
        Let `RuleEvaluationConditionMet` out instead of logging it and going on.

    Raises
    ------
    NoMoreData
        If the training job has ended before `end_step`: how a run over a whole job ends.
    RuleEvaluationConditionMet
        With `raise_eval_cond`, when the condition is met.
    """
    walked: list[int] = []
    try:
        _invoke_at_steps(rule_obj, start_step or 0, end_step, raise_eval_cond, walked)
    except (NoMoreData, NoMoreProfilerData) as end:
        last = _last_step(rule_obj, walked)
        if rule_obj.invoke_at_end(last):
            rule_obj.carry_out_actions(last)
            if raise_eval_cond:
                raise RuleEvaluationConditionMet(rule_obj.rule_name, last) from None
            _log_met(rule_obj, last)
        if isinstance(end, NoMoreData):
            raise
        return
    except BaseException:
        rule_obj.invoke_at_end(_last_step(rule_obj, walked))
        raise
    rule_obj.invoke_at_end(_last_step(rule_obj, walked))


def _is_of_metrics(trial: Any) -> bool:
    """Say whether a trial is one of profiler data: it has time, and no steps."""
    return hasattr(trial, "wait_for_data")


def _last_step(rule_obj: Rule, walked: list[int]) -> int:
    trial = rule_obj.base_trial
    steps = walked if _is_of_metrics(trial) else trial.steps(show_incomplete_steps=True)
    return max(steps, default=0)


def _log_met(rule_obj: Rule, step: int) -> None:
    text = "The condition of rule %s was met at step %d."
    get_logger(rule_obj.rule_name).info(text, rule_obj.rule_name, step)


def _invoke_at_steps(
    rule_obj: Rule,
    start_step: int,
    end_step: int | None,
    raise_eval_cond: bool,
    walked: list[int],
) -> None:
    """Invoke a rule; the last step that was judged, or passed over, is left in `walked`."""
    logger = get_logger(rule_obj.rule_name)
    overridden = type(rule_obj).invoke is not Rule.invoke
    walk = _every_step if overridden or _is_of_metrics(rule_obj.base_trial) else _known_steps
    for step in walk(rule_obj.base_trial, start_step, end_step):
        try:
            rule_obj.invoke(step)
        except SKIPPED as err:
            logger.debug("Step %d is passed over. %s", step, err)
        except RuleEvaluationConditionMet as met:
            walked[:] = [step]
            if raise_eval_cond:
                raise
            _log_met(rule_obj, step)
            if met.end_of_rule:
                break
        walked[:] = [step]


def _known_steps(trial: Any, start: int, end: int | None) -> Iterator[int]:
    """Yield the steps that all workers wrote, as they come, up to the end of the job."""
    at = start
    while end is None or at < end:
        steps = trial.steps()
        for step in (one for one in steps if one >= at and (end is None or one < end)):
            yield step
            at = step + 1
        if end is not None and (at >= end or any(step >= end for step in trial.steps())):
            return
        if trial.loaded_all_steps and not any(step >= at for step in trial.steps()):
            raise NoMoreData(at, ModeKeys.GLOBAL, steps[-1] if steps else -1)
        if not any(step >= at for step in trial.steps()):
            trial.clock.sleep(POLL_S)


def _every_step(trial: Any, start: int, end: int | None) -> Iterator[int]:
    """Yield every integer, up to the last step of an ended job; over a profiler trial all."""
    if _is_of_metrics(trial):
        yield from count(start) if end is None else range(start, end)
        return
    step = start
    while end is None or step < end:
        steps = trial.steps(show_incomplete_steps=True)
        last = steps[-1] if steps else -1
        if trial.loaded_all_steps and step > last:
            raise NoMoreData(step, ModeKeys.GLOBAL, last)
        yield step
        step += 1
