"""Generated tables and phrases: cheeses, bridges, ferries, and errands to run; plain layers."""

import functools
import itertools
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split

CHEESES = 4
PORTS, BOATS, DAYS = 9, 5, 7
VOCABULARY = 14


def cut(x: Any, y: Any, share: float = 0.75) -> Split:
    """Return tensors of a share of the rows to train with, and of the others to validate with."""
    x, y = torch.as_tensor(np.asarray(x)), torch.as_tensor(np.asarray(y))
    x = x.float() if x.is_floating_point() else x.long()
    y = y.float() if y.is_floating_point() else y.long()
    count = int(share * len(x))
    return Split(x[:count], y[:count], x[count:], y[count:])


def levelled(x: Any) -> Any:
    """Return columns with a mean of 0 and a deviation of 1."""
    return (x - x.mean(0)) / x.std(0)


@functools.cache
def cheeses(count: int = 1600, noise: float = 1.5, seed: int = 1001) -> Split:
    """Return ten measurements of a cheese ``(n, 10)``, and how it was made."""
    rng = np.random.default_rng(seed)
    made = rng.integers(CHEESES, size=count)
    age, fat = rng.gamma(3.0, 0.5, (count, 1)), rng.normal(size=(count, 1))
    style = np.random.default_rng(7).normal(size=(3, CHEESES, 10))
    x = style[0][made] + age * style[1][made] + np.tanh(fat * age) * style[2][made]
    return cut(levelled(x + noise * rng.normal(size=x.shape)), made)


@functools.cache
def bridges(count: int = 1600, noise: float = 0.2, seed: int = 1002) -> Split:
    """Return eight facts of a bridge ``(n, 8)``, and how far it bends ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    span, height, width, load, steel = np.exp(0.4 * rng.normal(size=(5, count)))
    age, traffic, warmth = rng.uniform(-1, 1, (3, count))
    bend = 2 * np.log(span) - 1.5 * np.log(height * width) + np.log(load / steel)
    bend += 0.6 * age * traffic + 0.4 * np.sin(3 * warmth) + noise * rng.normal(size=count)
    x = np.stack([span, height, width, load, steel, age, traffic, warmth], 1)
    return cut(levelled(x), levelled(bend[:, None]))


@functools.cache
def ferries(count: int = 1800, seed: int = 1003) -> Split:
    """Return port, boat, day and five readings ``(n, 8)``; whether it is late ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    port, boat, day = (rng.integers(size, size=count) for size in (PORTS, BOATS, DAYS))
    readings = rng.normal(size=(count, 5))
    wind, swell, guests = readings[:, 0], readings[:, 1], readings[:, 2]
    open_sea = np.linspace(-1.2, 1.5, PORTS)[port]
    slow = np.array([0.9, -0.7, 0.2, -0.2, 1.2])[boat]
    score = 1.5 * wind * (open_sea > 0) + 1.2 * swell * slow + open_sea + 0.8 * (day > 4) * guests
    late = score + 0.6 * rng.logistic(size=count) > 1.1
    x = np.concatenate([np.stack([port, boat, day], 1), readings], 1)
    return cut(x, late[:, None].astype(float))


@functools.cache
def errands(count: int = 1400, phrases: int = 5, seed: int = 1004) -> Split:
    """Return phrases as words ``(n, 3 * phrases)``, and where they lead to ``(n, 2)``.

    A phrase is a direction (1 to 4), a number (5 to 9) and a word that says nothing (10 to 13).
    """
    rng = np.random.default_rng(seed)
    way, far = rng.integers(4, size=(2, count, phrases))
    ways = np.array([[0, 1], [1, 0], [0, -1], [-1, 0]])
    place = (ways[way] * (far[..., None] + 1)).sum(1)
    words = np.stack([way + 1, far + 5, rng.integers(10, 14, way.shape)], 2)
    return cut(words.reshape(count, -1), place / place.std())


def quarters(data: Split) -> Split:
    """Return errands with the quarter that they lead to, of four."""
    return data.relabelled(lambda y: 2 * (y[:, 0] > 0).long() + (y[:, 1] > 0).long())


def layers(
    *sizes: int, act: Any = nn.ReLU, norm: Any = None, drop: float = 0.0, gain: float = 0.0
) -> Any:
    """Return linear layers with activations between them; with a gain, by Kaiming's deviation."""
    stack: list[Any] = []
    for at, (ins, outs) in enumerate(itertools.pairwise(sizes), 2):
        linear = nn.Linear(ins, outs)
        if gain:
            nn.init.normal_(linear.weight, 0, gain * ins**-0.5)
            nn.init.zeros_(linear.bias)
        stack.append(linear)
        if at < len(sizes):
            stack += [norm(outs)] if norm else []
            stack.append(act())
            stack += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*stack)


class Boarding(nn.Module):
    """Embeddings of port, boat and day beside the readings, and layers on all of them."""

    def __init__(self, body: Any = None, size: int = 4) -> None:
        super().__init__()
        self.embedded = nn.ModuleList(nn.Embedding(many, size) for many in (PORTS, BOATS, DAYS))
        self.body = body or layers(3 * size + 5, 48, 32, 1)

    def joined(self, x: Any) -> Any:
        """Return what is known of each trip in one row."""
        parts = [one(x[:, at].long()) for at, one in enumerate(self.embedded)]
        return torch.cat([*parts, x[:, 3:]], 1)

    def forward(self, x: Any) -> Any:
        return self.body(self.joined(x))


class Errand(nn.Module):
    """Embeds words, reads them by a recurrent layer, and looks at its last output."""

    def __init__(self, cell: Any = nn.LSTM, outs: int = 2, width: int = 32, **more: Any) -> None:
        super().__init__()
        self.embedded = nn.Embedding(VOCABULARY, 16)
        self.cell = cell(16, width, batch_first=True, **more)
        self.head = nn.Linear(width * (2 if more.get("bidirectional") else 1), outs)

    def forward(self, words: Any) -> Any:
        return self.head(self.cell(self.embedded(words))[0][:, -1])
