"""resolve: turns an evaluation request into what the engine runs."""

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rule_core.severity import Severity
from rule_core.sources.address import TrialAddress, address_of
from rule_runner.config.defaults import (
    ACTIONS,
    DEFAULT_WINDOW,
    EVERY_RULE,
    FITTING_RULES,
    STOP_FILE,
    WINDOW,
)
from rule_runner.config.from_contract import container_job
from rule_runner.config.model import (
    EvaluationConfig,
    MessageOptions,
    ProcessOptions,
    ResultOptions,
    RuleJobConfig,
    WaitOptions,
    default_output,
)
from rule_runner.config.profiler_windows import names_over, placed
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.rule_options import parse_modes, parse_parameters
from rule_runner.config.sagemaker_contract import parse_share
from rule_runner.errors import TrialError, UsageError
from rule_runner.loading.loader import LoadedRule, load_builtin, load_from, load_named
from rule_runner.loading.parameters import lacking
from rule_runner.loading.trials import trial_address
from rule_runner.results.file_names import safe_name

if TYPE_CHECKING:
    from rule_core.rules.actions.base import Action
    from rule_runner.config.fitting_rules import RuleChoice


def resolve(request: EvaluationRequest) -> EvaluationConfig:
    """Return the evaluation that is requested, with its rules loaded.

    Raises
    ------
    ClientError
        If a rule cannot be loaded, or none fits the trial.
    UsageError
        If fields of the request contradict each other.
    """
    trial = request.any_trial
    request = request.with_baseline()
    request.check_rules()
    request.check_measuring()
    choice = _fitting(request)
    jobs, notes = _requested_jobs(request, choice)
    profiler_trial = address_of(request.profiler_trial) if request.profiler_trial else None
    if profiler_trial and (request.trial is None or (request.container and jobs[0].profiler)):
        address = profiler_trial
    else:
        address = trial_address(trial)
    stop_files = _stop_files(request, address)
    if request.container is not None:  # a second one is named after the rule
        stop_files += tuple(path.with_name(jobs[0].loaded.name) for path in stop_files)
    windows_only = all(job.profiler for job in jobs)
    return EvaluationConfig(
        jobs,
        address,
        Path(request.output or default_output(request.trial_name or trial)),
        **options_of(request),
        profiler_trial=None if request.container else profiler_trial,
        window=_window() if request.window is None else request.window,
        min_coverage=_min_coverage(request),
        stop_on=_stop_on(request),
        stop_files=() if windows_only else tuple(dict.fromkeys(stop_files)),
        profiler_stop_files=tuple(dict.fromkeys(stop_files)),
        notes=(*notes, *filter(None, [choice.note() if choice else ""])),
        left_out=choice.left_out if choice else {},
    )


def options_of(request: EvaluationRequest) -> dict[str, Any]:
    """Return the fields of a configuration that a request contains as they are."""

    def group(kind: type[Any]) -> Any:
        return kind(**{option.name: getattr(request, option.name) for option in fields(kind)})

    return {
        "waits": group(WaitOptions),
        "processes": group(ProcessOptions),
        "results": group(ResultOptions),
        "messages": group(MessageOptions),
        "trial_name": request.trial_name,
        "other_trials": request.other_trials,
        "sources": request.source_options,
    }


def _fitting(request: EvaluationRequest) -> "RuleChoice | None":
    """Return the rules that ``auto`` means; None if it is not requested."""
    if not request.fits_rules:
        return None
    from rule_runner.config.fitting_rules import choose_rules

    choice = choose_rules(
        request.trial, request.profiler_trial, request.source_options, follow=request.wait
    )
    if choice.rules:
        return choice
    raise TrialError(f"No built-in rule fits trial {request.any_trial!r}. {choice.note()}")


def _requested_jobs(
    request: EvaluationRequest, choice: "RuleChoice | None"
) -> tuple[tuple[RuleJobConfig, ...], tuple[str, ...]]:
    """Return the requested rule jobs, and notes for the result as a whole."""
    if request.container is not None:
        return (container_job(request.container),), ()
    notes: tuple[str, ...] = ()
    if request.job is None:
        jobs = rule_jobs(request, choice.rules if choice else ())
    else:
        from rule_runner.config.job_file.rule_jobs import JobScope, notes_on, rule_jobs_of

        scope = JobScope.of(request)
        notes = notes_on(request.job, scope)
        jobs = rule_jobs_of(request.job, scope)
    return placed(jobs, request.trial, request.profiler_trial), notes


