"""Texts: generated languages, and what is to be said of them."""

import functools
from typing import Any

import numpy as np
import torch

GENES = 21  # 0 is not used; a codon is a number from 1 to 20
SHOP = 40  # 0 is padding
KINDS = 5  # tags of words
SPELLED = 15  # 0 is padding, 1 begins, 2 ends
NESTED = 14  # 0 opens and 1 closes a text


@functools.cache
def genes(length: int = 24, count: int = 900, seed: int = 301) -> Any:
    """Return rows of codons: three hidden states with codons of their own, and a motif of four."""
    rng = np.random.default_rng(seed)
    chances = rng.dirichlet(np.full(GENES - 1, 0.12), 3)
    rows = np.zeros((count, length), np.int64)
    for row in rows:
        state = rng.integers(3)
        for at in range(length):
            row[at] = 1 + rng.choice(GENES - 1, p=chances[state])
            state = state if rng.random() < 0.85 else rng.integers(3)
        for at in rng.choice(length - 4, 2, replace=False):
            row[at : at + 4] = (7, 3, 18, 11)
    return torch.tensor(rows)


@functools.cache
def nested(length: int = 24, count: int = 1000, seed: int = 302) -> Any:
    """Return texts of brackets of six kinds, each closed by its own, and never too deep."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, length), np.int64)
    for row in rows:
        is_open = list[int]()
        for at in range(1, length):
            left = length - at
            if is_open and (len(is_open) >= min(4, left) or rng.random() < 0.45):
                row[at] = 3 + 2 * is_open.pop()
            elif left <= 1:
                row[at] = 1
            else:
                is_open.append(min(5, rng.geometric(0.35) - 1))
                row[at] = 2 + 2 * is_open[-1]
    return torch.tensor(rows)


@functools.cache
def clicks(length: int = 20, count: int = 900, shortest: int = 14, seed: int = 303) -> Any:
    """Return sessions of clicks on goods, padded at their end: a shelf, then its neighbour."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, length), np.int64)
    fame = 1 / np.arange(1, 9)
    fame /= fame.sum()
    for row in rows:
        shelf = rng.integers(4)
        for at in range(rng.integers(shortest, length + 1)):
            again = at > 1 and rng.random() < 0.3
            row[at] = row[at - 2] if again else 1 + 8 * shelf + rng.choice(8, p=fame)
            shelf = (shelf + int(rng.random() < 0.2)) % 4
    return torch.tensor(rows)


@functools.cache
def tagged(length: int = 18, count: int = 900, seed: int = 304) -> tuple[Any, Any]:
    """Return sentences and the kind of each word; a third of the words is of two kinds.

    Those are of the second kind after a word of an even number.
    """
    rng = np.random.default_rng(seed)
    words = rng.integers(3, SHOP, (count, length))
    kinds = words % KINDS
    after_even = np.roll(words, 1, 1) % 2 == 0
    after_even[:, 0] = False
    kinds = np.where((words > 27) & after_even, (kinds + 2) % KINDS, kinds)
    return torch.tensor(words), torch.tensor(kinds)


@functools.cache
def spelled(longest: int = 8, count: int = 1200, seed: int = 305) -> tuple[Any, Any]:
    """Return words and what they become: letters in reverse, each vowel moved on; padded."""
    rng = np.random.default_rng(seed)
    sources = np.zeros((count, longest), np.int64)
    targets = np.zeros((count, longest + 2), np.int64)
    for source, target in zip(sources, targets, strict=True):
        size = rng.integers(longest - 3, longest + 1)
        letters = rng.integers(3, SPELLED, size)
        source[:size] = letters
        moved = np.where(letters < 6, 3 + (letters - 2) % 3, letters)[::-1]
        target[: size + 2] = (1, *moved, 2)
    return torch.tensor(sources), torch.tensor(targets)


def windows(rows: Any) -> tuple[Any, Any]:
    """Return rows without their last word, and the next words."""
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def known(rows: Any) -> tuple[Any, Any]:
    """Return windows whose padding is not to be learnt."""
    x, y = windows(rows)
    return x, y.masked_fill(y == 0, -100)
