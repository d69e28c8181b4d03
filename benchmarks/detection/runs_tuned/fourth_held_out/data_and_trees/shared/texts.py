"""Texts: recipes of kitchens with numbers for words, and networks that read them."""

import functools
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import halves

WORDS = 120  # 0 is padding; words from 60 on are common to all kitchens
COMMON = 60


@functools.cache
def recipes(
    count: int,
    seed: int,
    *,
    kitchens: int = 5,
    told: float = 0.3,
    longest: int = 18,
    shortest: int = 10,
    tested: int = 250,
) -> Split:
    """Return texts padded to the longest, and their kitchens; `told` is the share of its words."""
    generator = torch.Generator().manual_seed(seed)
    kitchen = torch.randint(0, kitchens, (count,), generator=generator)
    each = (COMMON - 1) // kitchens
    own = (
        1 + kitchen[:, None] * each + torch.randint(0, each, (count, longest), generator=generator)
    )
    rank = torch.rand(count, longest, generator=generator) ** 2
    common = COMMON + (rank * (WORDS - COMMON)).long()
    words = torch.where(torch.rand(count, longest, generator=generator) < told, own, common)
    length = torch.randint(shortest, longest + 1, (count, 1), generator=generator)
    words = torch.where(torch.arange(longest) < length, words, 0)
    return halves(words, kitchen, tested)


@functools.cache
def spiced(count: int, seed: int, tested: int = 250) -> Split:
    """Return texts, and how hot the dish is: a mean of what its words say, with noise."""
    data = recipes(count, seed, told=0.6, tested=tested)
    generator = torch.Generator().manual_seed(seed)
    heat = torch.randn(WORDS, generator=generator)
    heat[0] = 0

    def hot(x: Any) -> Any:
        total = heat[x].sum(1) / (x > 0).sum(1).sqrt()
        return (total + 0.3 * torch.randn(len(x), generator=generator))[:, None]

    return Split(data.x, hot(data.x), data.test_x, hot(data.test_x))


class Phrases(nn.Module):
    """Convolutions over three words, and the most that any place says."""

    def __init__(self, out: int, width: int = 24, drop: float = 0.3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        self.wide = nn.Conv1d(width, 2 * width, 3, padding=1)
        self.drop, self.head = nn.Dropout(drop), nn.Linear(2 * width, out)

    def forward(self, x: Any) -> Any:
        seen = nn.functional.relu(self.wide(self.embedding(x).transpose(1, 2)))
        return self.head(self.drop(seen.amax(2)))


class Bag(nn.Module):
    """The mean vector of the words, and linear layers."""

    def __init__(self, out: int, width: int = 20, words: int = WORDS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.head = nn.Linear(width, out)

    def forward(self, x: Any) -> Any:
        there = (x > 0).unsqueeze(2)
        return self.head((self.embedding(x) * there).sum(1) / there.sum(1).clamp(min=1))


class Cook(nn.Module):
    """A recurrent layer in both directions, a norm, and attention to its states."""

    def __init__(self, out: int, width: int = 16, drop: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        self.states = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.norm, self.drop = nn.LayerNorm(2 * width), nn.Dropout(drop)
        self.weigh, self.head = nn.Linear(2 * width, 1), nn.Linear(2 * width, out)

    def forward(self, x: Any) -> Any:
        states = self.norm(self.states(self.drop(self.embedding(x)))[0])
        scores = self.weigh(states).masked_fill((x == 0).unsqueeze(2), -1e4)
        return self.head(self.drop((scores.softmax(1) * states).sum(1)))
