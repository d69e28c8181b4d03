"""Makes rule jobs of rule configurations: one that is wrong becomes a rule job that is refused."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Self

from rule_runner.config.from_contract import rule_job
from rule_runner.config.job_file.definition import (
    JobDefinition,
    Kind,
    RuleConfiguration,
    begun,
    check_names,
    limits_passed,
)
from rule_runner.config.model import RuleJobConfig, RuleMode
from rule_runner.config.planned_actions import planned
from rule_runner.config.profiler_windows import judges_windows, over_windows
from rule_runner.config.request import EvaluationRequest
from rule_runner.config.rule_options import parse_modes
from rule_runner.config.sagemaker_contract import (
    GRACE,
    SUPPORTED,
    contract_of,
    is_platform,
    is_reserved,
)
from rule_runner.errors import ClientError, JobError, RuleFailedError, TrialError, UsageError
from rule_runner.loading.loader import LoadedRule
from rule_runner.loading.parameters import bind, construct, other_trials
from rule_runner.loading.placeholder_rule import PlaceholderRule
from rule_runner.loading.trials import absent, is_there, open_trial, reject_parent
from rule_runner.notify.actions.spec import parse_actions
from rule_runner.results.job_names import safe_name

PROCESSING: Final = "DetailedProfilerProcessing"  # no rule: what SageMaker's Profiler adds
_LACKING: Final = {
    Kind.DEBUG: "Rules over tensors are not evaluated without tensors: {}. Give --trial PATH.",
    Kind.PROFILER: "Profiler rules are not evaluated without profiler data: {}. "
    "Give --profiler-trial PATH.",
}
_NAME_SHOWN: Final = 256  # characters, what the service takes


@dataclass(frozen=True, slots=True)
class JobOverrides:
    """What the rule jobs of a definition get that does not stand in it.

    Attributes
    ----------
    actions, modes
        Texts of ``--action`` and ``--mode``; a mode given here is stronger.
    start_step, end_step
        For the rules whose parameters give none.
    other_trials
        Paths, for every rule.
    training_job_name
        Whom to stop, where an action says nothing else.
    tensors, windows
        Whether it is known where tensors, and profiler data, are.
    look
        Whether the trials that rules compare with must be there by now.
    run
        Whether the files of rules are run here, or only looked at.
    """

    actions: Sequence[str] = ()
    modes: Sequence[str] = ()
    start_step: int | None = None
    end_step: int | None = None
    other_trials: Sequence[str] = ()
    training_job_name: str | None = None
    tensors: bool = True
    windows: bool = True
    look: bool = True
    run: bool = True

    @classmethod
    def of(cls, request: EvaluationRequest) -> Self:
        """Return what a request adds to the rules of its job."""
        return cls(
            actions=request.actions,
            modes=request.modes,
            start_step=request.start_step,
            end_step=request.end_step,
            other_trials=request.other_trials,
            training_job_name=request.training_job_name,
            tensors=request.trial is not None,
            windows=request.profiler_trial is not None,
            look=not request.wait_for_trial,
            run=not request.own_processes,
        )


def requested_jobs(
    definition: JobDefinition, request: EvaluationRequest
) -> tuple[tuple[RuleJobConfig, ...], tuple[str, ...]]:
    """Return the rule jobs of a definition, and notes on it; see below."""
    overrides = JobOverrides.of(request)
    notes = notes_on(definition, overrides)
    return rule_jobs_of(definition, overrides), notes


def rule_jobs_of(definition: JobDefinition, besides: JobOverrides) -> tuple[RuleJobConfig, ...]:
    """Return a rule job for each rule that has data; what is wrong with one is in it.

    Raises
    ------
    JobError
        If two have one name.
    UsageError
        If an action or a mode is none, or is for none of them.
    """
    check_names(definition.configurations, definition.place)
    found = _evaluated(definition, besides)
    ids = [one.name for one in found]
    actions = parse_actions(besides.actions, ids)
    modes = _given_modes(besides.modes, ids)
    jobs = []
    for one in found:
        try:
            job = _prepared(one, besides)
            job = replace(
                job, operator_actions=actions[one.name], mode=modes.get(one.name, job.mode)
            )
            _check(job, besides)
        except ClientError as err:
            job = _refused(one, str(err))
        jobs.append(job)
    return tuple(jobs)


def _evaluated(definition: JobDefinition, besides: JobOverrides) -> list[RuleConfiguration]:
    """Return the configurations of rules whose data are known, in their order."""
    known = {Kind.DEBUG: besides.tensors, Kind.PROFILER: besides.windows}
    return [one for one in definition.configurations if known[one.kind] and not _no_rule(one)]


def _no_rule(configuration: RuleConfiguration) -> bool:
    return configuration.kind is Kind.PROFILER and configuration.rule == PROCESSING


def notes_on(definition: JobDefinition, besides: JobOverrides) -> tuple[str, ...]:
    """Return what is to be told of a definition besides the verdicts on its rules.

    Raises
    ------
    JobError
        If it has no other rules than such as are not evaluated.
    """
    without = [*_without_data(definition, besides)]
    if not _evaluated(definition, besides):
        msg = " ".join((f"{begun(definition.place)} leaves nothing to evaluate.", *without))
        raise JobError(msg)
    return (*limits_passed(definition), *_left_out(definition), *without)


def _without_data(definition: JobDefinition, besides: JobOverrides) -> Iterator[str]:
    """Yield a sentence for each kind of rules that is not evaluated."""
    known = {Kind.DEBUG: besides.tensors, Kind.PROFILER: besides.windows}
    for kind, told in _LACKING.items():
        names = [one.name for one in definition.of(kind) if not _no_rule(one)]
        if names and not known[kind]:
            yield told.format(", ".join(map(repr, names)))
    for one in definition.configurations:
        if _no_rule(one):
            yield f"Rule configuration {one.name!r} was left out: {PROCESSING} is no rule."


def _left_out(definition: JobDefinition) -> Iterator[str]:
    """Yield a sentence for each parameter that means something in a container only."""
    for one in definition.configurations:
        for name in one.parameters:
            if name == GRACE or (is_platform(name) and name not in SUPPORTED):
                yield (
                    f"Parameter {name!r} of rule configuration {one.name!r} is for a container "
                    "and was left out."
                )


def _given_modes(texts: Sequence[str], ids: Sequence[str]) -> dict[str, RuleMode]:
    """Return the modes that were given, by name of the rule job."""
    modes = parse_modes(texts, ids)
    given = {text.rpartition("=")[0] for text in texts}
    return {one: mode for one, mode in modes.items() if given & {one, ""}}


def _prepared(configuration: RuleConfiguration, besides: JobOverrides) -> RuleJobConfig:
    """Return the rule job of a configuration, as far as its parameters tell."""
    if configuration.problem:
        raise JobError(configuration.problem)
    contract = contract_of(configuration.parameters, configuration.parameters)
    job = rule_job(contract, configuration.name, run=besides.run)
    windows = configuration.kind is Kind.PROFILER
    if job.loaded.builtin and judges_windows(job.loaded, otherwise=False) != windows:
        kind = Kind.DEBUG if windows else Kind.PROFILER
        msg = f"Rule {job.loaded.name!r} judges other data. It belongs to {kind}."
        raise JobError(msg)
    if windows:
        return over_windows(job)
    own = set(besides.other_trials)
    return replace(
        job,
        start_step=besides.start_step if job.start_step is None else job.start_step,
        end_step=besides.end_step if job.end_step is None else job.end_step,
        other_trials=tuple(one for one in contract.other_trials if one not in own),
    )


def _check(job: RuleJobConfig, besides: JobOverrides) -> None:
    """Check all that can be checked before the rule sees its trials.

    Raises
    ------
    ClientError
        If the rule job cannot be done.
    """
    bound = bind(job.loaded, job.parameters)
    planned(job, bound.arguments, besides.training_job_name)
    own = dict.fromkeys((*job.other_trials, *other_trials(job.loaded, job.parameters)))
    if job.loaded.builtin:
        with suppress(RuleFailedError):  # of its trials, which are none here
            construct(bound, None, [None for _ in (*besides.other_trials, *own)])
    for path in own if besides.look else ():
        trial = open_trial(path)
        if not is_there(trial):
            raise TrialError(absent(trial))
        reject_parent(trial)


def _refused(configuration: RuleConfiguration, problem: str) -> RuleJobConfig:
    """Return a rule job that ends with an error before anything runs."""
    name = configuration.name
    return RuleJobConfig(
        name,
        LoadedRule(configuration.rule[:_NAME_SHOWN], PlaceholderRule, False, None, ""),
        _told(configuration.parameters),
        config_error=problem,
        folder=_folder(name),
        profiler=configuration.kind is Kind.PROFILER,
    )


def _told(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that results may show: not those that name people and places."""
    return {
        name: text
        for name, text in parameters.items()
        if not is_reserved(name) and not is_platform(name)
    }


def _folder(name: str) -> str:
    """Return a folder's name for a configuration whose own may not do."""
    try:
        return safe_name(name)
    except UsageError:
        return f"refused-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:12]}"
