"""Lessons: melodies, lines of a log, names in sentences, and letters that are spoken."""

import functools
from typing import Any

import numpy as np
import torch

NOTES = 30  # 0 begins a melody, 29 stands for a hidden note
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789 :./=-\n"
NAMES = 36  # words of sentences with names
TAGS = 5  # outside, begin and go on of a person, begin and go on of a place
SPOKEN = 9  # letters that are spoken; 0 is the blank of CTC


@functools.cache
def notes(length: int = 24, count: int = 1000, seed: int = 401) -> Any:
    """Return melodies: a figure of five notes in one of four modes, again and again, moved."""
    rng = np.random.default_rng(seed)
    figures = np.array([(0, 2, 4, 2, 1), (0, 1, 3, 5, 4), (0, 4, 3, 1, 2), (0, 3, 0, 5, 2)])
    rows = np.zeros((count, length), np.int64)
    for row in rows:
        figure, base, at = figures[rng.integers(4)], rng.integers(2, 20), 1
        while at < length:
            part = (figure + base)[: length - at]
            row[at : at + len(part)] = part
            at += len(part)
            base = int(np.clip(base + rng.choice([-2, 0, 1, 3]), 1, 22))
        strange = rng.random(length) < 0.04
        strange[0] = False
        row[strange] = rng.integers(1, NOTES - 1, strange.sum())
    return torch.tensor(rows)


@functools.cache
def lines(count: int = 1500, seed: int = 402) -> Any:
    """Return the letters of a server's log, as one long row."""
    rng = np.random.default_rng(seed)
    pages = ("index", "cart", "login", "images/logo", "search", "about")
    pieces = []
    for number in range(count):
        page = pages[min(rng.geometric(0.4) - 1, 5)]
        status = rng.choice(["200", "304", "404", "500"], p=[0.7, 0.15, 0.1, 0.05])
        verb = "post" if page in {"cart", "login"} else "get"
        worker = "abcd"[number % 4]
        pieces.append(f"{worker}: {verb} /{page} {status} t={rng.integers(10, 100)}\n")
    return torch.tensor([LETTERS.index(letter) for letter in "".join(pieces)])


def cut(stream: Any, length: int) -> tuple[Any, Any]:
    """Return pieces of a stream, and the letters that come next."""
    rows = (len(stream) - 1) // length
    return (
        stream[: rows * length].view(rows, length),
        stream[1 : rows * length + 1].view(rows, length),
    )


@functools.cache
def named(length: int = 16, count: int = 900, seed: int = 403) -> tuple[Any, Any]:
    """Return sentences and their tags: names of one to three words, told by the word before."""
    rng = np.random.default_rng(seed)
    words = rng.integers(4, NAMES, (count, length))
    tags = np.zeros((count, length), np.int64)
    for row, tag in zip(words, tags, strict=True):
        at = rng.integers(0, 4)
        while at < length - 4:
            kind, size = rng.integers(2), rng.integers(1, 4)
            row[at] = kind * 2 + rng.integers(2)  # a title, or a preposition
            row[at + 1 : at + 1 + size] = rng.integers(16, NAMES, size)
            row[at + 1 + size] = rng.integers(4, 16)
            tag[at + 1 : at + 1 + size] = 2 + 2 * kind
            tag[at + 1] = 1 + 2 * kind
            at += size + 1 + rng.integers(1, 4)
    return torch.tensor(words), torch.tensor(tags)


@functools.cache
def spoken(frames: int = 24, count: int = 800, seed: int = 404) -> tuple[Any, Any]:
    """Return frames of sound, ``(n, frames, 10)``, and the letters that are said, padded by -1."""
    rng = np.random.default_rng(seed)
    sounds = rng.normal(0, 1, (SPOKEN, 10))
    sounds[0] = 0
    x = 0.35 * rng.normal(0, 1, (count, frames, 10))
    y = np.full((count, 6), -1)
    for row, said in zip(x, y, strict=True):
        at = 1
        for place in range(rng.integers(3, 7)):
            letter, long = rng.integers(1, SPOKEN), rng.integers(2, 4)
            said[place] = letter
            row[at : at + long] += sounds[letter]
            at += long + 1
            if at > frames - 4:
                break
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y)


@functools.cache
def judged(count: int = 900, seed: int = 405) -> tuple[Any, Any]:
    """Return pairs of melodies: in the better one, fewer notes were changed."""
    rng = np.random.default_rng(seed)
    better = notes(20, count, seed).numpy().copy()
    worse = better.copy()
    for rows, share in ((better, 0.06), (worse, 0.3)):
        strange = rng.random(rows.shape) < share
        strange[:, 0] = False
        rows[strange] = rng.integers(1, NOTES - 1, strange.sum())
    return torch.tensor(better), torch.tensor(worse)
