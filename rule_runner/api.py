"""evaluate and check: rules over trials, from Python, with typed results."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace as with_fields

from rule_core.trials.trial import Trial
from rule_runner.commands.check.command import judge_trials
from rule_runner.commands.check.tables import CheckResult
from rule_runner.commands.evaluate import event_sinks, tagged, with_report
from rule_runner.config import defaults
from rule_runner.config.defaults import FITTING_RULES, Isolation, Issue
from rule_runner.config.job_file.definition import JobDefinition, choose
from rule_runner.config.job_file.reader import definition_from
from rule_runner.config.job_file.sdk_objects import DebuggerRule, ProfilerRule
from rule_runner.config.model import check_is_local
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.resolve import resolve
from rule_runner.engine.evaluate import evaluate as run
from rule_runner.engine.stop_requests import Signals
from rule_runner.errors import UsageError
from rule_runner.loading.loader import every_builtin
from rule_runner.logs import through_logging
from rule_runner.notify.delivery import DEADLINE_S
from rule_runner.notify.event import check_source
from rule_runner.report.html.notebook import ShownResult

Place = str | os.PathLike[str]
Rules = Iterable[DebuggerRule | ProfilerRule | Mapping[str, Any] | str] | Mapping[str, Any] | Place


def evaluate(
    trial: Place | Trial | None,
    rules: Rules = (FITTING_RULES,),
    *,
    profiler_trial: Place | None = None,
    output: Place | None = None,
    overwrite: bool = False,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    other_trials: Sequence[Place] = (),
    modes: Sequence[str] = (),
    actions: Sequence[str] = (),
    action_timeout: float = defaults.DEFAULT_ACTION_TIMEOUT_S,
    dry_run: bool = False,
    stop_on: Issue | None = None,
    start_step: int | None = None,
    end_step: int | None = None,
    min_coverage: float | None = None,
    report: bool = True,
    keep_going: bool = False,
    wait: bool | None = None,
    wait_for_trial: float = 0.0,
    timeout: float | None = None,
    idle_timeout: float | None = defaults.DEFAULT_IDLE_TIMEOUT_S,
    rule_timeout: float | None = None,
    isolate: str = "none",
    end_grace: float = defaults.DEFAULT_END_GRACE_S,
    event_file_wait: float = defaults.DEFAULT_EVENT_FILE_WAIT_S,
    poll_max: float = defaults.DEFAULT_POLL_MAX_S,
    training_job_name: str | None = None,
    event_source: str = "rule-runner",
    sinks: Sequence[str] = (),
    sink_deadline: float = DEADLINE_S,
    tag_run: bool = False,
    measure_on: str | None = None,
    measurements: Place | None = None,
) -> ShownResult:
    """Evaluate rules over a trial, and return the result of each rule.

    Signal handlers stay as they are: Ctrl-C raises KeyboardInterrupt. Nothing is printed, and log
    messages go to the loggers of the standard library.

    Parameters that are not described here are the options of ``rule-runner evaluate`` with the
    same name. Times are in seconds; None means no limit.

    Parameters
    ----------
    trial
        The root of the trial: a folder, ``s3://bucket/prefix``, or a trial from `create_trial`.
        None means the place where the training job of the request saves tensors.
    rules
        A list of names of rules, such as ``["VanishingGradient"]``; by default the built-in rules
        that fit the trial, which are called ``"auto"``. Or else a list of
        `rule_runner.debugger.Rule` or of the same class of SageMaker's SDK; a list of
        rule configurations in the form of a request; a whole CreateTrainingJob request as a
        mapping; or the path of a job file.
    profiler_trial
        The data for profiler rules: a folder with ``system`` and ``framework``, or an address.
        None means the place where the training job of the request saves it.
    output
        Folder for the results. None keeps no results.
    only, exclude
        Names of the rule configurations to evaluate, and of those to leave out. They cannot be
        combined with names of rules.
    wait
        Whether to follow a trial that is still growing until it ends. By default rules that are
        given by their names judge the steps that are there, and others follow the trial.
    measure_on
        An executor, such as ``"local:4"``. Its processes import the main module of the program,
        which therefore must call `evaluate` below ``if __name__ == "__main__":``.
    modes, actions, sinks
        Texts in the form of the command line, such as ``"Overfit=observe"``.

    Returns
    -------
    ShownResult
        Includes rules with an invalid configuration, with status ``Error`` and the reason.

    Raises
    ------
    ClientError
        If the trial does not exist, or there are no rules.
    UsageError
        If arguments contradict each other.
    OutputError
        If the output folder cannot be used.
    """
    names = _names(rules)
    definition = JobDefinition("a list of names", ())
    if not names:
        definition = choose(definition_from(rules), only, exclude)
    elif only or exclude:
        raise UsageError("Arguments 'only' and 'exclude' need rule configurations, got names.")
    wait = not names if wait is None else wait
    check_source(event_source)
    with ExitStack() as stack:
        stack.enter_context(through_logging())
        trial_path, trial_name = _place(trial, definition)
        request = EvaluationRequest(
            trial=trial_path,
            profiler_trial=_path(profiler_trial) or definition.profiler_trial,
            trial_name=trial_name,
            rules=tuple(RuleRequest(name=name) for name in names),
            job=None if names else definition,
            output=str(_folder(output, stack)),
            overwrite=overwrite,
            other_trials=tuple(os.fspath(path) for path in other_trials),
            modes=tuple(modes),
            actions=tuple(actions),
            action_timeout=action_timeout,
            dry_run=dry_run,
            stop_on=stop_on,
            start_step=start_step,
            end_step=end_step,
            min_coverage=min_coverage,
            report=report and (output is not None or bool(names)),
            keep_going=keep_going,
            wait=wait,
            as_it_is=bool(names) and not wait,
            wait_for_trial=wait_for_trial,
            timeout=timeout,
            idle_timeout=idle_timeout,
            rule_timeout=rule_timeout,
            isolate=Isolation(isolate),
            end_grace=end_grace,
            event_file_wait=event_file_wait,
            poll_max=poll_max,
            training_job_name=training_job_name or definition.training_job_name,
            event_source=event_source,
            sink_deadline=sink_deadline,
            tag_run=tag_run,
            measure_on=measure_on,
            measurements=_path(measurements),
        )
        if request.trial is None and request.profiler_trial is None:
            raise UsageError(
                f"No trial was given, and {definition.place} does not say where one is saved."
            )
        config = resolve(request)
        outcome = run(config, sinks=event_sinks(sinks))
        if output is not None:
            outcome = with_report(config, outcome)
        tagged(config, outcome.result)
        problems = outcome.sentences(str(config.output), str(config.output))
        result = with_fields(outcome.result, notes=[*outcome.result.notes, *problems])
        return ShownResult.of(result, config.output)


def check(
    paths: Place | Iterable[Place],
    *,
    output: Place | None = None,
    overwrite: bool = False,
    again: bool = False,
    wait: bool = False,
) -> CheckResult:
    """Judge each trial at or below paths by the built-in rules that fit it.

    This is what ``rule-runner check`` does: all rules judge a trial to its end, so findings may
    recover. Nothing is printed; in notebooks the result shows itself.

    Parameters
    ----------
    paths
        A folder, a file or ``s3://bucket/prefix``, or several of them.
    output
        Folder for the results. None keeps no files. With a folder, trials that have not changed
        since the last check are not judged again.
    overwrite
        Whether to replace other results in that folder.
    again
        Whether to judge trials that have not changed, too.
    wait
        Whether to follow trials that are still growing until they end.

    Returns
    -------
    CheckResult
        ``trials`` holds a `CheckedTrial` for each trial, the ended ones first.

    Raises
    ------
    ClientError
        If no trial was found.
    OutputError
        If the output folder cannot be used.
    """
    roots = [paths] if isinstance(paths, str | os.PathLike) else [*paths]
    with ExitStack() as stack:
        stack.enter_context(through_logging())
        request = EvaluationRequest(
            output=str(_folder(output, stack)),
            overwrite=overwrite,
            wait=wait,
            follow_issues=True,
            quiet=True,
        )
        result = judge_trials([os.fspath(root) for root in roots], request, Signals(), again=again)
        trials = [
            with_fields(
                trial,
                evaluation=trial.evaluation and ShownResult.of(trial.evaluation, trial.results),
                results=trial.results if output is not None else "",
            )
            for trial in result.trials
        ]
    if output is not None:
        return with_fields(result, trials=trials)
    return with_fields(result, trials=trials, results="", report="")


def _names(rules: Rules) -> Sequence[str]:
    """Return the names of rules; none if they are given in another form."""
    if isinstance(rules, str) and rules in every_builtin() and not Path(rules).exists():
        raise UsageError(
            f"Job file {rules!r} does not exist. To name a rule, give a list: [{rules!r}]."
        )
    if isinstance(rules, list | tuple) and all(isinstance(rule, str) for rule in rules):
        return rules
    return ()


def _path(path: Place | None) -> str | None:
    return None if path is None else os.fspath(path)


def _place(trial: Place | Trial | None, definition: JobDefinition) -> tuple[str | None, str | None]:
    """Return the path and name of a trial, by default those of the definition."""
    if trial is None:
        return definition.trial, definition.training_job_name
    if not isinstance(trial, Trial):
        return os.fspath(trial), None
    if trial.range_steps is not None:
        raise UsageError(
            f"Trial {trial.path!r} must be whole, got one with range_steps={trial.range_steps!r}. "
            "Give start_step and end_step instead."
        )
    return trial.path, trial.name


def _folder(output: Place | None, stack: ExitStack) -> Path:
    """Return the output folder, by default a temporary one that is removed with the stack."""
    if output is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rule-runner-")))
    check_is_local(os.fspath(output), "output")
    return Path(output)
