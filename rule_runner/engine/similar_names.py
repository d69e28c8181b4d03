"""Finds the tensor names of a trial that are most similar to what a rule looked for in vain."""

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

NAMES: Final = 5
LENGTH: Final = 100  # characters of a name to show
KINDS: Final = 2000  # names to compare; of more, every second, third...
WORDS: Final = 50  # of a pattern or name
WORD_LENGTH: Final = 40

_DIGITS: Final = re.compile(r"\d+")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_QUOTED: Final = re.compile(r"'((?:[^'\\]|\\.)*)'")


def nearest_names(missed: Iterable[str], names: Iterable[str]) -> list[str]:
    """Return at most five names, the nearest first; names that differ only in digits count once.

    Parameters
    ----------
    missed
        The requests of the rule, in the form of `Trial.missed`: ``collection 'losses'``.
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
    return [name if len(name) <= LENGTH else f"{name[:LENGTH]}..." for name in compared[:NAMES]]


def _sought(missed: Iterable[str]) -> list[tuple[str, ...]]:
    """Return the words of each pattern or name in `missed`."""
    sought: dict[tuple[str, ...], None] = {}
    for text in missed:
        for part in _QUOTED.findall(text) or [text]:
            sought[_words(part)] = None
    return [words for words in [*sought][:WORDS] if words]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word[:WORD_LENGTH] for word in _LETTERS.findall(text.lower())[:WORDS])


def _likeness(sought: Sequence[tuple[str, ...]], name: str) -> float:
    """Return the similarity of a name to the most similar entry of `sought`, from 0 to 1."""
    parts = _words(name)
    return max(
        sum(max((_ratio(word, part) for part in parts), default=0.0) for word in words) / len(words)
        for words in sought
    )


@lru_cache(maxsize=100_000)
def _ratio(word: str, part: str) -> float:
    return SequenceMatcher(None, word, part).ratio()
