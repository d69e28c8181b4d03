"""Patterns of trials and users, searched for in tensor names with a time limit."""

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from rule_core.exceptions import SMDebugValueError

if TYPE_CHECKING:
    import regex

# For one search. A harmless pattern takes microseconds.
TIME_LIMIT_S: Final = 0.5
# Compiling expands counted repetitions, and nested ones multiply: about 300 bytes for each part.
MOST_PARTS: Final = 1_000_000
BRIEF: Final = 200
Pattern: TypeAlias = "regex.Pattern[str]"
# Patterns that cannot take long in names of `PLAIN_NAME` characters, for which `re` says what
# `regex` does, such as those of hooks; importing `regex` takes longer than most evaluations wait.
_CHARACTER: Final = r"(?:[A-Za-z0-9_/ :-]|\\\.|\[[A-Za-z]+\]|\(\?![A-Za-z0-9_]+\))"
_PLAIN: Final = re.compile(rf"\^?{_CHARACTER}*(?:(?:\.\*|\\d\+){_CHARACTER}*)?\$?")
PLAIN_NAME: Final = 1000
_COUNT: Final = re.compile(r"\{([0-9]{1,18})")
# `regex` reads braces without a count as fuzzy matching; `re` and users as literals.
_BRACE: Final = re.compile(r"(\\N\{[^}]*\}|\\.)|\{(?![0-9]*,?[0-9]*\})", re.DOTALL)


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Pattern:
    """Return a compiled pattern, whose searches take a ``timeout``.

    Raises
    ------
    re.error
        If `pattern` is not a regular expression.
    SMDebugValueError
        If it repeats too much.
    """
    import regex

    parts = len(pattern) * math.prod(max(int(count), 1) for count in _COUNT.findall(pattern))
    if parts > MOST_PARTS:
        raise SMDebugValueError(f"Pattern {_brief(pattern)} repeats too much: {parts} parts.")
    try:
        re.compile(pattern)  # for its error messages; `regex` has its own error class
        return regex.compile(_BRACE.sub(lambda match: match[1] or r"\{", pattern))
    except (regex.error, RecursionError, OverflowError) as err:
        raise SMDebugValueError(
            f"Pattern {_brief(pattern)} cannot be used: {str(err).rstrip('.')}."
        ) from err


def _brief(pattern: str) -> str:
    return repr(pattern if len(pattern) <= BRIEF else f"{pattern[:BRIEF]}...")


@lru_cache(maxsize=1 << 17)
def _search(pattern: str, name: str) -> bool | None:
    if len(name) <= PLAIN_NAME and _PLAIN.fullmatch(pattern):
        return re.search(pattern, name) is not None
    try:
        return compiled(pattern).search(name, timeout=TIME_LIMIT_S) is not None
    except TimeoutError:
        return None


def search(pattern: str, name: str) -> bool:
    """Return whether `pattern` matches anywhere in `name`.

    Raises
    ------
    re.error
        If `pattern` is not a regular expression.
    SMDebugValueError
        If the search takes more than `TIME_LIMIT_S` seconds, as nested repetitions can.
    """
    matches = _search(pattern, name)
    if matches is None:
        raise SMDebugValueError(
            f"Pattern {_brief(pattern)} takes more than {TIME_LIMIT_S} s on a name of {len(name)} "
            "characters. Write it without nested repetitions."
        )
    return matches


def flatten(patterns: object) -> list[str]:
    """Flatten a pattern or nested lists of patterns into one list.

    Raises
    ------
    TypeError
        If an element is not a string.
    """
    if isinstance(patterns, str):
        return [patterns]
    if isinstance(patterns, (list, tuple, set, frozenset)):
        return [pattern for part in patterns for pattern in flatten(part)]
    raise TypeError(f"A pattern must be a string or a list of strings, got {patterns!r}.")


def matching(names: Iterable[str], patterns: Iterable[str]) -> list[str]:
    """Return the names that any of the patterns matches, in their order."""
    patterns = list(patterns)
    for pattern in patterns:
        compiled(pattern)
    return [name for name in names if any(search(pattern, name) for pattern in patterns)]
