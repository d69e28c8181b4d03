"""What evaluate does with --job, besides evaluating."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from rule_runner.config import RuleJobConfig
from rule_runner.errors import UsageError
from rule_runner.show import printable
from rule_runner.status import CLIENT_ERROR

if TYPE_CHECKING:
    from rule_runner.definitions.definition import JobDefinition, RuleConfiguration

Options = Mapping[str, Any]

_JOB_ONLY: Final = {"only": "--only", "exclude": "--except", "check": "--check"}
_NOT_WITH_JOB: Final = {"rule": "--rule", "source": "--source", "param": "--param"}


def completed(options: Options) -> dict[str, Any]:
    """Return the options of evaluate with what the job file says: `definition`, trial, job's name.

    Raises
    ------
    JobError
        If the job file cannot be read, or holds no rules.
    UsageError
        If options do not go together, or there is no trial.
    """
    found = dict(options)
    if options["job"] is None:
        for name, option in (*_JOB_ONLY.items(), ("allow_code", "--allow-code")):
            if options[name]:
                msg = f"Option {option} goes with --job only."
                raise UsageError(msg)
    else:
        definition = _read(options)
        found["definition"] = definition
        for place in ("trial", "profiler_trial"):  # it ends with debug-output or profiler-output
            told = getattr(definition, place)
            if options[place] is None and told is not None:
                found[place], found["trial_name"] = told, definition.training_job_name
        found["training_job_name"] = options["training_job_name"] or definition.training_job_name
    if found["trial"] is None and found["profiler_trial"] is None and not options["check"]:
        msg = "No trial was given: give --trial PATH, or --profiler-trial PATH for profiler rules."
        if options["job"] is not None:
            msg = (
                "No trial was given, and the job file does not say where one is saved, with "
                "TrainingJobName and S3OutputPath of DebugHookConfig. Give --trial PATH."
            )
        raise UsageError(msg)
    return found


def check(options: Options) -> int:
    """Print for each rule configuration what is wrong with it; return the exit code, 0 or 1.

    Raises
    ------
    JobError
        If there are only rules that are not evaluated.
    """
    from rule_runner.definitions.rule_jobs import (  # noqa: PLC0415 - only when it is needed
        Besides,
        notes_on,
        rule_jobs_of,
    )

    definition = options["definition"]
    besides = replace(
        Besides.of(options), tensors=True, windows=True, look=False, run=options["allow_code"]
    )
    with redirect_stdout(sys.stderr):  # of the rules' files
        jobs = {one.configuration_name: one for one in rule_jobs_of(definition, besides)}
    for one in definition.configurations:
        if one.name in jobs:
            print(printable(_line(one, jobs[one.name])))  # noqa: T201 - stdout carries results
    for note in notes_on(definition, besides):
        print(f"note: {printable(note)}")  # noqa: T201 - stdout carries results
    return int(any(one.refused for one in jobs.values()))


def _line(configuration: "RuleConfiguration", job: RuleJobConfig) -> str:
    """Return what is said of one configuration."""
    named = configuration.rule if job.refused else job.loaded.name
    about = f" ({named})" if named != configuration.name else ""
    return f"{configuration.name}{about}: " + "; ".join(_verdict(job))


def _verdict(job: RuleJobConfig) -> Iterator[str]:
    yield CLIENT_ERROR + job.refused if job.refused else "ok"
    if not job.refused and job.loaded.source is not None and _only_looked_at(job):
        yield "its file was not run and its parameters were not checked: --allow-code does both"


def _only_looked_at(job: RuleJobConfig) -> bool:
    from rule_runner.unopened import Unopened  # noqa: PLC0415 - only for rules with files

    return job.loaded.rule_class is Unopened


def _read(options: Options) -> "JobDefinition":
    """Return the definition in the job file, without the rules that were not chosen."""
    from rule_runner.definitions.definition import choose  # noqa: PLC0415 - only with --job
    from rule_runner.definitions.reading import is_code, read_job_file  # noqa: PLC0415 - likewise

    path = options["job"]
    together = [option for name, option in _NOT_WITH_JOB.items() if options[name]]
    if together:
        msg = f"Options --job and {together[0]} do not go together: rules come from one of them."
        raise UsageError(msg)
    if options["allow_code"] and not options["check"]:
        msg = "Option --allow-code goes with --check only: to evaluate, code is run anyway."
        raise UsageError(msg)
    if options["check"] and is_code(path) and not options["allow_code"]:
        msg = (
            f"Job file {printable(path)} is a program, and to check it is to run it. "
            "Give --allow-code if that may be."
        )
        raise UsageError(msg)
    if options["check"] and options["form"] != "table":
        msg = f"Option --check prints lines only, got --format {options['form']}."
        raise UsageError(msg)
    with redirect_stdout(sys.stderr):  # of a program
        definition = read_job_file(path)
    return choose(definition, options["only"], options["exclude"])
