"""Texts: what the held-out language runs learn from."""

import functools
import re
from typing import Any

import numpy as np
import torch
from sklearn import datasets
from training.learnt_data import Split

NOTHING = 0  # padding, and letters and words that are not known
LETTERS = " abcdefghijklmnopqrstuvwxyz0123456789.,()-"
CHARACTERS = len(LETTERS) + 1
WORDS = 52
SOURCE = 8  # words of a sentence to translate
START = 25
PAIRED_WORDS = 26
TAGS = 3
_TABLES = ("breast_cancer", "diabetes", "digits", "iris", "linnerud", "wine")


def prose() -> str:
    """Return the English descriptions of scikit-learn's tables."""
    texts = (getattr(datasets, f"load_{name}")().DESCR for name in _TABLES)
    return re.sub(r"\s+", " ", " ".join(texts))


def encoded(text: str) -> Any:
    """Return the numbers of characters; upper-case letters and signs are not known."""
    return torch.tensor([LETTERS.find(letter) + 1 for letter in text])


def windows(tokens: Any, size: int, stride: int) -> Split:
    """Return windows and their next tokens; the last fifth is to validate with."""

    def cut(part: Any) -> tuple[Any, Any]:
        both = part.unfold(0, size + 1, stride)
        return both[:, :-1].contiguous(), both[:, 1:].contiguous()

    border = len(tokens) * 4 // 5
    return Split(*cut(tokens[:border]), *cut(tokens[border:]))


@functools.cache
def english(size: int = 24, stride: int = 11) -> Split:
    """Return windows of English prose, letter by letter."""
    return windows(encoded(prose().lower()), size, stride)


@functools.cache
def grammar(size: int = 20, sentences: int = 3000, seed: int = 21) -> Split:
    """Return windows of generated sentences whose verbs agree with their subjects.

    Articles are 1 to 4, adjectives 5 to 14, nouns 15 to 34 (odd: one, even: several), verbs 35 to
    48, prepositions 49 and 50; 51 ends a sentence.
    """
    rng = np.random.default_rng(seed)

    def zipf(first: int, count: int) -> int:
        chances = 1 / np.arange(1, count + 1)
        return first + int(rng.choice(count, p=chances / chances.sum()))

    def phrase() -> tuple[list[int], int]:
        noun = zipf(15, 20)
        several = 1 - noun % 2
        words = [1 + 2 * several + int(rng.integers(2))]
        words += [zipf(5, 10) for _ in range(int(rng.integers(0, 3)))]
        return [*words, noun], several

    stream: list[int] = []
    for _ in range(sentences):
        subject, several = phrase()
        stream += [*subject, 35 + 7 * several + zipf(0, 7)]
        if rng.random() < 0.5:
            stream += [49 + int(rng.integers(2)), *phrase()[0]]
        stream.append(51)
    return windows(torch.tensor(stream), size, size)


@functools.cache
def translations(count: int = 1500, shortest: int = 5) -> Split:
    """Return sentences to translate into another order and other words.

    A row is a padded source of `SOURCE` words and what the decoder sees; targets are as long.
    """
    rng = np.random.default_rng(5)
    meaning = 13 + rng.permutation(12)
    rows = np.zeros((count, 2 * SOURCE), np.int64)
    targets = np.full((count, SOURCE), -100)
    for row, target in zip(rows, targets, strict=True):
        size = int(rng.integers(shortest, SOURCE + 1))
        words = rng.integers(1, 13, size)
        row[:size], target[:size] = words, meaning[words[::-1] - 1]
        row[SOURCE], row[SOURCE + 1 : SOURCE + size] = START, target[: size - 1]
    x, y = torch.tensor(rows), torch.tensor(targets)
    cut = count * 4 // 5
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


@functools.cache
def tagged(count: int = 900, size: int = 18) -> Split:
    """Return words and their tags: outside, at the beginning of or inside a name."""
    rng = np.random.default_rng(8)
    words = torch.tensor(rng.integers(1, 31, (count, size)))
    tags = torch.zeros_like(words)
    for at in range(size):
        is_title = words[:, at] <= 4
        before = words[:, at - 1] <= 4 if at else torch.zeros_like(is_title)
        follows = (tags[:, at - 1] == 2) & (words[:, at] > 22) if at else before
        tags[:, at] = torch.where(is_title, 1, torch.where(before | follows, 2, 0))
    cut = count * 3 // 4
    return Split(words[:cut], tags[:cut], words[cut:], tags[cut:])


def with_masks(split: Split, share: float, mask: int) -> Split:
    """Return windows with hidden tokens, which are the targets."""
    generator = torch.Generator().manual_seed(4)

    def hide(x: Any) -> tuple[Any, Any]:
        is_hidden = torch.rand(x.shape, generator=generator) < share
        return torch.where(is_hidden, mask, x), torch.where(is_hidden, x, -100)

    return Split(*hide(split.x), *hide(split.test_x))
