"""Generated sets: points on solids, and molecules of atoms and bonds; and their networks."""

import functools
import math
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split

from runs_tuned.third_held_out.networks.shared.pictures import divided

SOLIDS = 4
ATOMS = 10


@functools.cache
def solids(count: int = 800, points: int = 32, noise: float = 0.08, seed: int = 331) -> Split:
    """Return points on a ball, a box, a cone or a ring of any size and turn."""
    generator = torch.Generator().manual_seed(seed)
    rand = functools.partial(torch.rand, count, points, generator=generator)
    kind = torch.randint(SOLIDS, (count,), generator=generator)
    around, up, face = math.tau * rand(), 2 * rand() - 1, 3 * rand()
    ball = nn.functional.normalize(torch.randn(count, points, 3, generator=generator), dim=2)
    box = 2 * torch.rand(count, points, 3, generator=generator) - 1
    box = torch.where(face[..., None].long() == torch.arange(3), box.sign(), box) * 0.8
    wide = (1 - up) / 2
    cone = torch.stack([wide * around.cos(), wide * around.sin(), up], 2)
    thick = 0.8 + 0.25 * (3 * up).cos()
    ring = torch.stack([thick * around.cos(), thick * around.sin(), 0.25 * (3 * up).sin()], 2)
    x = torch.stack([ball, box, cone, ring])[kind, torch.arange(count)]
    turn = torch.linalg.qr(torch.randn(count, 3, 3, generator=generator))[0]
    x = (0.8 + 0.4 * torch.rand(count, 1, 1, generator=generator)) * (x @ turn)
    return divided(x + noise * torch.randn(x.shape, generator=generator), kind)


@functools.cache
def molecules(count: int = 1000, seed: int = 332) -> Split:
    """Return bonds and kinds of ten atoms, and how strongly the molecule holds together.

    A row of an atom has its bonds to ten atoms, and which of four kinds it is.
    """
    generator = torch.Generator().manual_seed(seed)
    bonds = (torch.rand(count, ATOMS, ATOMS, generator=generator) < 0.22).float().triu(1)
    chain = torch.diag(torch.ones(ATOMS - 1), 1)
    bonds = torch.maximum(bonds, chain)
    bonds = bonds + bonds.transpose(1, 2)
    kind = torch.randint(4, (count, ATOMS), generator=generator)
    atoms = nn.functional.one_hot(kind, 4).float()
    pull = torch.tensor([[1.0, 0.3, -0.6, 0.1], [0.3, 0.2, 0.7, -0.9]])
    pull = torch.cat([pull, torch.tensor([[-0.6, 0.7, -0.4, 0.5], [0.1, -0.9, 0.5, 0.8]])])
    held = (bonds * (atoms @ pull @ atoms.transpose(1, 2))).sum((1, 2)) / 2
    held = held + (atoms @ torch.tensor([2.0, -2.0, 1.0, -1.0])).sum(1)
    held = held + 0.4 * torch.randn(count, generator=generator)
    held = (held - held.mean()) / held.std()
    return divided(torch.cat([bonds, atoms], 2), held[:, None])


class Chemist(nn.Module):
    """Passes messages along bonds for some rounds, and reads a molecule by sum or mean."""

    def __init__(self, width: int = 24, rounds: int = 2, outs: int = 1, drop: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Linear(4, width)
        self.messages = nn.ModuleList(nn.Linear(width, width) for _ in range(rounds))
        self.updates = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(rounds))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(rounds))
        self.act, self.drop = nn.ReLU(), nn.Dropout(drop)
        self.head = nn.Linear(width, outs)

    def pooled(self, x: Any) -> Any:
        """Return a row of numbers for each molecule."""
        bonds, x = x[:, :, :ATOMS], self.embed(x[:, :, ATOMS:])
        for message, update, norm in zip(self.messages, self.updates, self.norms, strict=True):
            told = bonds @ message(x)
            x = norm(x + self.act(update(torch.cat([x, told], 2))))
        return x.mean(1)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.pooled(x)))


def neighbours(x: Any, count: int = 6) -> Any:
    """Return the numbers of the points next to each point."""
    with torch.no_grad():
        return torch.cdist(x, x).topk(count + 1, largest=False).indices[:, :, 1:]


class Edges(nn.Module):
    """Tells solids by what points see of their neighbours."""

    def __init__(self, width: int = 24, outs: int = SOLIDS, drop: float = 0.2) -> None:
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(6, width), nn.ReLU(), nn.Linear(width, width))
        self.point = nn.Sequential(
            nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU()
        )
        self.head = nn.Sequential(nn.Dropout(drop), nn.Linear(4 * width, outs))

    def seen(self, x: Any) -> Any:
        """Return the most that each point sees of its neighbours."""
        others = x[torch.arange(len(x))[:, None, None], neighbours(x)]
        here = x[:, :, None].expand_as(others)
        return self.edge(torch.cat([here, others - here], 3)).amax(2)

    def forward(self, x: Any) -> Any:
        seen = self.seen(x)
        x = self.point(seen.flatten(0, 1)).unflatten(0, seen.shape[:2])
        return self.head(torch.cat([x.mean(1), x.amax(1)], 1))


class Gathering(nn.Module):
    """Points attend to each other, and a learnt question to all of them."""

    def __init__(self, width: int = 24, outs: int = SOLIDS) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(3, width), nn.GELU(), nn.Linear(width, width))
        self.layer = nn.TransformerEncoderLayer(
            width, 4, 48, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.question = nn.Parameter(torch.randn(1, 1, width) / 5)
        self.ask = nn.MultiheadAttention(width, 4, batch_first=True)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, outs))

    def forward(self, x: Any) -> Any:
        x = self.layer(self.embed(x))
        return self.head(self.ask(self.question.expand(len(x), 1, -1), x, x)[0][:, 0])
