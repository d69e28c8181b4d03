"""Requests: what each trial's evaluation is asked to do."""

from collections.abc import Mapping

from msgspec.structs import replace

from rule_runner.config.job_file.definition import JobDefinition
from rule_runner.config.request import EvaluationRequest, RuleRequest
from rule_runner.config.rule_options import parse_requests
from rule_runner.index.outputs import SavedOutput
from rule_runner.index.records import TrialRecord
from rule_runner.watch.config import Assignment, WatchConfig


def request_of(
    trial: TrialRecord,
    assignment: Assignment,
    config: WatchConfig,
    jobs: Mapping[str, JobDefinition],
    saved: SavedOutput,
    *,
    follow: bool,
    anew: bool = False,
) -> EvaluationRequest:
    """Return the evaluation of a trial.

    An evaluation that was begun keeps the rules that fitted the trial then. Results of another
    version of rule-runner cannot be continued: they are replaced.

    Parameters
    ----------
    jobs
        The job files, read, by their paths.
    saved
        What its output folder holds.
    follow
        Whether to follow it until it ends.
    anew
        Whether to replace its results.
    """
    request = EvaluationRequest(
        trial=trial.path if trial.tensors else None,
        profiler_trial=trial.path if trial.profiler else None,
        parameters=assignment.parameters,
        modes=assignment.modes,
        wait=follow,
        as_it_is=not follow,
        idle_timeout=config.quiet_s,
        output=trial.output,
        overwrite=anew or not saved.same_version,
        sinks=config.sinks,
        actions=config.actions,
        quiet=True,
    )
    if assignment.job is not None:
        return replace(request, job=jobs[assignment.job])
    rules = tuple(parse_requests(list(assignment.rules), []))
    if assignment.is_fitting and saved.rules and saved.same_version:
        rules = tuple(RuleRequest(name=rule.name) for rule in saved.rules)
    return replace(request, rules=rules)
