"""evaluate --job: reads the rules of a training job, and checks them."""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

from msgspec.structs import replace

from rule_runner.config.model import RuleJobConfig
from rule_runner.config.request import EvaluationRequest
from rule_runner.errors import UsageError
from rule_runner.escape import printable

if TYPE_CHECKING:
    from rule_runner.config.job_file.definition import JobDefinition, RuleConfiguration


def read_job(
    path: str,
    only: Sequence[str],
    exclude: Sequence[str],
    *,
    check: bool,
    allow_code: bool,
    form: str,
) -> "JobDefinition":
    """Return the definition in a job file, with the chosen rules.

    Parameters
    ----------
    only, exclude
        Names of rule configurations: only these, and all but these.
    check
        Whether to check the rules instead of evaluating them.
    allow_code
        Whether Python files may be run for that.
    form
        The format of the results; a check prints lines only.

    Raises
    ------
    JobError
        If the job file cannot be read, or contains no rules.
    UsageError
        If options contradict each other.
    """
    from rule_runner.config.job_file.definition import choose
    from rule_runner.config.job_file.reader import is_code, read_job_file

    if allow_code and not check:
        raise UsageError(
            "Option --allow-code requires --check: an evaluation runs the code anyway."
        )
    if check and is_code(path) and not allow_code:
        raise UsageError(
            f"Job file {printable(path)} is a program, and checking it runs it. "
            "Give --allow-code to allow that."
        )
    if check and form != "table":
        raise UsageError(f"Option --check cannot be combined with --format {form}.")
    with redirect_stdout(sys.stderr):  # of a program
        definition = read_job_file(path)
    return choose(definition, only, exclude)


def with_job(request: EvaluationRequest, definition: "JobDefinition") -> EvaluationRequest:
    """Return a request with the rules of a job, and its trials and name where it has none."""
    name = request.trial_name
    trials = {"trial": request.trial, "profiler_trial": request.profiler_trial}
    for field, trial in trials.items():  # it ends with debug-output or profiler-output
        if trial is None and (path := getattr(definition, field)) is not None:
            trials[field] = path
            name = name or definition.training_job_name
    return replace(
        request,
        job=definition,
        trial_name=name,
        training_job_name=request.training_job_name or definition.training_job_name,
        **trials,
    )


def check(request: EvaluationRequest, definition: "JobDefinition", *, allow_code: bool) -> int:
    """Print for each rule configuration what is wrong with it; return the exit code, 0 or 1.

    Raises
    ------
    JobError
        If there are only rules that are not evaluated.
    """
    from rule_runner.config.job_file.rule_jobs import JobScope, notes_on, rule_jobs_of

    scope = JobScope(request, look=False, run=allow_code)
    with redirect_stdout(sys.stderr):  # of the rules' files
        jobs = {job.configuration_name: job for job in rule_jobs_of(definition, scope)}
    for configuration in definition.configurations:
        if configuration.name in jobs:
            print(printable(_line(configuration, jobs[configuration.name])))
    for note in notes_on(definition, scope):
        print(f"note: {printable(note)}")
    return int(any(job.config_error for job in jobs.values()))


def _line(configuration: "RuleConfiguration", job: RuleJobConfig) -> str:
    """Return the line on one configuration."""
    name = configuration.rule if job.config_error else job.loaded.name
    suffix = f" ({name})" if name != configuration.name else ""
    return f"{configuration.name}{suffix}: {job.config_error or _ok(job)}"


def _ok(job: RuleJobConfig) -> str:
    from rule_runner.loading.placeholder_rule import PlaceholderRule

    if job.loaded.source is None or job.loaded.rule_class is not PlaceholderRule:
        return "ok"
    return "ok; its file was not run and its parameters were not checked: --allow-code does both"
