"""Patterns from trials and users, searched in tensor names under a time limit."""

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import regex

from smdebug.exceptions import SMDebugValueError

# One name against one pattern. A harmless pattern needs microseconds.
TIME_LIMIT_S: Final = 0.5
# A counted repetition is written out when a pattern is compiled, a nested one that many times
# over: about 300 bytes for each part.
MOST_PARTS: Final = 1_000_000
BRIEF: Final = 200
_COUNT: Final = re.compile(r"\{([0-9]{1,18})")
# `regex` takes braces that hold no count for a fuzzy match, `re` and users for themselves.
_BRACE: Final = re.compile(r"(\\N\{[^}]*\}|\\.)|\{(?![0-9]*,?[0-9]*\})", re.DOTALL)


@lru_cache(maxsize=4096)
def _compile(pattern: str) -> "regex.Pattern[str]":
    parts = len(pattern) * math.prod(max(int(count), 1) for count in _COUNT.findall(pattern))
    if parts > MOST_PARTS:
        msg = f"Pattern {_brief(pattern)} repeats too much: {parts} parts."
        raise SMDebugValueError(msg)
    try:
        re.compile(pattern)  # the errors that users know; `regex` has its own class
        return regex.compile(_BRACE.sub(lambda found: found[1] or r"\{", pattern))
    except (regex.error, RecursionError, OverflowError) as err:
        msg = f"Pattern {_brief(pattern)} cannot be used: {str(err).rstrip('.')}."
        raise SMDebugValueError(msg) from err


def _brief(pattern: str) -> str:
    return repr(pattern if len(pattern) <= BRIEF else f"{pattern[:BRIEF]}...")


@lru_cache(maxsize=1 << 17)
def _searched(pattern: str, name: str) -> bool | None:
    try:
        return _compile(pattern).search(name, timeout=TIME_LIMIT_S) is not None
    except TimeoutError:
        return None


def search(pattern: str, name: str) -> bool:
    """Say whether `pattern` is found anywhere in `name`.

    Raises
    ------
    re.error
        If `pattern` is no regular expression.
    SMDebugValueError
        If the search takes more than `TIME_LIMIT_S` seconds; a pattern with nested repetitions
        may take longer than the universe.
    """
    found = _searched(pattern, name)
    if found is None:
        msg = (
            f"Pattern {_brief(pattern)} takes more than {TIME_LIMIT_S} s on a name of {len(name)} "
            "characters. Write it without nested repetitions."
        )
        raise SMDebugValueError(msg)
    return found


def flatten(patterns: object) -> list[str]:
    """Return a pattern, or nested lists of patterns, as one list.

    Raises
    ------
    TypeError
        If anything in it is no string.
    """
    if isinstance(patterns, str):
        return [patterns]
    if isinstance(patterns, (list, tuple, set, frozenset)):
        return [one for part in patterns for one in flatten(part)]
    msg = f"A pattern must be a string or a list of strings, got {patterns!r}."
    raise TypeError(msg)


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names in which any of the patterns is found, in their order."""
    wanted = list(patterns)
    for pattern in wanted:
        _compile(pattern)
    return [name for name in names if any(search(pattern, name) for pattern in wanted)]
