"""Tables: wafers of kinds, delays of flights and customers that leave, and networks for them."""

import functools
import itertools
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import halves

PORTS = 12


@functools.cache
def wafers(
    count: int,
    seed: int,
    *,
    noise: float = 0.5,
    lean: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0, 0.0),
    features: int = 14,
    tested: int = 300,
) -> Split:
    """Return measurements of wafers and their defects; `lean` makes some more frequent."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, features, generator=generator)
    weights = torch.randn(features, len(lean), generator=generator)
    bent = torch.randn(features, len(lean), generator=generator)
    scores = 0.5 * x @ weights + 0.7 * (x[:, :4].abs() - 0.8) @ bent[:4] + torch.tensor(lean)
    scores = scores + noise * torch.randn(scores.shape, generator=generator)
    return halves(x, scores.argmax(1), tested)


@functools.cache
def flights(count: int, seed: int, *, noise: float = 0.4, tested: int = 300) -> Split:
    """Return facts of flights, the first two of them numbers of airports, and their delay."""
    generator = torch.Generator().manual_seed(seed)
    ports = torch.randint(0, PORTS, (count, 2), generator=generator)
    facts = torch.randn(count, 8, generator=generator)
    slow = torch.randn(2, PORTS, generator=generator)
    delay = 0.7 * slow[0][ports[:, 0]] + 0.4 * slow[1][ports[:, 1]] + 0.5 * facts[:, 0]
    delay = delay + 0.5 * torch.sin(2 * facts[:, 1]) + 0.4 * facts[:, 2] * facts[:, 3]
    delay = delay + noise * torch.randn(count, generator=generator)
    return halves(torch.cat([ports.float(), facts], 1), delay[:, None], tested)


@functools.cache
def leavers(count: int, seed: int, *, share: float = 0.25, tested: int = 300) -> Split:
    """Return facts of customers, and whether they leave, ``(count, 1)``."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(count, 16, generator=generator)
    score = 1.2 * x[:, 0] - 0.9 * x[:, 1] + 0.8 * x[:, 2] * x[:, 3] + 0.6 * (x[:, 4] > 0.5)
    score = score + 0.4 * torch.randn(count, generator=generator)
    return halves(x, (score > score.quantile(1 - share)).float()[:, None], tested)


def arrays(data: Split) -> Any:
    """Return features and targets, of both halves, as arrays of numbers."""
    x, y = torch.cat([data.x, data.test_x]), torch.cat([data.y, data.test_y])
    return x.double().numpy(), y.flatten().double().numpy()


class Step(nn.Module):
    """A residual step: norm, two linear layers, dropout."""

    def __init__(self, width: int, drop: float) -> None:
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(width), nn.Dropout(drop)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Any) -> Any:
        return x + self.drop(self.narrow(nn.functional.gelu(self.wide(self.norm(x)))))


class Stairs(nn.Module):
    """Residual steps over numbers."""

    def __init__(
        self, features: int, out: int, width: int = 24, steps: int = 2, drop: float = 0.1
    ) -> None:
        super().__init__()
        self.enter = nn.Linear(features, width)
        self.steps = nn.Sequential(*(Step(width, drop) for _ in range(steps)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, out)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.steps(self.enter(x))))


class Ports(nn.Module):
    """Vectors of both airports beside the facts of a flight."""

    def __init__(self, width: int = 32, out: int = 1) -> None:
        super().__init__()
        self.origin, self.target = nn.Embedding(PORTS, 6), nn.Embedding(PORTS, 6)
        self.layers = nn.Sequential(nn.Linear(20, width), nn.Mish(), nn.Linear(width, out))

    def forward(self, x: Any) -> Any:
        origin, target = self.origin(x[:, 0].long()), self.target(x[:, 1].long())
        return self.layers(torch.cat([origin, target, x[:, 2:]], 1))


def plain(*widths: int, between: Any = nn.ReLU) -> Any:
    """Return linear layers with an activation between them."""
    layers: list[Any] = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [nn.Linear(inputs, outputs), between()]
    return nn.Sequential(*layers[:-1])
