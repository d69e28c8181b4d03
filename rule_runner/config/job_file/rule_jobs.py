"""Turns rule configurations into rule jobs; an invalid one becomes a rule job with an error."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Final, NamedTuple, Self

from rule_core.rules.params import did_you_mean
from rule_core.sources.address import address_of
from rule_runner.config.defaults import RuleMode
from rule_runner.config.from_contract import rule_job
from rule_runner.config.job_file.definition import (
    JobDefinition,
    Kind,
    RuleConfiguration,
    capitalized,
    check_names,
    limits_passed,
)
from rule_runner.config.job_file.ignore import SECTION as IGNORE
from rule_runner.config.job_file.ignore import Mute
from rule_runner.config.model import RuleJobConfig
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
from rule_runner.errors import ClientError, JobError, RuleFailedError
from rule_runner.loading.loader import LoadedRule, every_builtin
from rule_runner.loading.parameters import bind, construct, other_trials
from rule_runner.loading.placeholder_rule import PlaceholderRule
from rule_runner.loading.trials import check_is_there, open_trial, reject_parent
from rule_runner.notify.actions.spec import parse_actions

PROCESSING: Final = "DetailedProfilerProcessing"  # not a rule; SageMaker's Profiler adds it
_LACKING: Final = {
    Kind.DEBUG: "Rules over tensors are not evaluated without tensors: {}. Give --trial PATH.",
    Kind.PROFILER: "Profiler rules are not evaluated without profiler data: {}. "
    "Give --profiler-trial PATH.",
}
_NAME_LENGTH: Final = 256  # characters, the limit of the service


class JobScope(NamedTuple):
    """Which rules of a definition become rule jobs, and what the request adds to them.

    Attributes
    ----------
    request
        Its actions, modes, steps, other trials and name of the training job apply to all rules.
        A mode takes precedence over that of the rule's parameters; steps do not.
    tensors, windows
        Whether there are tensors, and profiler data.
    look
        Whether other trials must exist already.
    run
        Whether the files of rules are run here, or only parsed.
    """

    request: EvaluationRequest = EvaluationRequest()
    tensors: bool = True
    windows: bool = True
    look: bool = True
    run: bool = True

    @classmethod
    def of(cls, request: EvaluationRequest) -> Self:
        """Return the scope of an evaluation."""
        return cls(
            request,
            tensors=request.trial is not None,
            windows=request.profiler_trial is not None,
            look=not request.wait_for_trial,
            run=not request.own_processes,
        )

    def has(self, kind: Kind) -> bool:
        """Return whether there are data for the rules of a list."""
        return self.tensors if kind is Kind.DEBUG else self.windows


def rule_jobs_of(definition: JobDefinition, scope: JobScope) -> tuple[RuleJobConfig, ...]:
    """Return a rule job for each rule that has data; an invalid one contains its error.

    Raises
    ------
    JobError
        If two have one name.
    UsageError
        If an action or a mode is malformed, or is for none of them.
    """
    check_names(definition.configurations, definition.place)
    rules = _evaluated(definition, scope)
    ids = [rule.name for rule in rules]
    actions = parse_actions(scope.request.actions, ids)
    modes = _explicit_modes(scope.request.modes, ids)
    jobs = []
    for rule in rules:
        try:
            job = _prepared(rule, scope)
            job = replace(
                job,
                operator_actions=actions[rule.name],
                mode=modes.get(rule.name, job.mode),
                mutes=_mutes(definition, scope.request, job),
            )
            _check(job, scope)
        except ClientError as err:
            job = _refused(rule, str(err))
        jobs.append(job)
    return tuple(jobs)


def _evaluated(definition: JobDefinition, scope: JobScope) -> list[RuleConfiguration]:
    """Return the configurations of rules that have data, in their order."""
    return [
        rule
        for rule in definition.configurations
        if scope.has(rule.kind) and not _is_processing(rule)
    ]


def _is_processing(rule: RuleConfiguration) -> bool:
    return rule.kind is Kind.PROFILER and rule.rule == PROCESSING


def notes_on(definition: JobDefinition, scope: JobScope) -> tuple[str, ...]:
    """Return notes on a definition, in addition to the verdicts on its rules.

    Raises
    ------
    JobError
        If none of its rules is evaluated.
    """
    without = [*_without_data(definition, scope)]
    if not _evaluated(definition, scope):
        raise JobError(
            " ".join((f"{capitalized(definition.place)} leaves nothing to evaluate.", *without))
        )
    today = _today()
    expired = (mute for mute in definition.ignore if mute.has_expired(today))
    expiry_notes = (mute.expiry_note(definition.place) for mute in expired)
    unknown_notes = _unknown_in_mutes(definition)
    left_out = _left_out(definition)
    return (*limits_passed(definition), *left_out, *without, *expiry_notes, *unknown_notes)


def _unknown_in_mutes(definition: JobDefinition) -> Iterator[str]:
    """Yield a sentence for each rule of the mute list that does not exist."""
    names = {name for rule in definition.configurations for name in (rule.name, rule.rule) if name}
    for mute in definition.ignore:
        if mute.rule and mute.rule not in names and mute.rule not in every_builtin():
            hint = did_you_mean(mute.rule, sorted({*names, *every_builtin()}))
            yield (
                f"An entry of {IGNORE!r} in {definition.place} mutes nothing: no rule is called "
                f"{mute.rule!r}.{hint}"
            )


def _today() -> date:
    return datetime.now(UTC).date()


def _mutes(
    definition: JobDefinition, request: EvaluationRequest, job: RuleJobConfig
) -> tuple[Mute, ...]:
    """Return the entries of the mute list that apply to a rule job today."""
    run = request.trial_name or address_of(request.any_trial).name if definition.ignore else ""
    names = (job.configuration_name, job.loaded.name)
    return tuple(
        mute
        for mute in definition.ignore
        if mute.covers(names, run) and not mute.has_expired(_today())
    )


def _without_data(definition: JobDefinition, scope: JobScope) -> Iterator[str]:
    """Yield a sentence for each kind of rules that is not evaluated."""
    for kind, sentence in _LACKING.items():
        names = [rule.name for rule in definition.of(kind) if not _is_processing(rule)]
        if names and not scope.has(kind):
            yield sentence.format(", ".join(map(repr, names)))
    for rule in definition.configurations:
        if _is_processing(rule):
            yield f"Rule configuration {rule.name!r} was left out: {PROCESSING} is no rule."


def _left_out(definition: JobDefinition) -> Iterator[str]:
    """Yield a sentence for each parameter that only has a meaning in a container."""
    for rule in definition.configurations:
        for name in rule.parameters:
            if name == GRACE or (is_platform(name) and name not in SUPPORTED):
                yield (
                    f"Parameter {name!r} of rule configuration {rule.name!r} is for a container "
                    "and was left out."
                )


def _explicit_modes(texts: Sequence[str], ids: Sequence[str]) -> dict[str, RuleMode]:
    """Return the modes that the request sets, by name of the rule job."""
    modes = parse_modes(texts, ids)
    targets = {text.rpartition("=")[0] for text in texts}
    return {name: mode for name, mode in modes.items() if targets & {name, ""}}


def _prepared(rule: RuleConfiguration, scope: JobScope) -> RuleJobConfig:
    """Return the rule job that the parameters of a configuration describe."""
    if rule.problem:
        raise JobError(rule.problem)
    contract = contract_of(rule.parameters, rule.parameters)
    job = rule_job(contract, rule.name, run=scope.run)
    windows = rule.kind is Kind.PROFILER
    if job.loaded.builtin and judges_windows(job.loaded, otherwise=False) != windows:
        kind = Kind.DEBUG if windows else Kind.PROFILER
        raise JobError(f"Rule {job.loaded.name!r} judges other data. It belongs to {kind}.")
    if windows:
        return over_windows(job)
    request = scope.request
    return replace(
        job,
        start_step=request.start_step if job.start_step is None else job.start_step,
        end_step=request.end_step if job.end_step is None else job.end_step,
        other_trials=tuple(
            path for path in contract.other_trials if path not in request.other_trials
        ),
    )


def _check(job: RuleJobConfig, scope: JobScope) -> None:
    """Check everything that does not depend on the content of trials.

    Raises
    ------
    ClientError
        If the rule job cannot run.
    """
    bound = bind(job.loaded, job.parameters)
    planned(job, bound.arguments, scope.request.training_job_name)
    own = dict.fromkeys((*job.other_trials, *other_trials(job.loaded, job.parameters)))
    if job.loaded.builtin:
        with suppress(RuleFailedError):  # it needs its trials, which are not open yet
            construct(bound, None, [None for _ in (*scope.request.other_trials, *own)])
    for path in own if scope.look else ():
        trial = open_trial(path, sources=scope.request.source_options)
        check_is_there(trial)
        reject_parent(trial)


def _refused(configuration: RuleConfiguration, problem: str) -> RuleJobConfig:
    """Return a rule job that ends with an error before anything runs."""
    name = configuration.name
    return RuleJobConfig(
        name,
        LoadedRule(configuration.rule[:_NAME_LENGTH], PlaceholderRule, False, None, ""),
        # Results do not show parameters that name people and places.
        {
            parameter: text
            for parameter, text in configuration.parameters.items()
            if not is_reserved(parameter) and not is_platform(parameter)
        },
        config_error=problem,
        profiler=configuration.kind is Kind.PROFILER,
    )
