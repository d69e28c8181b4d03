"""Reads a job definition from a JSON, YAML or Python file, or from Python objects."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from rule_runner.config.documents import TextError, parse, read_text
from rule_runner.config.job_file.definition import JobDefinition, capitalized, definition_of
from rule_runner.config.job_file.python_file import SUFFIX, rules_of_file
from rule_runner.config.job_file.sdk_objects import configurations_of
from rule_runner.config.model import check_is_local
from rule_runner.errors import JobError, translated
from rule_runner.text_files import shown


def is_code(path: str) -> bool:
    """Return whether a job file is a program."""
    return path.lower().endswith(SUFFIX)


def read_job_file(path: str) -> JobDefinition:
    """Return the definition in a file; a Python file is run.

    Raises
    ------
    JobError
        If it cannot be read, or holds no rules.
    UsageError
        If the path is an address in S3.
    """
    check_is_local(path, "Job file")
    file = Path(path)
    place = f"job file {shown(file)}"
    if is_code(path):
        return JobDefinition(place, configurations_of(rules_of_file(file), place))
    problem = f"{capitalized(place)} does not parse: "
    with translated(JobError, TextError, before=problem, after="."):
        request = parse(read_text(file), file.suffix)
    return definition_of(request, place)


def definition_from(rules: object) -> JobDefinition:
    """Return the definition in a list of rules, a request as a mapping, or a job file's path.

    Raises
    ------
    JobError
        If it is none of these, or holds no rules.
    """
    if isinstance(rules, (str, os.PathLike)):
        return read_job_file(os.fspath(rules))
    if isinstance(rules, Mapping):
        return definition_of(rules, "the job definition")
    if isinstance(rules, Iterable):
        return JobDefinition("the list", configurations_of(rules, "the list"))
    raise JobError(
        f"Rules must be a list, a request or the path of a job file, got {type(rules).__name__}."
    )
