"""Nearest names: which tensors of a trial are named most like what a rule looked for in vain."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

NAMES: Final = 5
LENGTH: Final = 100  # characters of a name that are told
KINDS: Final = 2000  # names that are compared; of more, every second, third...
WORDS: Final = 50  # of what was looked for
WORD_LENGTH: Final = 40

_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_QUOTED: Final = re.compile(r"'((?:[^'\\]|\\.)*)'")


def nearest_names(missed: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return at most five names, the nearest first; of those that differ in digits only one.

    Parameters
    ----------
    missed
        What was looked for, as `Trial.missed` has it: ``collection 'losses'``.
    names
        All names of the trial, however many.

    Examples
    --------
    >>> nearest_names(["pattern ['relu.*output']"], ["loss", "ReLU_output_0", "ReLU_output_1"])
    ['ReLU_output_0', 'loss']
    """
    sought = _sought(missed)
    kinds: dict[str, str] = {}
    for name in names:
        kinds.setdefault(_DIGITS.sub("0", name), name)
    if not sought or not kinds:
        return []
    compared = [*kinds.values()][:: -(-len(kinds) // KINDS)]
    compared.sort(key=lambda name: (-_likeness(sought, name), len(name), name))
    return [one if len(one) <= LENGTH else f"{one[:LENGTH]}..." for one in compared[:NAMES]]


def _sought(missed: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the words of each pattern or name that was looked for."""
    found: dict[tuple[str, ...], None] = {}
    for text in missed:
        for part in _QUOTED.findall(text) or [text]:
            found[_words(part)] = None
    return [words for words in [*found][:WORDS] if words]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word[:WORD_LENGTH] for word in _LETTERS.findall(text.lower())[:WORDS])


def _likeness(sought: Sequence[tuple[str, ...]], name: str) -> float:
    """Return how like a name is to the likest of what was looked for, from 0 to 1."""
    there = _words(name)
    return max(
        sum(max((_ratio(word, one) for one in there), default=0.0) for word in words) / len(words)
        for words in sought
    )


@lru_cache(maxsize=100_000)
def _ratio(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()
