"""Texts: tickets of customers in several queues, and articles with several tags."""

import functools
from typing import Any

import numpy as np
import torch
from training.learnt_data import Split

from runs_held_out.data_and_trees.shared.pictures import parts

PAD, UNKNOWN, FIRST = 0, 1, 2
VOCABULARY = 600


def filled(texts: list[Any], length: int = 0) -> Any:
    """Return texts as rows of tokens, filled up at the end to the longest or a given length."""
    length = length or max(map(len, texts))
    rows = np.full((len(texts), length), PAD, np.int64)
    for row, text in zip(rows, texts, strict=True):
        row[: len(text)] = text[:length]
    return torch.from_numpy(rows)


def batched(rows: list[Any]) -> tuple[Any, Any]:
    """Return a batch of texts as long as its longest, and their targets."""
    texts, targets = zip(*rows, strict=True)
    return filled(list(texts)), torch.stack(targets)


def _common() -> Any:
    chance = 1 / np.arange(4, VOCABULARY + 2)
    return chance / chance.sum()


@functools.cache
def tickets(
    count: int,
    seed: int,
    *,
    queues: int = 5,
    told: float = 0.35,
    shortest: int = 12,
    longest: int = 24,
    shares: tuple[float, ...] = (),
    language: int = 77,
) -> tuple[list[Any], Any]:
    """Return tickets as arrays of words, and the queues they belong to.

    A share `told` of the words are of a queue, three of four of the ticket's own one.
    """
    rng = np.random.default_rng(seed)
    special = np.random.default_rng(language).permutation(np.arange(100, VOCABULARY))
    special = special[: 40 * queues].reshape(queues, 40)
    chance = np.array(shares or (1.0,) * queues)
    queue = rng.choice(queues, count, p=chance / chance.sum())
    texts = []
    for each in queue:
        size = int(rng.integers(shortest, longest + 1))
        words = rng.choice(np.arange(FIRST, VOCABULARY), size, p=_common())
        whose = np.where(rng.random(size) < 0.75, each, rng.integers(0, queues, size))
        own = special[whose, (40 * rng.random(size) ** 2).astype(int)]
        texts.append(np.where(rng.random(size) < told, own, words))
    return texts, torch.from_numpy(queue)


def ticket_data(count: int, seed: int, *, tested: int = 400, **more: Any) -> Split:
    """Return tickets as filled rows, and their queues."""
    texts, queue = tickets(count, seed, **more)
    return parts(filled(texts), queue, tested)


@functools.cache
def articles(count: int, seed: int, *, tags: int = 6, tested: int = 400) -> Split:
    """Return articles of 16 to 28 words as filled rows, and which of several tags they have."""
    rng = np.random.default_rng(seed)
    special = rng.permutation(np.arange(100, VOCABULARY))[: 30 * tags].reshape(tags, 30)
    has = rng.random((count, tags)) < 0.35
    texts = []
    for tagged in has:
        size = int(rng.integers(16, 29))
        words = rng.choice(np.arange(FIRST, VOCABULARY), size, p=_common())
        for tag in np.flatnonzero(tagged):
            at = rng.permutation(size)[:4]
            words[at] = special[tag, rng.integers(0, 30, 4)]
        texts.append(words)
    return parts(filled(texts), torch.from_numpy(has.astype(np.float32)), tested)
