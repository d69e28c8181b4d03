"""Reads the section `Sources` of a job file: how to read outputs of other writers."""

from collections.abc import Mapping
from typing import Final

from rule_core.exceptions import SMDebugValueError
from rule_core.sources.names import NameTable, check_name_rule
from rule_core.sources.options import LogPattern, NameRule, SourceOptions
from rule_runner.config.job_file.sections import ABSENT, check_fields, compiled, listed, texts_of
from rule_runner.errors import JobError, translated

SECTION: Final = "Sources"
_NAMES: Final = "Names"
_LOG_PATTERNS: Final = "LogPatterns"
_STEP_COLUMN: Final = "StepColumn"
_MAP: Final = "Map"
_MODES: Final = "Modes"
_FIELDS: Final = (_NAMES, _LOG_PATTERNS, _STEP_COLUMN, _MAP, _MODES)
_PATTERN: Final = "Pattern"
_MODE: Final = "Mode"
_COLLECTION: Final = "Collection"
_NAME: Final = "Name"
_STEP: Final = "step"


def source_options(section: object, document: str) -> SourceOptions:
    """Return what the section of a job file says about sources.

    Parameters
    ----------
    section
        The section; None without one.
    document
        The job file, for messages.

    Raises
    ------
    JobError
        If it is not valid, with what to write instead.
    """
    if section in ABSENT:
        return SourceOptions()
    if not isinstance(section, Mapping):
        raise JobError(f"{SECTION} of {document} must be an object with {', '.join(_FIELDS)}.")
    check_fields(section, _FIELDS, f"{SECTION} of {document}")

    names, patterns, maps, modes = (
        [
            (item, f"{SECTION}.{field}[{index}] of {document}")
            for index, item in enumerate(
                listed(section.get(field), f"{SECTION}.{field} of {document}")
            )
        ]
        for field in (_NAMES, _LOG_PATTERNS, _MAP, _MODES)
    )
    column = section.get(_STEP_COLUMN)
    options = SourceOptions(
        tuple(_name_rule(*item) for item in names),
        tuple(_log_pattern(*item) for item in patterns),
        "" if column in ABSENT else _text(column, f"{SECTION}.{_STEP_COLUMN} of {document}"),
        tuple(_text(*item) for item in maps),
        tuple(_text(*item) for item in modes),
    )
    problem = f"{SECTION} of {document} is not valid. "
    with translated(JobError, SMDebugValueError, before=problem):
        NameTable(options)
    return options


def _text(value: object, where: str) -> str:
    if isinstance(value, str):
        return value
    raise JobError(f"{where} must be a string, got {value!r:.100}.")


def _name_rule(raw: object, where: str) -> NameRule:
    texts = texts_of(raw, (_PATTERN, _MODE, _COLLECTION), where)
    if texts.keys() <= {_PATTERN}:
        raise JobError(f"{where} must have a {_PATTERN}, and a {_MODE} or a {_COLLECTION}.")
    rule = NameRule(_pattern(texts, where), texts.get(_MODE) or None, texts.get(_COLLECTION))
    with translated(JobError, SMDebugValueError, before=f"{where} is not valid. "):
        check_name_rule(rule)
    return rule


def _log_pattern(raw: object, where: str) -> LogPattern:
    texts = texts_of(raw, (_NAME, _PATTERN), where)
    pattern = _pattern(texts, where)
    groups = compiled(pattern, f"{where} is not valid. Pattern {pattern!r}").groupindex
    if _STEP not in groups:
        raise JobError(
            f"{where} must contain the group '(?P<{_STEP}>...)': the step of a line's numbers."
        )
    return LogPattern(texts.get(_NAME) or "job", pattern)


def _pattern(texts: Mapping[str, str], where: str) -> str:
    pattern = texts.get(_PATTERN)
    if not pattern:
        raise JobError(f"{where} must have a {_PATTERN}.")
    return pattern
