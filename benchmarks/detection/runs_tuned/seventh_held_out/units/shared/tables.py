"""Generated tables: houses, customers, wafers, rentals, ratings, seeds; and tumours."""

import functools
import itertools
from typing import Any

import numpy as np
import torch
from sklearn import datasets as bundled
from sklearn.preprocessing import StandardScaler
from torch import nn
from training.learnt_data import Split

SEEDS, WAFERS = 6, 4
SEASONS, WEEKDAYS, SKIES = 4, 7, 3
USERS, FILMS = 120, 60


def tensor(values: Any) -> Any:
    """Return numbers as floats, and whole numbers as long ones."""
    found = torch.as_tensor(np.asarray(values))
    return found.float() if found.is_floating_point() else found.long()


def split(x: Any, y: Any, *, scaled: bool = True, share: float = 0.75, seed: int = 0) -> Split:
    """Return shuffled rows, three quarters of them to train with; scaled as those are."""
    order = np.random.default_rng(seed).permutation(len(x))
    x, y = np.asarray(x)[order], np.asarray(y)[order]
    cut = int(share * len(x))
    known, unknown = x[:cut], x[cut:]
    if scaled:
        scaler = StandardScaler().fit(known)
        known, unknown = scaler.transform(known), scaler.transform(unknown)
    return Split(tensor(known), tensor(y[:cut]), tensor(unknown), tensor(y[cut:]))


def scaled_targets(data: Split) -> Split:
    """Return data whose targets have a mean of 0 and a deviation of 1 where it is trained."""
    mean, deviation = data.y.mean(0), data.y.std(0)
    return data.relabelled(lambda y: (y - mean) / deviation)


@functools.cache
def house_rows(count: int = 1600, seed: int = 7001) -> tuple[Any, Any]:
    """Return eight facts of a house ``(n, 8)``, and its price in thousands ``(n, 1)``."""
    rng = np.random.default_rng(seed)
    area, age = rng.gamma(9, 12, count), rng.uniform(0, 80, count)
    rooms = np.clip(np.round(area / 28 + rng.normal(0, 0.8, count)), 1, 9)
    centre, school = rng.exponential(6, count), rng.uniform(1, 10, count)
    floor, garden = rng.integers(0, 6, count), rng.exponential(40, count)
    noise = rng.normal(50, 8, count)
    price = 1.9 * area + 9 * school - 14 * np.log1p(centre) - 0.6 * age + 0.006 * (age - 45) ** 2
    price += 0.2 * np.minimum(garden, 120) + 4 * rooms - 0.5 * noise + 3 * (floor > 2)
    price += rng.normal(0, 14, count)
    facts = np.stack([area, age, rooms, centre, school, floor, garden, noise], 1)
    return facts, np.maximum(price, 20)[:, None]


def houses(count: int = 1600, seed: int = 7001) -> Split:
    """Return scaled facts of houses, and their scaled prices."""
    return scaled_targets(split(*house_rows(count, seed), seed=seed))


@functools.cache
def customers(count: int = 2000, seed: int = 7002) -> Split:
    """Return eleven facts of a customer ``(n, 11)``; has he left ``(n, 1)``?"""
    rng = np.random.default_rng(seed)
    months, bill, calls = (
        rng.gamma(2, 14, count),
        rng.normal(60, 18, count),
        rng.poisson(1.6, count),
    )
    usage, delay = rng.gamma(3, 9, count), rng.exponential(3, count)
    rest = rng.normal(size=(count, 6))
    score = 1.1 * (calls - 1.6) - 0.05 * (months - 28) + 0.045 * (bill - 60) + 0.25 * (delay - 3)
    score += 0.05 * (25 - usage) + 0.9 * rest[:, 0] * rest[:, 1] + 0.7 * rest[:, 2]
    left = score + 0.7 * rng.logistic(size=count) > 0.3
    facts = np.column_stack([months, bill, calls, usage, delay, rest])
    return split(facts, left[:, None].astype(float), seed=seed)


@functools.cache
def wafers(count: int = 1800, seed: int = 7003) -> Split:
    """Return twenty measurements of a wafer ``(n, 20)``, and which of four defects it has."""
    x, y = bundled.make_classification(
        count,
        20,
        n_informative=10,
        n_redundant=4,
        n_classes=WAFERS,
        class_sep=1.6,
        random_state=seed,
    )
    return split(x, y, seed=seed)


@functools.cache
def seeds(count: int = 1700, spread: float = 1.0, seed: int = 7004) -> Split:
    """Return sizes and colours of a seed ``(n, 10)``, and its species."""
    rng = np.random.default_rng(seed)
    species = rng.integers(SEEDS, size=count)
    middle = np.random.default_rng(41).normal(0, 1.5, (SEEDS, 10))
    skew = np.random.default_rng(42).normal(0, 0.4, (SEEDS, 10, 10))
    drawn = rng.normal(size=(count, 10))
    x = middle[species] + spread * (drawn + np.einsum("nij,nj->ni", skew[species], drawn))
    return split(x * np.linspace(0.5, 30, 10), species, seed=seed)


