"""Checks the values of a job file, and says in one sentence what is wrong with one."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from rule_core.rules.params import did_you_mean
from rule_runner.errors import JobError, translated

# A missing value as YAML writes it, where every scalar is its text.
ABSENT: Final = (None, "", "~", "null", "Null", "NULL")


def listed(section: object, where: str) -> Sequence[object]:
    """Return the items of a list, none of an absent one.

    Parameters
    ----------
    where
        What the list is called in messages.

    Raises
    ------
    JobError
        If it is no list.
    """
    if isinstance(section, (list, tuple)):
        return section
    if section in ABSENT:
        return ()
    raise JobError(f"{where} must be a list, got {kind_of(section)}.")


def texts_of(entry: object, fields: Sequence[str], where: str) -> dict[str, str]:
    """Return the fields of an object, which must be texts.

    Raises
    ------
    JobError
        If it is no object, or has other fields or values.
    """
    if not isinstance(entry, Mapping):
        raise JobError(f"{where} must be an object with {', '.join(fields)}.")
    check_fields(entry, fields, where)
    for field, value in entry.items():
        if not isinstance(value, str):
            raise JobError(f"{field} in {where} must be a string, got {value!r:.100}.")
    return dict(entry)


def check_fields(section: Mapping[object, object], fields: Sequence[str], where: str) -> None:
    """Check that an object has only some fields.

    Raises
    ------
    JobError
        Names the first other one, and the nearest of those that it may have.
    """
    for field in section:
        if field not in fields:
            hint = did_you_mean(str(field), fields)
            raise JobError(
                f"{where} has an unknown field {field!r:.100}.{hint} Fields: {', '.join(fields)}."
            )


def compiled(pattern: str, subject: str) -> re.Pattern[str]:
    """Return a regular expression.

    Raises
    ------
    JobError
        If it is none; `subject` begins the message.
    """
    problem = f"{subject} is not a regular expression: "
    with translated(JobError, re.error, RecursionError, OverflowError, before=problem, after="."):
        return re.compile(pattern)


def kind_of(value: object) -> str:
    """Return what a value is, in a word that JSON and YAML have."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false"}
    return "nothing" if value is None else names.get(type(value), "a number")
