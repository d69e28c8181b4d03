"""Constructs rules over trials, in this process or in a process of their own."""

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rule_core.clock import SystemClock
from rule_core.exceptions import SMDebugError
from rule_core.rules.actions.actions import DeferredActions
from rule_core.sources.options import DEFAULT, SourceOptions
from rule_core.storage.base import StorageUnavailableError
from rule_core.storage.wait_budget import WaitBudget, WaitEndedError
from rule_core.trials.trial import Trial
from rule_runner.config.defaults import Isolation, RuleMode
from rule_runner.config.model import EvaluationConfig, RuleJobConfig
from rule_runner.engine.invocation import (
    UNREADABLE,
    InProcessInvoker,
    InvocationOutcome,
    InvocationResult,
    Invoker,
    RuleInfo,
    WindowInvoker,
)
from rule_runner.errors import ParameterError, RuleSourceError, translated
from rule_runner.loading.loader import load_named, load_source
from rule_runner.loading.parameters import BoundRule, bind, construct
from rule_runner.loading.trials import open_profiler_trial, open_trial

if TYPE_CHECKING:
    from rule_core.rules.rule import Rule
    from rule_runner.engine.isolation.fork_server import ForkServer
    from rule_runner.loading.s3_fetch import Fetched
    from rule_runner.loading.trials import AnyTrial


def make_fork_server(config: EvaluationConfig) -> "ForkServer | None":
    """Return the fork server of an evaluation; None if all rules run in this process."""
    processes = config.processes
    if not processes.own_processes:
        return None
    from rule_runner.engine.isolation.fork_server import ForkServer, allowed_environment

    if processes.isolate is Isolation.PROCESS:
        environment = allowed_environment(os.environ, remote=config.is_remote)
        return ForkServer(processes.rule_timeout, environment)
    return ForkServer(processes.rule_timeout)


def make_invoker(
    config: RuleJobConfig,
    bound: BoundRule,
    trials: "Sequence[AnyTrial]",
    fork_server: "ForkServer | None",
    output_dir: Path | None = None,
    patience: WaitBudget | None = None,
    sources: SourceOptions = DEFAULT,
) -> Invoker:
    """Return the invoker of a rule: in this process, or in a worker of `fork_server`.

    The rule writes its own files to `output_dir`. A worker waits for storage no longer than
    `patience` allows now. The runner carries out the actions; in mode observe the rule gets none,
    but they are still checked.

    Raises
    ------
    ClientError
        If the rule cannot be constructed in this process, or its worker cannot be started.
    """
    actions = config.actions
    if config.mode is RuleMode.OBSERVE:
        _parsed(actions, config.loaded.name)
        actions = ""
    window_us = config.window_us if config.profiler else None
    if fork_server is None:
        return _construct(bound, trials, actions, output_dir, window_us)
    loaded = config.loaded
    if not (loaded.builtin or loaded.package) and loaded.source is None:
        raise RuleSourceError(
            f"Rule {loaded.name!r} has no file that a separate process could run. Give one."
        )
    request = _WorkerRequest(
        loaded.name,
        loaded.fetched or loaded.source,
        dict(config.parameters),
        tuple(_arguments(trial, sources) for trial in trials),
        actions,
        output_dir,
        window_us,
        patience.remaining_s() + patience.monotonic() if patience else math.inf,
        tuple(trial.is_whole for trial in trials),
    )
    from rule_runner.engine.isolation.worker import ProcessInvoker

    return ProcessInvoker(loaded.name, _make, request, fork_server)


def _arguments(trial: "AnyTrial", sources: SourceOptions) -> tuple[Any, ...]:
    """Return the arguments that open the same trial in another process."""
    if isinstance(trial, Trial):
        return trial.path, trial.name, trial.index.window, sources
    unseen = trial.source.waits_for_unseen
    return trial.path, trial.name, tuple(trial.stop_files), trial.stop_grace, unseen


def _construct(
    bound: BoundRule,
    trials: "Sequence[AnyTrial]",
    actions: str,
    output_dir: Path | None,
    window_us: int | None,
) -> InProcessInvoker:
    """Construct a rule over its own views of the trials; `window_us` is None for tensor rules."""
    # Built-in rules change no process-wide settings.
    process_state = None if bound.loaded.builtin else bound.loaded.process_state

    def construct_rule() -> "tuple[Rule, Sequence[AnyTrial]]":
        views = [trial.share() for trial in trials]
        rule_actions = _parsed(actions, bound.loaded.name)
        if process_state is None:
            rule = construct(bound, views[0], views[1:], actions)
        else:
            rule = process_state.call(construct, bound, views[0], views[1:], actions)
        rule.actions = rule_actions
        if getattr(rule, "output_dir", None) is None:
            rule.output_dir = output_dir
        return rule, views

    rule, views = construct_rule()
    name = bound.loaded.name
    if window_us is None:
        return InProcessInvoker(name, rule, views, process_state, construct_rule)
    return WindowInvoker(name, rule, views, process_state, window_us)


