"""Texts: news of several desks, reviews in which a "not" turns what follows, and requests."""

import functools
from typing import Any

import numpy as np
import torch
from training.learnt_data import Split

from runs_tuned.seventh_held_out.data_and_trees.shared.pictures import apart

PADDING, UNKNOWN = 0, 1
WORDS = 300  # of news and requests, with the two above
NOT, FIRST_GOOD, FIRST_BAD, FIRST_ASKING, FIRST_OTHER, VOCABULARY = 2, 3, 23, 43, 58, 160


def padded(texts: list[Any], longest: int = 0) -> Any:
    """Return texts as rows of tokens, filled up at their end to the longest or a given length."""
    length = longest or max(map(len, texts))
    rows = np.zeros((len(texts), length), np.int64)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = text[:length]
    return torch.from_numpy(rows)


def together(rows: list[Any]) -> tuple[Any, Any]:
    """Return a batch of texts filled up to the longest among them, and their kinds."""
    texts, kinds = zip(*rows, strict=True)
    return padded(list(texts)), torch.stack(kinds)


@functools.cache
def news_texts(
    count: int,
    seed: int,
    *,
    desks: int = 4,
    told: float = 0.3,
    shortest: int = 14,
    longest: int = 28,
    shares: tuple[float, ...] = (),
) -> tuple[list[Any], Any]:
    """Return news as lists of words, and their desks.

    A share `told` of the words are those of a desk, mostly of its own; the others are common.
    """
    rng = np.random.default_rng(seed)
    chance = np.array(shares or (1.0,) * desks)
    desk = rng.choice(desks, count, p=chance / chance.sum())
    common = 1 / np.arange(3, WORDS + 1)
    common /= common.sum()
    own = rng.permutation(np.arange(60, WORDS))[: 25 * desks].reshape(desks, 25)
    texts = []
    for each in desk:
        size = rng.integers(shortest, longest + 1)
        words = rng.choice(np.arange(2, WORDS), size, p=common)
        of_desk = rng.random(size) < told
        whose = np.where(rng.random(size) < 0.7, each, rng.integers(0, desks, size))
        special = own[whose, rng.integers(0, 25, size)]
        texts.append(np.where(of_desk, special, words))
    return texts, torch.from_numpy(desk)


def news(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return news as padded rows, and their desks."""
    texts, desk = news_texts(count, seed, **more)
    return apart(padded(texts), desk, tested)


@functools.cache
def review_texts(
    count: int, seed: int, *, shortest: int = 10, longest: int = 20, wrong: float = 0.04
) -> tuple[list[Any], Any]:
    """Return reviews as lists of words, and whether they complain (0), praise (1) or ask (2).

    What is praised is called good, or not bad; what is complained of is bad, or not good.
    """
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, count)
    texts = []
    for each in kind:
        size = int(rng.integers(shortest, longest + 1))
        words = list(rng.integers(FIRST_OTHER, VOCABULARY, size))
        for place in rng.permutation(size // 2)[: 3 + size // 8]:
            at = 2 * int(place)
            if each == 2:
                words[at] = int(rng.integers(FIRST_ASKING, FIRST_OTHER))
                continue
            turned = rng.random() < 0.5
            says_good = (each == 1) != turned
            words[at] = NOT if turned else words[at]
            first = FIRST_GOOD if says_good else FIRST_BAD
            words[at + 1] = int(rng.integers(first, first + 20))
        texts.append(np.array(words))
    guess = rng.integers(0, 3, count)
    return texts, torch.from_numpy(np.where(rng.random(count) < wrong, guess, kind))


def reviews(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return reviews as padded rows, and their kinds."""
    texts, kind = review_texts(count, seed, **more)
    return apart(padded(texts), kind, tested)
