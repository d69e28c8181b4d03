"""Reads the section `Sources` of a job file: names and log patterns of other writers."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.params import did_you_mean
from rule_core.sources.names import check_name_rule
from rule_core.sources.options import LogPattern, NameRule, SourceOptions
from rule_runner.errors import JobError

SECTION: Final = "Sources"
_NAMES: Final = "Names"
_LOG_PATTERNS: Final = "LogPatterns"
_PATTERN: Final = "Pattern"
_MODE: Final = "Mode"
_COLLECTION: Final = "Collection"
_NAME: Final = "Name"
_STEP: Final = "step"

Texts = dict[str, str]


def source_options(section: object, place: str) -> SourceOptions:
    """Return what the section of a job file says about sources.

    Parameters
    ----------
    section
        The section; None without one.
    place
        The job file, for messages.

    Raises
    ------
    JobError
        If it is not valid, with what to write instead.
    """
    if section in (None, ""):
        return SourceOptions()
    if not isinstance(section, Mapping):
        msg = f"{SECTION} of {place} must be an object with {_NAMES} or {_LOG_PATTERNS}."
        raise JobError(msg)
    _check_fields(section, (_NAMES, _LOG_PATTERNS), f"{SECTION} of {place}")
    return SourceOptions(
        tuple(
            _name_rule(raw, f"{SECTION}.{_NAMES}[{number}] of {place}")
            for number, raw in enumerate(_listed(section, _NAMES, place))
        ),
        tuple(
            _log_pattern(raw, f"{SECTION}.{_LOG_PATTERNS}[{number}] of {place}")
            for number, raw in enumerate(_listed(section, _LOG_PATTERNS, place))
        ),
    )


def _listed(section: Mapping[object, object], field: str, place: str) -> Sequence[object]:
    items = section.get(field)
    if isinstance(items, (list, tuple)):
        return items
    if items in (None, ""):
        return ()
    msg = f"{SECTION}.{field} of {place} must be a list."
    raise JobError(msg)


def _name_rule(raw: object, where: str) -> NameRule:
    texts = _texts(raw, (_PATTERN, _MODE, _COLLECTION), where)
    if texts.keys() <= {_PATTERN}:
        msg = f"{where} must have a {_PATTERN}, and a {_MODE} or a {_COLLECTION}."
        raise JobError(msg)
    rule = NameRule(_pattern(texts, where), texts.get(_MODE) or None, texts.get(_COLLECTION))
    try:
        check_name_rule(rule)
    except SMDebugValueError as err:
        msg = f"{where} is not valid. {err}"
        raise JobError(msg) from err
    return rule


def _log_pattern(raw: object, where: str) -> LogPattern:
    texts = _texts(raw, (_NAME, _PATTERN), where)
    pattern = _pattern(texts, where)
    try:
        groups = re.compile(pattern).groupindex
    except (re.error, RecursionError, OverflowError) as err:
        msg = f"{where} is not valid. Pattern {pattern!r} is not a regular expression: {err}."
        raise JobError(msg) from err
    if _STEP not in groups:
        msg = f"{where} must contain the group '(?P<{_STEP}>...)': the step of a line's numbers."
        raise JobError(msg)
    return LogPattern(texts.get(_NAME) or "job", pattern)


def _pattern(texts: Texts, where: str) -> str:
    pattern = texts.get(_PATTERN)
    if not pattern:
        msg = f"{where} must have a {_PATTERN}."
        raise JobError(msg)
    return pattern


def _texts(raw: object, fields: Sequence[str], where: str) -> Texts:
    """Return the fields of an object, which must be texts."""
    if not isinstance(raw, Mapping):
        msg = f"{where} must be an object with {', '.join(fields)}."
        raise JobError(msg)
    _check_fields(raw, fields, where)
    for field, value in raw.items():
        if not isinstance(value, str):
            msg = f"{field} in {where} must be a string, got {value!r:.100}."
            raise JobError(msg)
    return dict(raw)


def _check_fields(raw: Mapping[object, object], fields: Sequence[str], where: str) -> None:
    for field in raw:
        if field not in fields:
            hint = did_you_mean(str(field), fields)
            msg = f"{where} has an unknown field {field!r:.100}.{hint} Fields: {', '.join(fields)}."
            raise JobError(msg)
