"""Generated tables and ratings, and the networks that learn them."""

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split


def split(x: Any, y: Any, share: float = 0.75) -> Split:
    """Return the first rows to train with, and the others to validate with."""
    x, y = torch.as_tensor(np.asarray(x)), torch.as_tensor(np.asarray(y))
    x = x.float() if x.is_floating_point() else x
    y = y.float() if y.is_floating_point() else y
    cut = int(share * len(x))
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


def unit(values: Any) -> Any:
    """Return values of mean 0 and deviation 1."""
    return (values - values.mean(0)) / values.std(0)


@functools.cache
def tickets(count: int = 1400, classes: int = 5, apart: float = 1.1, seed: int = 61) -> Split:
    """Return fourteen traits of tickets and the desk, one of five, that each belongs to."""
    rng = np.random.default_rng(seed)
    desk = rng.integers(classes, size=count)
    centre = rng.normal(0, apart, (classes, 14))
    traits = centre[desk] + rng.normal(size=(count, 14))
    traits[:, 3] *= 1 + 0.3 * np.abs(traits[:, 5])
    return split(unit(traits), desk)


@functools.cache
def rents(count: int = 1200, noise: float = 0.25, seed: int = 62) -> Split:
    """Return nine traits of flats and their standardised rents."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, 9))
    rent = 0.8 * x[:, 0] + 0.5 * np.maximum(x[:, 1], 0) * x[:, 2] - 0.6 * np.sin(2 * x[:, 3])
    rent += 0.4 * np.abs(x[:, 4]) + noise * rng.normal(size=count)
    return split(x, unit(rent)[:, None])


@functools.cache
def ratings(users: int = 60, films: int = 50, count: int = 2400, seed: int = 63) -> Split:
    """Return pairs of a user and a film, and standardised ratings."""
    rng = np.random.default_rng(seed)
    taste, style = rng.normal(size=(users, 3)), rng.normal(size=(films, 3))
    user, film = rng.integers(users, size=count), rng.integers(films, size=count)
    rating = (taste[user] * style[film]).sum(1) + 0.4 * rng.normal(size=count)
    return split(np.stack([user, film], 1), unit(rating)[:, None])


class Factors(nn.Module):
    """The product of a user's and a film's factors, and an offset of each."""

    def __init__(self, users: int = 60, films: int = 50, width: int = 6) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(users, width), nn.Embedding(films, width)
        self.user_offset, self.film_offset = nn.Embedding(users, 1), nn.Embedding(films, 1)
        for part in (self.users, self.films):
            nn.init.normal_(part.weight, std=0.4)
        for part in (self.user_offset, self.film_offset):
            nn.init.zeros_(part.weight)

    def forward(self, pairs: Any) -> Any:
        user, film = pairs.unbind(1)
        product = (self.users(user) * self.films(film)).sum(1, keepdim=True)
        return product + self.user_offset(user) + self.film_offset(film)


def dense(
    *widths: int,
    act: Callable[[], Any] = nn.Mish,
    norm: Callable[[int], Any] | None = None,
    drop: float = 0.0,
) -> Any:
    """Return linear layers with what belongs between them."""
    layers: list[Any] = []
    for before, after in itertools.pairwise(widths[:-1]):
        layers.append(nn.Linear(before, after))
        layers += [norm(after)] if norm else []
        layers.append(act())
        layers += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*layers, nn.Linear(*widths[-2:]))


def taught(
    make: Callable[[], Any], data: Split, loss: Any, steps: int = 150, rate: float = 4e-3
) -> Any:
    """Return a model that was trained without a hook."""
    torch.set_num_threads(1)
    torch.manual_seed(71)
    model = make()
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for step in range(steps):
        rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
        optimizer.zero_grad()
        loss(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    return model
