"""Writes small trials and lets one rule judge each of their steps."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from clocks import PatientClock

from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.rules import Rule
from smdebug.rules.extensions import Finding
from smdebug.trials import Trial, create_trial

Steps = Mapping[int, Mapping[str, Any]]
COLLECTIONS = {
    "losses": "loss",
    "gradients": "^gradient",
    "biases": r"^(?!gradient).*bias",
    "weights": r"^(?!gradient).*weight",
}


@dataclass(frozen=True, slots=True)
class Judged:
    """What a rule said: the steps at which it is met, why steps were skipped, its evidence."""

    met: list[int]
    skipped: dict[int, str]
    findings: list[Finding]


def save(
    root: Path,
    steps: Steps,
    *,
    modes: Mapping[int, ModeKeys] | None = None,
    worker: str = "worker_0",
    num_workers: int = 1,
    reductions: Mapping[int, Mapping[str, Any]] | None = None,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
    collections: Mapping[str, str] | None = None,
) -> Path:
    """Write what one worker saves; steps of a mode are counted from 0 within it."""
    writer = TrialWriter(
        root,
        collections=collections or COLLECTIONS,
        worker=worker,
        num_workers=num_workers,
        end_job=False,
    )
    counts: Counter[ModeKeys] = Counter()
    for step in sorted({*steps, *(reductions or {})}):
        mode = (modes or {}).get(step, ModeKeys.GLOBAL)
        writer.step(
            step,
            steps.get(step),
            mode=mode,
            mode_step=step if mode is ModeKeys.GLOBAL else counts[mode],
            reductions=(reductions or {}).get(step),
            shapes=shapes,
        )
        counts[mode] += 1
    return root


def with_defaults(rule_class: type[Rule], **defaults: Any) -> type[Rule]:
    """Return a rule with other defaults: unlike what is given, they leave its refinements on."""
    params = tuple(
        replace(param, default=defaults.get(param.name, param.default))
        for param in rule_class.PARAMS
    )
    return type(rule_class.__name__, (rule_class,), {"PARAMS": params})


def opened(root: Path) -> Trial:
    """Open an unfinished or finished trial without waiting."""
    return create_trial(root, timeout=1, clock=PatientClock())


def judge(rule_class: type[Rule], root: Path, *, start: int = 0, **params: Any) -> Judged:
    """Let a rule judge the steps of a trial from `start` on, in order, whatever it finds."""
    trial = opened(root)
    invoker = InProcessInvoker(rule_class.__name__, rule_class(trial, **params), [trial])
    did = {
        step: invoker.judge(step)
        for step in trial.steps(show_incomplete_steps=True)
        if step >= start
    }
    assert {result.did for result in did.values()} <= {
        InvocationOutcome.MET,
        InvocationOutcome.CLEAR,
        InvocationOutcome.SKIPPED,
    }, did
    return Judged(
        [step for step, result in did.items() if result.did is InvocationOutcome.MET],
        {
            step: result.reason
            for step, result in did.items()
            if result.did is InvocationOutcome.SKIPPED
        },
        [finding for result in did.values() for finding in result.findings],
    )


def judge_to_the_end(rule_class: type[Rule], root: Path, **params: Any) -> Judged:
    """Let a rule judge each step and the end; return what it said at the end."""
    trial = opened(root)
    invoker = InProcessInvoker(rule_class.__name__, rule_class(trial, **params), [trial])
    last = -1
    for last in trial.steps(show_incomplete_steps=True):
        invoker.judge(last)
    result = invoker.finish(last)
    return Judged([last] if result.did is InvocationOutcome.MET else [], {}, list(result.findings))
