"""Makes rules over trials, in this process or in one of their own."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rule_runner.binding import BoundRule, bind, construct
from rule_runner.child import ChildProcess
from rule_runner.config import EvaluationConfig, Isolation, RuleJobConfig, RuleMode
from rule_runner.errors import ParameterError, RuleSourceError
from rule_runner.fetch import Fetched
from rule_runner.invocation import (
    UNREADABLE,
    Begun,
    Did,
    InProcess,
    Invocation,
    Invoker,
    OverWindows,
)
from rule_runner.loader import load_builtin, load_source
from rule_runner.nursery import Nursery
from rule_runner.openings import open_profiler_trial, open_trial
from rule_runner.scrubbed import scrubbed
from smdebug.exceptions import SMDebugError
from smdebug.rules.action.action import NoActions
from smdebug.storage import StorageUnavailableError
from smdebug.trials import Trial

if TYPE_CHECKING:
    from rule_runner.openings import AnyTrial


def nursery_of(config: EvaluationConfig) -> Nursery | None:
    """Return what begins processes for rules; None if they have none of their own."""
    if config.isolate is Isolation.PROCESS:
        trials = (config.trial, *config.others_of(*config.rules))
        return Nursery(config.rule_timeout, scrubbed(os.environ, trials))
    return Nursery(config.rule_timeout) if config.own_processes else None


def make_invoker(
    config: RuleJobConfig,
    bound: BoundRule,
    trials: "Sequence[AnyTrial]",
    nursery: Nursery | None,
    output_dir: Path | None = None,
) -> Invoker:
    """Return what judges steps with a rule: in this process, or in one that a `nursery` begins.

    The rule writes its own files, if it has any, to `output_dir`. Its actions are left to the
    runner; in mode observe it gets none, though they are checked.

    Raises
    ------
    ClientError
        If the rule cannot be constructed in this process, or have one of its own.
    """
    actions = config.actions
    if config.mode is RuleMode.OBSERVE:
        _parsed(actions, config.loaded.name)
        actions = ""
    window_us = config.window_us if config.profiler else None
    if nursery is None:
        return _construct(bound, trials, actions, output_dir, window_us)
    loaded = config.loaded
    if not loaded.builtin and loaded.source is None:
        msg = f"Rule {loaded.name!r} has no file that a process of its own could run. Give one."
        raise RuleSourceError(msg)
    order = _Order(
        loaded.name,
        loaded.fetched or loaded.source,
        dict(config.parameters),
        tuple(_arguments(trial) for trial in trials),
        actions,
        output_dir,
        window_us,
    )
    return ChildProcess(loaded.name, _make, order, nursery)


def _arguments(trial: "AnyTrial") -> tuple[Any, ...]:
    """Return what opens the same trial in another process."""
    if isinstance(trial, Trial):
        return trial.path, trial.name, trial.index.window
    unseen = trial.source.waits_for_unseen
    return trial.path, trial.name, tuple(trial.stop_files), trial.stop_grace, unseen


def _construct(
    bound: BoundRule,
    trials: "Sequence[AnyTrial]",
    actions: str,
    output_dir: Path | None,
    window_us: int | None,
) -> InProcess:
    """Construct a rule over views of its own; `window_us` long are its windows, if it has any."""
    views = [trial.share() for trial in trials]
    found = _parsed(actions, bound.loaded.name)
    around = None if bound.loaded.builtin else bound.loaded.surroundings  # ours change nothing
    if around is None:
        rule = construct(bound, views[0], views[1:], actions)
    else:
        rule = around.call(construct, bound, views[0], views[1:], actions)
    rule.actions = found
    if getattr(rule, "output_dir", None) is None:
        rule.output_dir = output_dir
    if window_us is None:
        return InProcess(bound.loaded.name, rule, views, around)
    return OverWindows(bound.loaded.name, rule, views, around, window_us)


def _parsed(actions: str, rule: str) -> NoActions:
    """Return the actions of a rule, which it cannot carry out; bad ones are the user's error."""
    try:
        return NoActions(actions, rule)
    except SMDebugError as err:
        raise ParameterError(str(err)) from err


@dataclass(frozen=True, slots=True)
class _Order:
    """What another process needs to make the same rule over the same trials.

    Of each trial the arguments that open it.
    """

    name: str
    source: Path | Fetched | None
    parameters: dict[str, str]
    trials: tuple[tuple[Any, ...], ...]
    actions: str
    output_dir: Path | None = None
    window_us: int | None = None


class _Following:
    """Judges steps with a rule over trials that nobody else looks at."""

    def __init__(
        self, invoker: InProcess, trials: "Sequence[AnyTrial]", notes: tuple[str, ...]
    ) -> None:
        self._invoker = invoker
        self._trials = trials
        self._notes = notes
        self._told: set[str] = set()

    def begin(self) -> Begun:
        """Say that the rule was made; see `Invoker`."""
        return replace(self._invoker.begin(), notes=self._notes)

    def judge(self, step: int) -> Invocation:
        """Look for the files that are there, and judge a step.

        A store that may answer later is asked again when there is more; another is the end.
        """
        try:
            self._follow(step)
        except StorageUnavailableError as err:
            if not err.transient:
                return Invocation(Did.FAILED, str(err), ends=True)
            invocation = Invocation(Did.WAITS, UNREADABLE, notes=(str(err),))
        else:
            invocation = self._invoker.judge(step)
        notes = [one for one in self._troubles() if one not in self._told]
        self._told.update(notes)
        return replace(invocation, notes=(*invocation.notes, *notes))

    def wait(self, step: int) -> Invocation | None:
        """Judge that nothing has come after a step; see `Invoker`."""
        try:
            self._follow(step)
        except StorageUnavailableError:  # which is said when the next step is judged
            return None
        return self._invoker.wait(step)

    def finish(self, step: int) -> Invocation:
        """Let the rule do what is left; see `Invoker`."""
        return self._invoker.finish(step)

    def _troubles(self) -> Iterable[str]:
        base = self._trials[0]
        return base.index.troubles.notes() if isinstance(base, Trial) else base.problems

    def _follow(self, step: int) -> None:
        """Look for files up to a step."""
        for trial in self._trials:
            if not isinstance(trial, Trial):
                trial.refresh()
                continue
            if trial.index.settled_step < step:
                trial.index.refresh()
                trial.index.refresh()
            trial.index.read_again(step)

    def close(self) -> None:
        """Nothing to let go of."""


def _make(order: _Order) -> Invoker:
    """Make a rule in a process of its own."""
    source = order.source
    loaded = load_builtin(order.name) if source is None else load_source(source, order.name)
    opened = open_trial if order.window_us is None else open_profiler_trial
    trials: list[AnyTrial] = [opened(*one) for one in order.trials]
    for trial in trials:
        if not isinstance(trial, Trial):
            trial.refresh()  # rules ask when the data begin while they are made
    bound = bind(loaded, order.parameters)
    invoker = _construct(bound, trials, order.actions, order.output_dir, order.window_us)
    return _Following(invoker, trials, bound.warnings)