def _parsed(actions: str, rule: str) -> DeferredActions:
    """Return the actions of a rule, which only the runner carries out.

    Raises
    ------
    ParameterError
        If the actions do not parse.
    """
    with translated(ParameterError, SMDebugError):
        return DeferredActions(actions, rule)


@dataclass(frozen=True, slots=True)
class _WorkerRequest:
    """What another process needs to construct the same rule over the same trials.

    `trials` holds the arguments that open each trial, and `are_whole` whether it is shown whole.
    `end` is the time after which storage is no longer waited for, on the monotonic clock that all
    processes of a machine share.
    """

    name: str
    source: "Path | Fetched | None"
    parameters: dict[str, str]
    trials: tuple[tuple[Any, ...], ...]
    actions: str
    output_dir: Path | None = None
    window_us: int | None = None
    end: float = math.inf
    are_whole: tuple[bool, ...] = ()


class _RefreshingInvoker:
    """Judges steps with a rule over trials that it refreshes itself."""

    def __init__(
        self, invoker: InProcessInvoker, trials: "Sequence[AnyTrial]", notes: tuple[str, ...]
    ) -> None:
        self._invoker = invoker
        self._trials = trials
        self._notes = notes
        self._reported: set[str] = set()

    def begin(self) -> RuleInfo:
        """Describe the rule; see `Invoker`."""
        return replace(self._invoker.begin(), notes=self._notes)

    def judge(self, step: int) -> InvocationResult:
        """Look for new files and judge a step.

        After a transient storage error the step waits for more data; any other one ends the rule.
        """
        try:
            self._refresh(step)
        except (StorageUnavailableError, WaitEndedError) as err:
            if not getattr(err, "transient", True):
                return InvocationResult(InvocationOutcome.FAILED, str(err), ends=True)
            invocation = InvocationResult(InvocationOutcome.WAITS, UNREADABLE, notes=(str(err),))
        else:
            invocation = self._invoker.judge(step)
        notes = [problem for problem in self._problems() if problem not in self._reported]
        self._reported.update(notes)
        return replace(invocation, notes=(*invocation.notes, *notes))

    def wait(self, step: int) -> InvocationResult | None:
        """Judge that no data has followed a step; see `Invoker`."""
        try:
            self._refresh(step)
        except (StorageUnavailableError, WaitEndedError):  # reported with the next step
            return None
        return self._invoker.wait(step)

    def finish(self, step: int) -> InvocationResult:
        """Let the rule finish; see `Invoker`."""
        return self._invoker.finish(step)

    def _problems(self) -> Iterable[str]:
        base = self._trials[0]
        return base.index.file_problems.notes() if isinstance(base, Trial) else base.problems

    def _refresh(self, step: int) -> None:
        """Look for new files up to a step."""
        for trial in self._trials:
            if not isinstance(trial, Trial):
                trial.refresh()
                continue
            if trial.is_whole and not trial.index.loaded_all_steps:
                trial.index.refresh(whole=True, ended=True)
                trial.index.refresh(whole=True, ended=True)
                trial.index.finish()
            if trial.index.settled_step < step:
                trial.index.refresh()
                trial.index.refresh()
            trial.index.read_again(step)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


def _make(request: _WorkerRequest) -> Invoker:
    """Construct a rule in a worker process."""
    source = request.source
    loaded = load_named(request.name) if source is None else load_source(source, request.name)
    open_any = open_trial if request.window_us is None else open_profiler_trial
    clock = SystemClock()
    patience = WaitBudget(clock, lambda: request.end - clock.monotonic())
    trials: list[AnyTrial] = [
        open_any(*arguments, patience=patience) for arguments in request.trials
    ]
    for trial, is_whole in zip(trials, request.are_whole, strict=False):
        trial.is_whole = is_whole
    for trial in trials:
        if not isinstance(trial, Trial):
            trial.refresh()  # constructors of profiler rules ask when the data begins
    bound = bind(loaded, request.parameters)
    invoker = _construct(bound, trials, request.actions, request.output_dir, request.window_us)
    return _RefreshingInvoker(invoker, trials, bound.warnings)
