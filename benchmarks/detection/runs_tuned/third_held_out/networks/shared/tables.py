"""Generated tables: orders, soils, loans and hires of bicycles; and their networks."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split

SOILS = 4


def parted(x: Any, y: Any, share: float = 0.75) -> Split:
    """Return the first rows to train with and the others to validate with, as tensors."""
    x, y = (torch.as_tensor(np.asarray(each)) for each in (x, y))
    x, y = (each.float() if each.is_floating_point() else each.long() for each in (x, y))
    cut = int(share * len(x))
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


@functools.cache
def orders(count: int = 1400, noise: float = 0.35, seed: int = 301) -> Split:
    """Return eleven facts of an order and how late it comes, about 0 with a deviation of 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 11))
    x[:, 1] = rng.exponential(1.0, count) - 1
    x[:, 7] = rng.integers(0, 2, count) - 0.5
    late = 0.8 * np.tanh(x[:, 0] + x[:, 1]) + 0.6 * x[:, 7] * x[:, 2] - 0.5 * np.abs(x[:, 3])
    late += 0.4 * np.maximum(x[:, 4], x[:, 5]) + noise * rng.normal(size=count)
    late = (late - late.mean()) / late.std()
    return parted(x, late[:, None])


@functools.cache
def soils(count: int = 1500, spread: float = 1.3, seed: int = 302, crops: int = SOILS) -> Split:
    """Return nine measurements of a soil and which of some crops it suits."""
    rng = np.random.default_rng(seed)
    crop = rng.integers(crops, size=count)
    centre = rng.normal(0, spread, (crops, 2, 9))
    x = centre[crop, rng.integers(2, size=count)] + rng.normal(size=(count, 9))
    return parted((x - x.mean(0)) / x.std(0), crop)


@functools.cache
def loans(count: int = 1800, seed: int = 303) -> Split:
    """Return the branch, the trade and six numbers of a loan; one in five is not paid back."""
    rng = np.random.default_rng(seed)
    branch, trade = rng.integers(0, 30, count), rng.zipf(1.8, count) % 12
    x = rng.normal(size=(count, 6))
    risk = x[:, 0] - 0.8 * x[:, 1] + 0.6 * x[:, 2] * x[:, 3] + rng.normal(0, 0.5, 30)[branch]
    risk += rng.normal(0, 0.8, 12)[trade] + 0.6 * rng.normal(size=count)
    unpaid = (risk > np.quantile(risk, 0.8)).astype(np.float32)
    return parted(np.column_stack([branch, trade, x]), unpaid[:, None])


@functools.cache
def hires(count: int = 1400, seed: int = 304) -> Split:
    """Return eight facts of an hour, and how many bicycles were hired in it."""
    rng = np.random.default_rng(seed)
    hour, warm = rng.uniform(0, 2 * np.pi, count), rng.normal(size=count)
    more = rng.normal(size=(count, 5))
    rate = 0.9 + 0.7 * np.sin(hour) + 0.3 * warm - 0.2 * warm**2 + 0.2 * more[:, 0]
    hired = rng.poisson(np.exp(rate) * rng.gamma(4, 0.25, count)).astype(np.float32)
    x = np.column_stack([np.sin(hour), np.cos(hour), warm, more])
    return parted(x, hired[:, None])


def layers(
    *sizes: int, between: Callable[[], Any] = nn.ReLU, norm: Any = None, drop: float = 0.0
) -> Any:
    """Return linear layers of these sizes, and what is between them."""
    found: list[Any] = []
    for ins, outs in itertools.pairwise(sizes):
        found += [nn.Linear(ins, outs)]
        found += [norm(outs)] if norm else []
        found += [between()]
        found += [nn.Dropout(drop)] if drop else []
    rest = 1 + bool(norm) + bool(drop)
    return nn.Sequential(*found[:-rest])


class Lender(nn.Module):
    """Embeds branch and trade, and joins them with the numbers of a loan."""

    def __init__(self, width: int = 32, outs: int = 1, drop: float = 0.1) -> None:
        super().__init__()
        self.branch, self.trade = nn.Embedding(30, 6), nn.Embedding(12, 4)
        self.body = layers(16, width, width, outs, between=nn.SiLU, drop=drop)

    def forward(self, x: Any) -> Any:
        branch, trade = self.branch(x[:, 0].long()), self.trade(x[:, 1].long())
        return self.body(torch.cat([branch, trade, x[:, 2:]], 1))


class Tree(nn.Module):
    """A soft tree of four levels: each inner node is a sigmoid, each leaf has scores."""

    def __init__(self, ins: int = 9, outs: int = SOILS, depth: int = 4) -> None:
        super().__init__()
        self.inner = nn.Linear(ins, 2**depth - 1)
        self.gate = nn.Sigmoid()
        self.leaves = nn.Parameter(torch.randn(2**depth, outs) / 4)
        self.depth = depth

    def forward(self, x: Any) -> Any:
        right = self.gate(self.inner(x))
        reached, first = torch.ones(len(x), 1), 0
        for level in range(self.depth):
            here = right[:, first : first + 2**level]
            reached = torch.stack([reached * (1 - here), reached * here], 2).flatten(1)
            first += 2**level
        return reached @ self.leaves


class Crossed(nn.Module):
    """A factorisation machine: a linear part, and products of factors of all features."""

    def __init__(self, ins: int = 48, factors: int = 6) -> None:
        super().__init__()
        self.linear = nn.Linear(ins, 1)
        self.factors = nn.Parameter(torch.randn(ins, factors) / 10)

    def forward(self, x: Any) -> Any:
        places = [
            nn.functional.one_hot(x[:, 0].long(), 30),
            nn.functional.one_hot(x[:, 1].long(), 12),
        ]
        x = torch.cat([*places, x[:, 2:]], 1)
        pairs = (x @ self.factors) ** 2 - (x**2) @ self.factors**2
        return self.linear(x) + pairs.sum(1, keepdim=True) / 2
