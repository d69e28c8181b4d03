"""Check: one thing that doctor looked at, as a sentence, with its remedy if something is amiss."""

import enum
from collections.abc import Sequence
from typing import Final, NamedTuple

SHOWN: Final = 5


class Grade(enum.StrEnum):
    """How good it is; only WRONG makes doctor fail."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


class Check(NamedTuple):
    """What was found, in whole sentences; the last one says what to do."""

    grade: Grade
    text: str


def good(text: str) -> Check:
    """Return that all is well."""
    return Check(Grade.OK, text)


def warning(text: str) -> Check:
    """Return what may be as it should be."""
    return Check(Grade.WARNING, text)


def wrong(text: str) -> Check:
    """Return what has to be mended."""
    return Check(Grade.WRONG, text)


def listed(things: Sequence[object]) -> str:
    """Return the first things, quoted, and how many there are more."""
    return shortened(list(map(repr, things)))


def shortened(texts: Sequence[str]) -> str:
    """Return the first texts, and how many there are more.

    >>> shortened("ab"), shortened("abcdefg")
    ('a, b', 'a, b, c, d, e and 2 more')
    """
    more = len(texts) - SHOWN
    return ", ".join(texts[:SHOWN]) + (f" and {more} more" if more > 0 else "")
