"""Generated tables: minerals and kilns, recipes, and a graph of villages; plain layers."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split

KINDS = 5
WORDS = 60


def halves(x: Any, y: Any, share: float = 0.75) -> Split:
    """Return the first rows to train with and the others to validate with, as tensors."""
    x, y = torch.as_tensor(np.asarray(x)), torch.as_tensor(np.asarray(y))
    x = x.float() if x.is_floating_point() else x
    y = y.float() if y.is_floating_point() else y.long()
    cut = int(share * len(x))
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


@functools.cache
def minerals(count: int = 1600, seed: int = 901, rare: float = 1.0) -> Split:
    """Return twelve measurements of a mineral, and its kind; the last kind may be rare."""
    rng = np.random.default_rng(seed)
    chance = np.array([1.0] * (KINDS - 1) + [rare])
    kind = rng.choice(KINDS, count, p=chance / chance.sum())
    centre = rng.normal(0, 1.2, (KINDS, 3, 12))
    x = centre[kind, rng.integers(3, size=count)] + rng.normal(size=(count, 12))
    return halves((x - x.mean(0)) / x.std(0), kind)


@functools.cache
def kilns(count: int = 1500, noise: float = 0.3, seed: int = 902) -> Split:
    """Return ten settings of a kiln and how hard its pots are, about 0 with a deviation of 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.7, 1.7, (count, 10))
    hard = np.sin(1.5 * x[:, 0]) + x[:, 1] * x[:, 2] - 0.7 * np.abs(x[:, 3]) + 0.8 * x[:, 4]
    hard += np.where(x[:, 5] > 0, x[:, 6], -0.5) + noise * rng.normal(size=count)
    return halves(x, ((hard - hard.mean()) / hard.std())[:, None])


@functools.cache
def recipes(count: int = 1500, length: int = 10, seed: int = 903) -> Split:
    """Return the ingredients of a recipe, of sixty most of which are rare, and its cuisine."""
    rng = np.random.default_rng(seed)
    often = 1 / np.arange(1, WORDS + 1)
    liked = often * rng.gamma(1.5, 1.0, (4, WORDS))
    cuisine = rng.integers(4, size=count)
    x = [rng.choice(WORDS, length, p=liked[each] / liked[each].sum()) for each in cuisine]
    return halves(np.array(x), cuisine)


@functools.cache
def villages(count: int = 360, seed: int = 904) -> tuple[Any, Any, Split]:
    """Return links of villages, what is known of each, and numbers and regions of villages."""
    rng = np.random.default_rng(seed)
    region = rng.integers(4, size=count)
    linked = rng.random((count, count)) < np.where(region[:, None] == region, 0.06, 0.006)
    linked = (linked | linked.T) & ~np.eye(count, dtype=bool)
    links = torch.tensor(linked, dtype=torch.float32)
    facts = rng.normal(0, 0.8, (4, 9))[region] + rng.normal(size=(count, 9))
    return links, torch.tensor(facts, dtype=torch.float32), halves(np.arange(count), region, 0.7)


def plain(
    *sizes: int, between: Callable[[], Any] = nn.ReLU, norm: Any = None, drop: float = 0.0
) -> Any:
    """Return linear layers of these sizes, and between them a norm, an activation and dropout."""
    found: list[Any] = []
    for at, (ins, outs) in enumerate(itertools.pairwise(sizes)):
        found.append(nn.Linear(ins, outs))
        if at < len(sizes) - 2:
            found += [norm(outs)] if norm else []
            found += [between()] + ([nn.Dropout(drop)] if drop else [])
    return nn.Sequential(*found)


class Bag(nn.Module):
    """The mean of embedded ingredients, and layers behind it."""

    def __init__(self, width: int = 24, *, norm: bool = False, drop: float = 0.0) -> None:
        super().__init__()
        self.embedded = nn.Embedding(WORDS, width)
        self.norm = nn.LayerNorm(width) if norm else nn.Identity()
        self.body = plain(width, 32, 4, drop=drop)

    def forward(self, x: Any) -> Any:
        return self.body(self.norm(self.embedded(x).mean(1)))


class Regions(nn.Module):
    """Two layers, each of which joins a village with the mean of its neighbours."""

    def __init__(self, *, own: bool = True, norm: bool = False, drop: float = 0.0) -> None:
        super().__init__()
        links, self.facts, _ = villages()
        with_self = links if own else links + torch.eye(len(links))
        self.shares = with_self / with_self.sum(1, keepdim=True).clamp(min=1)
        self.own = own
        times = 2 if own else 1
        self.first, self.act = nn.Linear(9 * times, 24), nn.ReLU()
        self.norm = nn.LayerNorm(24) if norm else nn.Identity()
        self.drop, self.second = nn.Dropout(drop), nn.Linear(24 * times, 4)

    def joined(self, h: Any) -> Any:
        """Return what neighbours say, beside what a village says itself."""
        near = self.shares @ h
        return torch.cat([h, near], 1) if self.own else near

    def forward(self, x: Any) -> Any:
        h = self.drop(self.act(self.norm(self.first(self.joined(self.facts)))))
        return self.second(self.joined(h))[x]