def _min_coverage(request: EvaluationRequest) -> float:
    """Return the minimum coverage of the request, or else of its job, or else 0."""
    share = request.min_coverage
    if share is None and request.job is not None:
        share = request.job.min_coverage
    return 0.0 if share is None else parse_share(share, "Argument 'min_coverage'")


def _stop_on(request: EvaluationRequest) -> Severity:
    """Return the severity from which actions stop a training."""
    job = None if request.job is None else request.job.stop_on
    return Severity(request.stop_on or job or Severity.ERROR)


def _window() -> int:
    """Return the wait window that the environment sets, in steps."""
    text = os.environ.get(WINDOW) or str(DEFAULT_WINDOW)
    if not (text.isascii() and text.isdigit()):
        raise UsageError(
            f"Environment variable {WINDOW} must be a whole number >= 0, got {text!r}."
        )
    return int(text)


def _stop_files(request: EvaluationRequest, trial: TrialAddress) -> tuple[Path, ...]:
    """Return the requested stop file, or else that of the environment."""
    stop_file = request.stop_file or os.environ.get(STOP_FILE)
    if not stop_file:
        return ()
    folder = trial.folder
    if folder is None and not Path(stop_file).is_absolute():
        place = "in S3" if trial.is_in_s3 else "on a server"
        raise UsageError(
            f"Environment variable {STOP_FILE} must be an absolute path on this machine, since "
            f"trial {str(trial)!r} is {place}, got {stop_file!r}."
        )
    return ((folder or Path()) / stop_file,)


def rule_jobs(request: EvaluationRequest, fitting: Sequence[str] = ()) -> tuple[RuleJobConfig, ...]:
    """Load the requested rules, and give each its name, its parameters and its mode.

    ``all`` means the built-in rules over the data that the request has. Those that lack a
    required parameter are included, and say which one. ``auto`` means the `fitting` rules that are
    not requested by name.

    Raises
    ------
    ClientError
        If a rule cannot be loaded.
    UsageError
        If two rule jobs have one name, an action is malformed, or parameters, modes or actions
        do not say which rule job they belong to.
    """
    loaded = [
        (rule_id, rule, requested.name == EVERY_RULE)
        for requested in request.rules
        for rule_id, rule in _load(requested, request, fitting)
    ]
    ids = [safe_name(rule_id) for rule_id, *_ in loaded]
    parameters = parse_parameters(request.parameters, ids)
    action_json = {rule_id: parameters[rule_id].pop(ACTIONS, "") for rule_id in ids}
    actions = _operator_actions(request.actions, ids)
    modes = parse_modes(request.modes, ids)
    return tuple(
        RuleJobConfig(
            configuration_name=rule_id,
            loaded=rule,
            parameters=parameters[rule_id],
            actions=action_json[rule_id],
            start_step=request.start_step,
            end_step=request.end_step,
            mode=modes[rule_id],
            missing_parameter=lacking(rule, request.other_trials)
            if is_one_of_all and not parameters[rule_id]
            else "",
            operator_actions=actions[rule_id],
        )
        for rule_id, rule, is_one_of_all in loaded
    )


def _load(
    rule: RuleRequest, request: EvaluationRequest, fitting: Sequence[str]
) -> list[tuple[str, LoadedRule]]:
    """Return ID and class of a requested rule; of several for ``all`` and ``auto``.

    The file of a rule is only parsed if the rule runs in its own process.
    """
    if rule.source is not None:
        loaded = load_from(rule.source, rule.name, run=not request.own_processes)
        return [(rule.id or loaded.name, loaded)]
    if rule.name == EVERY_RULE:
        names = names_over(
            tensors=request.trial is not None, windows=request.profiler_trial is not None
        )
        return [(name, load_builtin(name)) for name in names]
    if rule.name == FITTING_RULES:
        named = {other.name for other in request.rules if other.id is None}
        return [(name, load_builtin(name)) for name in fitting if name not in named]
    loaded = load_named(rule.name or "", run=not request.own_processes)
    return [(rule.id or loaded.name, loaded)]


def _operator_actions(texts: Sequence[str], ids: Sequence[str]) -> "dict[str, tuple[Action, ...]]":
    """Return the actions of ``--action`` by ID of the rule job."""
    if not texts:
        return dict.fromkeys(ids, ())
    from rule_runner.notify.actions.spec import parse_actions

    return parse_actions(texts, ids)
