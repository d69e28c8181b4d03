"""Texts: mails of desks, clicks of visitors and letters of genes, and networks that read them."""

import functools
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import divided

WORDS = 150  # 0 is padding, 1 begins each mail
SHOPS = 12


@functools.cache
def mails(
    count: int,
    seed: int,
    *,
    desks: int = 5,
    sharp: float = 1.3,
    longest: int = 20,
    shortest: int = 12,
    tested: int = 300,
) -> Split:
    """Return mails padded to the longest, and their desks; words of a desk are `sharp`."""
    generator = torch.Generator().manual_seed(seed)
    desk = torch.randint(0, desks, (count,), generator=generator)
    common = torch.randn(WORDS - 2, generator=generator)
    own = sharp * torch.randn(desks, WORDS - 2, generator=generator)
    chances = (common + own).softmax(1)
    words = 2 + torch.multinomial(chances[desk], longest, replacement=True, generator=generator)
    words[:, 0] = 1
    length = torch.randint(shortest, longest + 1, (count, 1), generator=generator)
    return divided(torch.where(torch.arange(longest) < length, words, 0), desk, tested)


@functools.cache
def sessions(count: int, seed: int, *, length: int = 10, astray: float = 0.15) -> Any:
    """Return which shops visitors enter one after the other, ``(count, length + 1)``, from 1."""
    generator = torch.Generator().manual_seed(seed)
    follows = torch.stack([torch.randperm(SHOPS, generator=generator) for _ in range(2)])
    shop = torch.randint(0, SHOPS, (count,), generator=generator)
    visited = [shop]
    for _ in range(length):
        way = (torch.rand(count, generator=generator) < 0.25).long()
        lost = torch.rand(count, generator=generator) < astray
        anywhere = torch.randint(0, SHOPS, (count,), generator=generator)
        shop = torch.where(lost, anywhere, follows[way, shop])
        visited.append(shop)
    return torch.stack(visited, 1) + 1


def next_shops(count: int, seed: int, *, tested: int = 300, length: int = 10) -> Split:
    """Return visits and the shop that is next, from 0."""
    visits = sessions(count, seed, length=length)
    return divided(visits[:, :-1], visits[:, -1] - 1, tested)


@functools.cache
def genes(count: int, seed: int, *, length: int = 28, tested: int = 300, wrong: float = 0.1) -> Any:
    """Return letters of genes, 1 to 4, and which of four motifs they hold."""
    generator = torch.Generator().manual_seed(seed)
    motifs = torch.randint(1, 5, (4, 7), generator=generator)
    x = torch.randint(1, 5, (count, length), generator=generator)
    kind = torch.randint(0, 4, (count,), generator=generator)
    start = torch.randint(0, length - 7, (count,), generator=generator)
    x.scatter_(1, start[:, None] + torch.arange(7), motifs[kind])
    read = torch.randint(1, 5, (count, length), generator=generator)
    x = torch.where(torch.rand(count, length, generator=generator) < wrong, read, x)
    return divided(x, kind, tested)


class Desk(nn.Module):
    """Vectors of words, self-attention with a norm, dropout, and the mean of the words."""

    def __init__(self, out: int, width: int = 16, drop: float = 0.1, words: int = WORDS) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.before = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.after, self.drop = nn.LayerNorm(width), nn.Dropout(drop)
        self.wide, self.head = nn.Linear(width, 2 * width), nn.Linear(2 * width, out)

    def forward(self, x: Any) -> Any:
        present = (x > 0).unsqueeze(2)
        words = self.embedding(x)
        near = self.before(words)
        words = words + self.attention(near, near, near, key_padding_mask=x == 0)[0]
        words = nn.functional.gelu(self.wide(self.after(words)))
        mean = (words * present).sum(1) / present.sum(1).clamp(min=1)
        return self.head(self.drop(mean))


class Letters(nn.Module):
    """Gated convolutions over letters, and the largest of each."""

    def __init__(self, out: int, width: int = 24, drop: float = 0.2, words: int = 5) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 8)
        self.value, self.gate = nn.Conv1d(8, width, 7), nn.Conv1d(8, width, 7)
        self.drop, self.head = nn.Dropout(drop), nn.Linear(width, out)

    def forward(self, x: Any) -> Any:
        x = self.embedding(x).transpose(1, 2)
        return self.head(self.drop((self.value(x) * self.gate(x).sigmoid()).amax(2)))


class Visitor(nn.Module):
    """An LSTM over what was visited, and linear layers on its last state."""

    def __init__(self, out: int = SHOPS, width: int = 24, words: int = SHOPS + 1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 12, padding_idx=0)
        self.memory = nn.LSTM(12, width, batch_first=True)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, out)

    def forward(self, x: Any) -> Any:
        states, _ = self.memory(self.embedding(x))
        return self.head(self.norm(states[:, -1]))


class Mean(nn.Module):
    """The mean of all words, padding left out or not, and a hidden layer."""

    def __init__(
        self, out: int, width: int = 24, *, words: int = WORDS, padding_counts: bool = False
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.hidden, self.head = nn.Linear(width, width), nn.Linear(width, out)
        self.padding_counts = padding_counts

    def forward(self, x: Any) -> Any:
        count = x.shape[1] if self.padding_counts else (x > 0).sum(1, keepdim=True).clamp(min=1)
        return self.head(nn.functional.silu(self.hidden(self.embedding(x).sum(1) / count)))
