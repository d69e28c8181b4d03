"""Diagnosis: the result of one check of doctor."""

import enum
from functools import partial
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


good = partial(Diagnosis, Grade.OK)
warning = partial(Diagnosis, Grade.WARNING)
wrong = partial(Diagnosis, Grade.WRONG)