@functools.cache
def rentals(count: int = 2000, seed: int = 7005) -> Split:
    """Return season, weekday, sky and four numbers ``(n, 7)``; bikes that are rented, scaled."""
    rng = np.random.default_rng(seed)
    season, weekday, sky = (rng.integers(many, size=count) for many in (SEASONS, WEEKDAYS, SKIES))
    hour, warmth, wind, damp = rng.normal(size=(4, count))
    rented = np.array([-0.6, 0.3, 0.9, 0.2])[season] + np.array([0.4, 0.0, -0.9])[sky]
    rented = rented + np.where(weekday < 5, np.cos(2 * hour), 0.7 * np.cos(hour - 0.5))
    rented += 0.6 * np.tanh(warmth) - 0.25 * wind - 0.2 * damp + 0.3 * rng.normal(size=count)
    facts = np.column_stack([season, weekday, sky, hour, warmth, wind, damp]).astype(float)
    return scaled_targets(split(facts, rented[:, None], scaled=False, seed=seed))


@functools.cache
def ratings(count: int = 5000, seed: int = 7006) -> Split:
    """Return user and film ``(n, 2)``, and a scaled rating ``(n,)``."""
    rng = np.random.default_rng(seed)
    user, film = rng.integers(USERS, size=count), rng.integers(FILMS, size=count)
    tastes, kinds = rng.normal(size=(USERS, 2)), rng.normal(size=(FILMS, 2))
    rated = 0.8 * rng.normal(size=FILMS)[film] + 0.5 * rng.normal(size=USERS)[user]
    rated = rated + 0.6 * (tastes[user] * kinds[film]).sum(1) + 0.4 * rng.normal(size=count)
    return scaled_targets(split(np.stack([user, film], 1), rated, scaled=False, seed=seed))


@functools.cache
def responses(count: int = 1800, noise: float = 0.8, seed: int = 7007) -> Split:
    """Return ten settings of a machine ``(n, 10)`` and its response, Friedman's, scaled."""
    x, y = bundled.make_friedman1(count, 10, noise=noise, random_state=seed)
    return scaled_targets(split(x, y[:, None], seed=seed))


@functools.cache
def tumours(*, scaled: bool = True) -> Split:
    """Return thirty measurements of a tumour ``(n, 30)``, and is it benign?"""
    x, y = bundled.load_breast_cancer(return_X_y=True)
    return split(x, y, scaled=scaled, seed=7008)


def dense(
    *sizes: int, act: Any = nn.ReLU, norm: Any = None, drop: float = 0.0, bias: bool = True
) -> Any:
    """Return linear layers with norms, activations and dropout between them."""
    parts: list[Any] = []
    for ins, outs in itertools.pairwise(sizes[:-1]):
        parts += [nn.Linear(ins, outs, bias=bias)] + ([norm(outs)] if norm else []) + [act()]
        parts += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*parts, nn.Linear(*sizes[-2:]))


def linear_layers(model: Any) -> list[Any]:
    """Return the linear layers and convolutions of a model."""
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d)
    return [part for part in model.modules() if isinstance(part, kinds)]


class Bikes(nn.Module):
    """Embeddings of season, weekday and sky beside four numbers, and dense layers."""

    def __init__(self, act: Any = nn.ReLU, drop: float = 0.1) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(
            nn.Embedding(many, size) for many, size in ((SEASONS, 2), (WEEKDAYS, 4), (SKIES, 2))
        )
        self.body = dense(12, 64, 32, 1, act=act, drop=drop)

    def forward(self, x: Any) -> Any:
        known = [table(x[:, at].long()) for at, table in enumerate(self.embeddings)]
        return self.body(torch.cat([*known, x[:, 3:]], 1))


class Taste(nn.Module):
    """A rating by factors and biases of users and films."""

    def __init__(self, factors: int = 8) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(USERS, factors), nn.Embedding(FILMS, factors)
        self.user_bias, self.film_bias = nn.Embedding(USERS, 1), nn.Embedding(FILMS, 1)
        for table in (self.users, self.films):
            nn.init.normal_(table.weight, 0, 0.1)
        for table in (self.user_bias, self.film_bias):
            nn.init.zeros_(table.weight)

    def forward(self, x: Any) -> Any:
        user, film = x.T
        liked = (self.users(user) * self.films(film)).sum(1)
        return liked + self.user_bias(user)[:, 0] + self.film_bias(film)[:, 0]


class FeatureTransformer(nn.Module):
    """Each feature is a token; a class token reads them by attention."""

    def __init__(self, features: int, outs: int, width: int = 24, layers: int = 2) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, width) * 0.3)
        self.bias = nn.Parameter(torch.randn(features, width) * 0.3)
        self.cls = nn.Parameter(torch.randn(1, 1, width) * 0.3)
        layer = nn.TransformerEncoderLayer(
            width, 4, 48, 0.1, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, outs))

    def forward(self, x: Any) -> Any:
        tokens = x[..., None] * self.weight + self.bias
        tokens = torch.cat([self.cls.expand(len(x), -1, -1), tokens], 1)
        return self.head(self.encoder(tokens)[:, 0])


class TabularResNet(nn.Module):
    """Residual blocks of a norm, a wide layer and a narrow one, as in papers on tables."""

    def __init__(self, ins: int, outs: int, width: int = 32, blocks: int = 3) -> None:
        super().__init__()
        self.stem = nn.Linear(ins, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm1d(width),
                *(nn.Linear(width, 2 * width), nn.ReLU(), nn.Dropout(0.15)),
                nn.Linear(2 * width, width),
            )
            for _ in range(blocks)
        )
        self.head = nn.Sequential(nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, outs))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)
