"""resolve: turns an evaluation request into what the engine runs."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from rule_core.storage.uri import is_s3
from rule_runner.config.from_contract import container_job
from rule_runner.config.model import (
    ACTIONS,
    DEFAULT_WINDOW,
    EVERY_RULE,
    STOP_FILE,
    WINDOW,
    EvaluationConfig,
    RuleJobConfig,
    default_output,
)
from rule_runner.config.profiler_windows import names_over, placed
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.rule_options import parse_modes, parse_parameters
from rule_runner.config.sagemaker_contract import parse_share
from rule_runner.errors import ParameterError, RuleFailedError, UsageError
from rule_runner.loading.loader import LoadedRule, load_builtin, load_from
from rule_runner.loading.parameters import bind, construct
from rule_runner.notify.actions.spec import parse_actions
from rule_runner.results.job_names import safe_name


def resolve(request: EvaluationRequest) -> EvaluationConfig:
    """Return the evaluation that is requested, with its rules loaded.

    Raises
    ------
    ClientError
        If a rule cannot be loaded.
    UsageError
        If fields of the request contradict each other.
    """
    trial, profiler_trial = request.any_trial, request.profiler_trial
    request.check_rules()
    jobs, notes = _requested_jobs(request)
    if request.container is not None:
        trial = profiler_trial if profiler_trial and jobs[0].profiler else trial
        profiler_trial = None
    stop_files = _stop_files(request, trial)
    if request.container is not None:  # a second one is named after the rule
        stop_files += tuple(path.with_name(jobs[0].loaded.name) for path in stop_files)
    windows_only = all(job.profiler for job in jobs)
    return EvaluationConfig(
        trial=trial,
        profiler_trial=profiler_trial,
        rules=jobs,
        output=Path(request.output or default_output(request.trial_name or trial)),
        other_trials=request.other_trials,
        trial_name=request.trial_name,
        training_job_name=request.training_job_name,
        keep_going=request.keep_going,
        wait=request.wait,
        wait_for_trial=request.wait_for_trial,
        timeout=request.timeout,
        idle_timeout=request.idle_timeout or None,
        rule_timeout=request.rule_timeout,
        isolate=request.isolate,
        end_grace=request.end_grace,
        event_file_wait=request.event_file_wait,
        poll_max=request.poll_max,
        min_coverage=_min_coverage(request),
        report=request.report,
        action_timeout=request.action_timeout,
        dry_run=request.dry_run,
        overwrite=request.overwrite,
        event_source=request.event_source,
        window=_window() if request.window is None else request.window,
        stop_files=() if windows_only else tuple(dict.fromkeys(stop_files)),
        profiler_stop_files=tuple(dict.fromkeys(stop_files)),
        stop_grace=request.stop_grace,
        own_folders=request.job is not None,
        notes=notes,
    )


def _requested_jobs(
    request: EvaluationRequest,
) -> tuple[tuple[RuleJobConfig, ...], tuple[str, ...]]:
    """Return the requested rule jobs, and notes for the result as a whole."""
    if request.container is not None:
        return (container_job(request.container),), ()
    if request.job is not None:
        from rule_runner.config.job_file.rule_jobs import requested_jobs

        jobs, notes = requested_jobs(request.job, request)
        return placed(jobs, request.trial, request.profiler_trial), notes
    jobs = rule_jobs(
        request.rules,
        request.parameters,
        request.start_step,
        request.end_step,
        modes=request.modes,
        other_trials=request.other_trials,
        actions=request.actions,
        tensors=request.trial is not None,
        windows=request.profiler_trial is not None,
        run=not request.own_processes,
    )
    return placed(jobs, request.trial, request.profiler_trial), ()


def _min_coverage(request: EvaluationRequest) -> float:
    """Return the minimum coverage of the request, or else of its job, or else 0."""
    share = request.min_coverage
    if share is None and request.job is not None:
        share = request.job.min_coverage
    return 0.0 if share is None else parse_share(share, "Argument 'min_coverage'")


def _window() -> int:
    """Return the wait window that the environment sets, in steps."""
    text = os.environ.get(WINDOW) or str(DEFAULT_WINDOW)
    if not (text.isascii() and text.isdigit()):
        msg = f"Environment variable {WINDOW} must be a whole number >= 0, got {text!r}."
        raise UsageError(msg)
    return int(text)


def _stop_files(request: EvaluationRequest, trial: str) -> tuple[Path, ...]:
    """Return the requested stop file, or else that of the environment."""
    stop_file = request.stop_file or os.environ.get(STOP_FILE)
    if stop_file and is_s3(trial) and not Path(stop_file).is_absolute():
        msg = (
            f"Environment variable {STOP_FILE} must be an absolute path on this machine, since "
            f"trial {trial!r} is in S3, got {stop_file!r}."
        )
        raise UsageError(msg)
    return (Path(trial) / stop_file,) if stop_file else ()


def rule_jobs(
    requests: Sequence[RuleRequest],
    parameters: Sequence[str],
    start_step: int | None = None,
    end_step: int | None = None,
    *,
    modes: Sequence[str] = (),
    other_trials: Sequence[str] = (),
    actions: Sequence[str] = (),
    tensors: bool = True,
    windows: bool = False,
    run: bool = True,
) -> tuple[RuleJobConfig, ...]:
    """Load the rules that are asked for, and give each its name, its parameters and its mode.

    ``all`` are the built-in rules over `tensors`, over `windows` of profiler data, or both. Of
    these, a rule that cannot do without a parameter and was given none is there too, and
    says what it lacks. Without `run` the files of rules are only looked at: for rules that are
    made in processes of their own.

    Raises
    ------
    ClientError
        If a rule cannot be loaded.
    UsageError
        If two rule jobs have one name, parameters, modes or actions do not say whose they are, or
        an action is none.
    """
    over = {"tensors": tensors, "windows": windows}
    loaded = [(*one, request) for request in requests for one in _load(request, over, run=run)]
    ids = [safe_name(one) for one, *_ in loaded]
    for one in ids:
        if ids.count(one) > 1:
            msg = f"Two rule jobs are called {one!r}. Give IDs: --rule first={one}."
            raise UsageError(msg)
    given = parse_parameters(parameters, ids)
    texts = {one: given[one].pop(ACTIONS, "") for one in ids}
    operator = parse_actions(actions, ids)
    mode = parse_modes(modes, ids)
    lacks = {
        one: lacking(rule, other_trials)
        for one, rule, request in loaded
        if request.name == EVERY_RULE and not given[one]
    }
    return tuple(
        RuleJobConfig(
            configuration_name=one,
            loaded=rule,
            parameters=given[one],
            actions=texts[one],
            start_step=start_step,
            end_step=end_step,
            mode=mode[one],
            missing_parameter=lacks.get(one, ""),
            operator_actions=operator[one],
        )
        for one, rule, _ in loaded
    )


def _load(
    request: RuleRequest, over: Mapping[str, bool], *, run: bool
) -> list[tuple[str, LoadedRule]]:
    """Return ID and class of a requested rule; of ``all`` every built-in rule over `over`."""
    if request.source is not None:
        loaded = load_from(request.source, request.name, run=run)
        return [(request.id or loaded.name, loaded)]
    if request.name == EVERY_RULE:
        return [(name, load_builtin(name)) for name in names_over(**over)]
    loaded = load_builtin(request.name or "")
    return [(request.id or loaded.name, loaded)]


def lacking(loaded: LoadedRule, other_trials: Sequence[str]) -> str:
    """Return a sentence on what a rule needs and was not given; "" if it can be constructed."""
    try:
        construct(bind(loaded, {}), None, [None for _ in other_trials])
    except ParameterError as err:
        return str(err)
    except RuleFailedError:  # of its trials, and there are none yet
        return ""
    return ""
