"""Diagnosis: the result of one check of doctor."""

import enum
from typing import NamedTuple


class Grade(enum.StrEnum):
    """The result of a check; only WRONG makes doctor fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


class Diagnosis(NamedTuple):
    """The result of a check in full sentences; the last one is the remedy."""

    grade: Grade
    text: str


def good(text: str) -> Diagnosis:
    """Return a diagnosis without a problem."""
    return Diagnosis(Grade.OK, text)


def warning(text: str) -> Diagnosis:
    """Return a diagnosis of a possible problem."""
    return Diagnosis(Grade.WARNING, text)


def wrong(text: str) -> Diagnosis:
    """Return a diagnosis of a problem."""
    return Diagnosis(Grade.WRONG, text)
