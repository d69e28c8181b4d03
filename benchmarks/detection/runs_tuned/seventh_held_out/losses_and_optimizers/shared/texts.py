"""Texts: generated recipes to continue, reviews with padding, and words spelled backwards."""

from typing import Final

import numpy as np
import torch
from training.learnt_data import Split

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import parted

SIGNS: Final = "\n abcdefghijklmnopqrstuvwxyz.,"
FOOD: Final = (
    ("mix", "stir", "bake", "cut", "heat", "pour", "add", "chill", "whisk", "fold"),
    ("two cups of", "three", "some", "half the", "all the", "a bit of", "plenty of"),
    ("eggs", "flour", "butter", "milk", "apples", "sugar", "nuts", "salt", "cream", "oats", "jam"),
    ("in a bowl", "in the oven", "with a spoon", "for an hour", "on a plate", "by hand"),
)
GARDEN: Final = (
    ("plant", "water", "prune", "dig up", "weed", "sow", "tie", "rake", "feed", "mulch"),
    ("both", "five", "most of the", "each of the", "no more", "one row of", "young"),
    (
        "roses",
        "beans",
        "bulbs",
        "vines",
        "hedges",
        "ferns",
        "leeks",
        "shrubs",
        "figs",
        "kale",
        "mint",
    ),
    ("before frost", "by the wall", "at dusk", "under glass", "every week", "near the pond"),
)
REVIEW_WORDS: Final = 80


def _line(rng: np.random.Generator, words: tuple[tuple[str, ...], ...]) -> str:
    verbs, amounts, things, places = words
    verb = int(rng.integers(len(verbs)))
    thing = things[(verb + int(rng.integers(4))) % len(things)]
    line = f"{verbs[verb]} {amounts[rng.integers(len(amounts))]} {thing}"
    if rng.random() < 0.7:
        line += f" {places[(verb + int(rng.integers(2))) % len(places)]}"
    return line + ("." if rng.random() < 0.8 else ",")


def recipes(count: int, seed: int, window: int = 32, *, of_garden: bool = False) -> Split:
    """Return windows of a text of recipes, and the signs that follow; the end validates.

    The text may be of work in a garden instead.
    """
    rng = np.random.default_rng(seed)
    words = GARDEN if of_garden else FOOD
    text = ""
    while len(text) < count * 12 + window + 1:
        text += _line(rng, words) + ("\n" if rng.random() < 0.3 else " ")
    signs = torch.tensor([SIGNS.index(sign) for sign in text])
    cut = int(len(signs) * 0.85)

    def windows(part: torch.Tensor, apart: int) -> tuple[torch.Tensor, torch.Tensor]:
        starts = torch.arange(0, len(part) - window - 1, apart)[:, None] + torch.arange(window)
        return part[starts], part[starts + 1]

    return Split(*windows(signs[:cut], 12), *windows(signs[cut:], window))


def reviews(count: int, seed: int, longest: int = 20) -> Split:
    """Return reviews of 8 to `longest` words, filled up with word 0, and whether they praise.

    Words from 2 on praise or blame; word 1 turns the word behind it.
    """
    rng = np.random.default_rng(seed)
    x, y = np.zeros((count, longest), np.int64), rng.integers(0, 2, count)
    for row, praises in enumerate(y):
        size = int(rng.integers(8, longest + 1))
        is_good = rng.random(size) < (0.75 if praises else 0.25)
        turned = np.zeros(size, bool)
        turned[1:] = rng.random(size - 1) < 0.12
        half = (REVIEW_WORDS - 2) // 2
        words = 2 + rng.integers(0, half, size) + half * (is_good ^ turned)
        words[:-1][turned[1:]] = 1
        x[row, :size] = words
    return parted(x, y, torch.int64)


def backwards(count: int, seed: int, length: int = 6) -> Split:
    """Return words, a sign and what was said so far, and what to say next: the word reversed.

    Places before the answer have the target -100.
    """
    words = np.random.default_rng(seed).integers(1, 13, (count, length))
    line = np.concatenate([words, np.zeros((count, 1), int), words[:, ::-1]], 1)
    targets = line[:, 1:].copy()
    targets[:, :length] = -100
    return parted(line[:, :-1], targets, torch.int64)
