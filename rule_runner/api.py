"""evaluate: rules over a trial, from Python, with typed results."""

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace as with_fields

from rule_runner import config as configuration
from rule_runner.commands import event_sinks, try_report
from rule_runner.config import EvaluationConfig
from rule_runner.definitions.definition import JobDefinition, choose
from rule_runner.definitions.reading import definition_from
from rule_runner.definitions.rule_objects import DebuggerRule, ProfilerRule
from rule_runner.delivery import DEADLINE_S
from rule_runner.errors import UsageError
from rule_runner.evaluated import Evaluated
from rule_runner.events import check_source
from rule_runner.logs import through_logging
from rule_runner.options import configuration as configured
from rule_runner.results import EvaluationResult
from rule_runner.runner import Runner
from smdebug.trials import Trial

Place = str | os.PathLike[str]
Rules = Iterable[DebuggerRule | ProfilerRule | Mapping[str, Any]] | Mapping[str, Any] | Place


def evaluate(
    trial: Place | Trial | None,
    rules: Rules,
    *,
    profiler_trial: Place | None = None,
    output: Place | None = None,
    overwrite: bool = False,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    other_trials: Sequence[Place] = (),
    modes: Sequence[str] = (),
    actions: Sequence[str] = (),
    action_timeout: float = configuration.DEFAULT_ACTION_TIMEOUT_S,
    dry_run: bool = False,
    start_step: int | None = None,
    end_step: int | None = None,
    keep_going: bool = False,
    wait: bool = True,
    wait_for_trial: float = 0.0,
    timeout: float | None = None,
    idle_timeout: float | None = configuration.DEFAULT_IDLE_TIMEOUT_S,
    rule_timeout: float | None = None,
    isolate: str = "none",
    end_grace: float = configuration.DEFAULT_END_GRACE_S,
    event_file_wait: float = configuration.DEFAULT_EVENT_FILE_WAIT_S,
    poll_max: float = configuration.DEFAULT_POLL_MAX_S,
    training_job_name: str | None = None,
    event_source: str = "rule-runner",
    sinks: Sequence[str] = (),
    sink_deadline: float = DEADLINE_S,
) -> EvaluationResult:
    """Evaluate rules over a trial, follow it until it ends, and return what came of each rule.

    Signals are left alone: Ctrl-C raises KeyboardInterrupt. Nothing is printed, and log messages
    go to the standard library's loggers.

    Parameters
    ----------
    trial
        Its root: a folder or ``s3://bucket/prefix``; or a trial from `create_trial`. None: where
        the request says that the training job saves to.
    profiler_trial
        Profiler data, for profiler rules: a folder that holds ``system`` and ``framework``, or an
        address. None: where the request says that the training job saves them.
    rules
        A list of `rule_runner.debugger.Rule` (those of SageMaker's SDK do too) or of rule
        configurations in the form of a request; a whole CreateTrainingJob request as a mapping; or
        the path of a job file.
    output
        Folder for the results, with a folder for each rule. None: nothing is kept.
    only, exclude
        Names of rule configurations: of these only, and without those.
    modes, actions, sinks
        Texts as the command line takes them, such as ``"Overfit=observe"``.

    The others are the options of ``rule-runner evaluate``; times are seconds, and None is never.

    Returns
    -------
    EvaluationResult
        A rule whose configuration is wrong is there with status ``Error`` and the reason.

    Raises
    ------
    ClientError
        If the trial is not there, or there are no rules.
    UsageError
        If arguments do not go together.
    OutputError
        If the output folder cannot be used.
    """
    options = locals() | {
        "mode": modes,
        "action": actions,
        "no_wait": not wait,
        "other_trial": tuple(os.fspath(one) for one in other_trials),
        "definition": choose(definition_from(rules), only, exclude),
    }
    check_source(event_source)
    with ExitStack() as stack:
        stack.enter_context(through_logging())
        options["output"] = _folder(output, stack)
        config = _configuration(options)
        runner = Runner(
            config, sinks=event_sinks(sinks), sink_deadline=sink_deadline, handle_signals=False
        )
        return _result(runner.run(), config, keep=output is not None)


def _configuration(options: dict[str, Any]) -> EvaluationConfig:
    """Return the evaluation of some arguments; the request may say the trial and the job's name."""
    definition: JobDefinition = options["definition"]
    job = definition.training_job_name
    place, name = _place(options["trial"])
    if place is None:
        place, name = definition.trial, job
    profiler = definition.profiler_trial
    if options["profiler_trial"] is not None:
        profiler = os.fspath(options["profiler_trial"])
    if place is None and profiler is None:
        msg = f"No trial was given, and {definition.place} does not say where one is saved."
        raise UsageError(msg)
    found = {"trial": place, "profiler_trial": profiler, "trial_name": name}
    return configured(options | found | {"training_job_name": options["training_job_name"] or job})


def _place(trial: Place | Trial | None) -> tuple[str | None, str | None]:
    """Return path and name of a trial, so far as they are given."""
    if not isinstance(trial, Trial):
        return None if trial is None else os.fspath(trial), None
    if trial.range_steps is not None:
        msg = (
            f"Trial {trial.path!r} must be whole, got one with range_steps={trial.range_steps!r}. "
            "Give start_step and end_step instead."
        )
        raise UsageError(msg)
    return trial.path, trial.name


def _folder(output: Place | None, stack: ExitStack) -> Path:
    """Return the output folder; one that nobody asked for goes when the stack is closed."""
    if output is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rule-runner-")))
    configuration.check_is_local(os.fspath(output), "output")
    return Path(output)


def _result(evaluated: Evaluated, config: EvaluationConfig, *, keep: bool) -> EvaluationResult:
    """Return the result, with what went wrong besides; write the report if results are kept."""
    told = [evaluated.unwritten] if evaluated.unwritten else []
    told += [one.sentence(str(config.output)) for one in evaluated.undelivered]
    result = evaluated.result
    if keep and not evaluated.unwritten:
        try_report(
            [config.folder_of(one) for one in config.rules], config.output, result.trial.name
        )
    return with_fields(result, notes=[*result.notes, *told])
