"""Tables: patients of kinds, prices of houses and turbines that fail, and networks for them."""

import functools
import itertools
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import divided


@functools.cache
def patients(
    count: int,
    seed: int,
    *,
    shares: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0),
    apart: float = 2.2,
    features: int = 12,
    tested: int = 300,
) -> Split:
    """Return what was measured of patients, and what they have, about in these shares."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.tensor(shares)
    kind = torch.multinomial(weights, count, replacement=True, generator=generator)
    middles = torch.randn(len(shares), features, generator=generator)
    middles = apart * middles / middles.norm(dim=1, keepdim=True)
    x = torch.randn(count, features, generator=generator) + middles[kind]
    bent = torch.cat([x[:, :4] + 0.3 * x[:, 4:8] ** 2 - 0.3, x[:, 4:]], 1)
    return divided((bent - bent.mean(0)) / bent.std(0), kind, tested)


@functools.cache
def houses(count: int, seed: int, *, noise: float = 0.3, tested: int = 300) -> Split:
    """Return facts of houses and the logarithm of their price, ``(count, 1)``, standardised."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 11, generator=generator)
    price = x[:, 0] + 0.6 * torch.tanh(2 * x[:, 1]) + 0.4 * x[:, 2] * x[:, 3]
    price = price - 0.4 * x[:, 4].abs() + 0.3 * (x[:, 5] > 0.3)
    price = price + noise * torch.randn(count, generator=generator)
    return divided(x, ((price - price.mean()) / price.std())[:, None], tested)


@functools.cache
def turbines(
    count: int, seed: int, *, share: float = 0.3, noise: float = 0.5, tested: int = 300
) -> Split:
    """Return sensors of turbines, and whether they failed within a month, ``(count, 1)``."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 15, generator=generator)
    heat = 1.1 * x[:, 0] + 0.8 * x[:, 1] - 0.7 * x[:, 2] + 0.6 * x[:, 3] * x[:, 4]
    heat = heat + noise * torch.randn(count, generator=generator)
    return divided(x, (heat > heat.quantile(1 - share)).float()[:, None], tested)


def matrices(data: Split) -> Any:
    """Return features and targets, the tested ones last, as arrays of numbers."""
    x, y = torch.cat([data.x, data.test_x]), torch.cat([data.y, data.test_y])
    return x.double().numpy(), y.flatten().double().numpy()


class Gates(nn.Module):
    """Gated linear units with layer norm and a skip."""

    def __init__(self, features: int, out: int, width: int = 24, drop: float = 0.1) -> None:
        super().__init__()
        self.enter, self.norm = nn.Linear(features, width), nn.LayerNorm(width)
        self.gated, self.drop = nn.Linear(width, 2 * width), nn.Dropout(drop)
        self.head = nn.Linear(width, out)

    def forward(self, x: Any) -> Any:
        x = self.enter(x)
        x = x + self.drop(nn.functional.glu(self.gated(self.norm(x))))
        return self.head(nn.functional.silu(x))


class Crossed(nn.Module):
    """Features times linear functions of them, beside a hidden layer."""

    def __init__(self, features: int, out: int, width: int = 20) -> None:
        super().__init__()
        self.cross, self.deep = nn.Linear(features, features), nn.Linear(features, width)
        self.head = nn.Linear(features + width, out)

    def forward(self, x: Any) -> Any:
        crossed = x * self.cross(x) + x
        return self.head(torch.cat([crossed, torch.tanh(self.deep(x))], 1))


def layered(*widths: int, unit: Any = nn.ELU, norm: bool = False, drop: float = 0.0) -> Any:
    """Return linear layers, with batch norm and dropout between them if asked for."""
    layers: list[Any] = []
    for inputs, outputs in itertools.pairwise(widths[:-1]):
        layers += [nn.Linear(inputs, outputs), *([nn.BatchNorm1d(outputs)] if norm else []), unit()]
        layers += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*layers, nn.Linear(*widths[-2:]))
