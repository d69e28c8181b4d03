"""Opens the rule jobs of an evaluation, new or as an earlier process left them."""

import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime
from typing import Final

from rule_core.rules.actions.base import Action
from rule_core.rules.params import FileParam
from rule_runner.config.defaults import RuleMode
from rule_runner.config.model import EvaluationConfig, ResultOptions, RuleJobConfig
from rule_runner.config.planned_actions import planned
from rule_runner.engine.outcome import is_conclusive
from rule_runner.engine.rule_job import RuleJob
from rule_runner.errors import OutputError
from rule_runner.loading.loader import rule_source
from rule_runner.loading.parameters import BoundRule, bind
from rule_runner.logs import get_logger
from rule_runner.notify.actions.journal import Journal
from rule_runner.notify.actions.runner import ActionPolicy, JobActions
from rule_runner.results.output_folder import OutputFolder
from rule_runner.results.schema import STEP, WINDOW, RuleJobFacts
from rule_runner.results.state import RuleJobState
from rule_runner.results.status import CLIENT_ERROR
from rule_runner.results.versions import version, versions
from rule_runner.steps.sources import StepSources

_log: Final = get_logger(__name__)


def open_jobs(
    config: EvaluationConfig, step_sources: StepSources, policy: ActionPolicy, stack: ExitStack
) -> tuple[OutputFolder, list[RuleJob]]:
    """Open the output folder of an evaluation and its rule jobs.

    Parameters
    ----------
    stack
        Closes everything that is opened.

    Raises
    ------
    OutputError
        If the folder cannot be used.
    ParameterError
        If a parameter or an action is wrong.
    """
    rules = [(rule, _bound(rule)) for rule in config.rules]
    plans = [_planned(config, rule, bound) for rule, bound in rules]
    fingerprints = {
        rule.configuration_name: fingerprint(config, rule, bound) for rule, bound in rules
    }
    folder = OutputFolder(config.output, fingerprints, overwrite=config.results.overwrite)
    stack.callback(folder.close)
    journal = Journal(folder.path) if any(plans) else None
    if journal is not None:
        stack.callback(journal.close)
    jobs = []
    for (rule, bound), actions in zip(rules, plans, strict=True):
        name = rule.configuration_name
        state = _state(rule, bound, policy.now(), config.results)
        facts = RuleJobFacts(
            bound.parameters,
            config.trial_of(rule).canonical,
            rule.mode,
            fingerprints[name],
            versions(),
            rule_source(rule.loaded),
            WINDOW if rule.profiler else STEP,
            folder.run_id,
        )
        source = step_sources.of(rule)
        job = RuleJob(rule, bound, source, state, facts, folder, policy.clock, policy.now)
        if actions and journal is not None:
            job.actions = JobActions(name, actions, journal, policy)
            stack.callback(job.actions.join)
        jobs.append(job)
    return folder, jobs


def _bound(rule: RuleJobConfig) -> BoundRule:
    if rule.is_rejected:
        return BoundRule(rule.loaded, {}, dict(rule.parameters))
    return bind(rule.loaded, rule.parameters)


def _planned(config: EvaluationConfig, rule: RuleJobConfig, bound: BoundRule) -> Sequence[Action]:
    """Return the actions that a rule job carries out: none if it only observes."""
    if rule.is_rejected:
        return ()
    actions = planned(rule, bound.arguments, config.messages.training_job_name)
    return actions if rule.mode is RuleMode.ENFORCE else ()


def _state(
    rule: RuleJobConfig, bound: BoundRule, now: datetime, options: ResultOptions
) -> RuleJobState:
    """Return the initial state of a rule job; one with a configuration error has failed."""
    name, follows = rule.configuration_name, options.follow_issues
    state = RuleJobState(rule.loaded.name, name, options.keep_going, now, follows=follows)
    if rule.config_error:
        state.rule_failed(CLIENT_ERROR + rule.config_error, now)
    for warning in bound.warnings:
        _log.warning("parameter_left_out", rule_job=rule.configuration_name, reason=warning)
        state.note(warning)
    return state


def fingerprint(config: EvaluationConfig, rule: RuleJobConfig, bound: BoundRule) -> str:
    """Return the identity of a rule job; a restart may resume it only if both are equal.

    This package's version counts too, and which parameters were given.
    """
    trials = (config.trial_of(rule), *config.others_of(rule))
    min_coverage = config.min_coverage_of(rule)
    params = rule.loaded.rule_class.PARAMS if rule.loaded.declares_parameters else ()
    files = [
        param.digest(str(path))
        for param in params
        if isinstance(param, FileParam) and (path := bound.parameters.get(param.name))
    ]
    identity = {
        "source": hashlib.sha256(rule.loaded.source_sha256.encode()).hexdigest(),
        "rule": rule.loaded.name,
        "configuration_name": rule.configuration_name,
        "parameters": {name: repr(value) for name, value in sorted(bound.parameters.items())},
        "given": sorted(bound.arguments),
        "trials": [trial.canonical for trial in trials],
        "range": [rule.start_step, rule.end_step],
        "keep_going": config.results.keep_going,
        **({"follow_issues": True} if config.results.follow_issues else {}),
        **({"min_coverage": min_coverage} if min_coverage else {}),
        **({"mutes": [*map(repr, rule.mutes)]} if rule.mutes else {}),
        **({"files": files} if files else {}),
        "version": version("rule-runner"),
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def restore_ended(jobs: Sequence[RuleJob], config: EvaluationConfig) -> bool:
    """Restore the rule jobs if an earlier process completed all of them; return whether it did.

    Raises
    ------
    OutputError
        If some rule jobs have ended and others are new: the folder is of another evaluation.
    """
    new = [job.config.configuration_name for job in jobs if job.recorded is None]
    if new and any(job.recorded and job.recorded.ended_at for job in jobs):
        raise OutputError(
            f"Output folder {str(config.output)!r} holds an ended evaluation without "
            f"rule job {new[0]!r}. Choose another folder, or use --overwrite."
        )
    conclusive = [
        (job, result)
        for job in jobs
        if (result := job.recorded) is not None
        and result.ended_at is not None
        and result.mode == job.config.mode
        and is_conclusive(result, goes_on=config.results.goes_on)
    ]
    if len(conclusive) < len(jobs):
        return False
    for job, result in conclusive:
        job.restore(result)
    return True
