"""Generated tables: loaves, orchards, alloys, dogs, scents and reliefs; plain layers."""

import functools
import itertools
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split

LOAVES = 5
BREEDS, COATS, TOWNS = 12, 6, 8
METALS = 8
GASES = 6
SENSORS = 40


def parted(x: Any, y: Any, share: float = 0.72) -> Split:
    """Return tensors of a share of the rows to train with, and of the others to validate with."""
    tensors = []
    for values in (x, y):
        tensor = torch.as_tensor(np.asarray(values))
        tensors.append(tensor.float() if tensor.is_floating_point() else tensor.long())
    count = int(share * len(tensors[0]))
    rows, targets = tensors
    return Split(rows[:count], targets[:count], rows[count:], targets[count:])


def even(x: Any) -> Any:
    """Return columns with a mean of 0 and a deviation of 1."""
    return (x - x.mean(0)) / x.std(0)


@functools.cache
def loaves(count: int = 1500, noise: float = 1.0, seed: int = 2001) -> Split:
    """Return twelve measurements of a loaf ``(n, 12)``, and its recipe."""
    rng = np.random.default_rng(seed)
    recipe = rng.integers(LOAVES, size=count)
    plan = np.random.default_rng(11).normal(size=(LOAVES, 4))
    mixing, rising = np.random.default_rng(12).normal(size=(2, 4, 12))
    dough = plan[recipe] + 0.45 * rng.normal(size=(count, 4))
    x = dough @ mixing + np.sin(1.5 * dough) @ rising + noise * rng.normal(size=(count, 12))
    return parted(even(x), recipe)


@functools.cache
def orchards(count: int = 1500, noise: float = 0.35, seed: int = 2002) -> Split:
    """Return nine facts of an orchard ``(n, 9)``, and its crop ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    age, rain, frost, bees, soil, slope = rng.normal(size=(6, count))
    rest = rng.normal(size=(3, count))
    crop = 1.2 * np.exp(-((age - 0.3) ** 2)) + 0.7 * np.minimum(rain, 0.8) + 0.5 * bees * (soil > 0)
    crop += 0.6 * soil - 0.5 * np.maximum(frost, 0) + 0.25 * slope * rain
    crop += noise * rng.normal(size=count)
    x = np.stack([age, rain, frost, bees, soil, slope, *rest], 1)
    return parted(x, even(crop[:, None]))


@functools.cache
def alloys(count: int = 1600, noise: float = 0.3, seed: int = 2003) -> Split:
    """Return shares of metals, standardised, ``(n, 8)``, and how hard they are ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(METALS, 1.2), count)
    pairs = np.random.default_rng(13).normal(size=(METALS, METALS))
    single = np.random.default_rng(14).normal(size=METALS)
    hardness = shares @ single + 2.5 * ((shares @ pairs) * shares).sum(1)
    hardness = even(hardness) + noise * rng.normal(size=count)
    return parted(even(shares), even(hardness[:, None]))


@functools.cache
def dogs(count: int = 1700, seed: int = 2004) -> Split:
    """Return breed, coat, town and four numbers of a dog ``(n, 7)``; is it adopted ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    breed, coat, town = (rng.integers(many, size=count) for many in (BREEDS, COATS, TOWNS))
    numbers = rng.normal(size=(count, 4))
    liked = np.linspace(-1.3, 1.3, BREEDS)[breed] + np.linspace(0.6, -0.6, COATS)[coat]
    score = 1.3 * liked - 0.9 * numbers[:, 0] + 0.8 * numbers[:, 1] * np.cos(town)
    adopted = score + 0.5 * rng.logistic(size=count) > 0
    x = np.concatenate([np.stack([breed, coat, town], 1), numbers], 1)
    return parted(x, adopted[:, None].astype(float))


@functools.cache
def scents(count: int = 1400, noise: float = 0.4, seed: int = 2005) -> Split:
    """Return answers of forty sensors to a scent ``(n, 40)``, and which of six gases leads."""
    rng = np.random.default_rng(seed)
    doses = rng.gamma(0.7, 1.0, (count, GASES))
    touch = np.abs(np.random.default_rng(15).normal(size=(GASES, SENSORS)))
    answers = np.log1p(doses @ touch) + 0.1 * noise * rng.normal(size=(count, SENSORS))
    return parted(even(answers), doses.argmax(1))


@functools.cache
def relief(count: int = 1800, noise: float = 0.1, seed: int = 2006) -> Split:
    """Return places in a square ``(n, 2)``, and how high they lie ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    place = rng.uniform(-1, 1, (count, 2))
    x, y = place.T
    height = np.sin(3 * x) * np.cos(2 * y) + 0.8 * np.exp(-4 * ((x - 0.3) ** 2 + (y + 0.4) ** 2))
    height += noise * rng.normal(size=count)
    return parted(even(place), even(height[:, None]))


def plain(*sizes: int, act: Any = nn.ReLU, norm: Any = None, drop: float = 0.0) -> Any:
    """Return linear layers with norms, activations and dropout between them."""
    stack: list[Any] = []
    for ins, outs in itertools.pairwise(sizes[:-1]):
        stack += [nn.Linear(ins, outs)] + ([norm(outs)] if norm else []) + [act()]
        stack += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*stack, nn.Linear(*sizes[-2:]))


class Kennel(nn.Module):
    """Embeddings of breed, coat and town beside the numbers, and layers on all of them."""

    def __init__(self, body: Any = None, size: int = 4) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(many, size) for many in (BREEDS, COATS, TOWNS))
        self.body = body or plain(3 * size + 4, 40, 24, 1)

    def forward(self, x: Any) -> Any:
        parts = [table(x[:, at].long()) for at, table in enumerate(self.tables)]
        return self.body(torch.cat([*parts, x[:, 3:]], 1))


class Attended(nn.Module):
    """Each column is a token; layers of attention, and a linear layer on their mean."""

    def __init__(
        self, columns: int = METALS, outs: int = 1, width: int = 24, depth: int = 2, **more: Any
    ) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(columns, width))
        self.shift = nn.Parameter(0.5 * torch.randn(columns, width))
        options = {"dropout": 0.0, "activation": "gelu", "norm_first": True} | more
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True, **options)
            for _ in range(depth)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        x = x[..., None] * self.scale + self.shift
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))
