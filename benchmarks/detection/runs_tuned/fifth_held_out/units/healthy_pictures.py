"""Healthy trainings of pictures: galaxies, coins, and pairs of digits."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.fifth_held_out.units.shared.pictures import (
    GALAXIES,
    Scope,
    coins,
    galaxies,
    pairs_of_digits,
    turned,
)
from runs_tuned.fifth_held_out.units.shared.tables import layers


class Stages(nn.Module):
    """Residual convolutions with batch norm in two stages, the second one half the size."""

    def __init__(self, width: int = 12, outs: int = GALAXIES) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, 2, 1, bias=False)
        sizes = ((width, width, 1), (width, 2 * width, 2))
        self.ways = nn.ModuleList(nn.Conv2d(a, b, 1, s, bias=False) for a, b, s in sizes)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.BatchNorm2d(a),
                nn.ReLU(),
                nn.Conv2d(a, b, 3, s, 1, bias=False),
                nn.BatchNorm2d(b),
                nn.ReLU(),
                nn.Conv2d(b, b, 3, padding=1, bias=False),
            )
            for a, b, s in sizes
        )
        self.norm, self.head = nn.BatchNorm2d(2 * width), nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for way, block in zip(self.ways, self.blocks, strict=True):
            x = way(x) + block(x)
        return self.head(self.norm(x).relu().mean((2, 3)))


@healthy("galaxies by residual convolutions with norms first, momentum, a cosine, decay of weights")
def galaxies_by_residuals(root: Path) -> int:
    cosine = lambda step: 0.5 * (1 + math.cos(math.pi * step / 140))
    optimizer = sgd(0.1, momentum=0.9, weight_decay=5e-4)
    return fit(
        root, Stages, galaxies(), optimizer=optimizer, steps=140, schedule=cosine, save_every=3
    )


class Mixing(nn.Module):
    """Layers over places and over channels of sixteen patches, in turn."""

    def __init__(self, width: int = 32, blocks: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        self.over_places = nn.ModuleList(layers(16, 32, 16, act=nn.GELU) for _ in range(blocks))
        self.over_channels = nn.ModuleList(
            layers(width, 64, width, act=nn.GELU) for _ in range(blocks)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * blocks + 1))
        self.head = nn.Linear(width, GALAXIES)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        pairs = zip(self.over_places, self.over_channels, strict=True)
        for at, (places, channels) in enumerate(pairs):
            x = x + places(self.norms[2 * at](x).transpose(1, 2)).transpose(1, 2)
            x = x + channels(self.norms[2 * at + 1](x))
        return self.head(self.norms[-1](x).mean(1))


@healthy("galaxies by layers over patches and over channels, AdamW, clipped, turned at random")
def galaxies_by_a_mixer(root: Path) -> int:
    torch.manual_seed(11)
    data, loss, model = galaxies(1200, 1.2, 1031), nn.CrossEntropyLoss(), Mixing()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for number, (x, y) in zip(range(180), batches(data, 32, 11), strict=False):
            for group in optimizer.param_groups:
                group["lr"] = 3e-3 * min((number + 1) / 15, (185 - number) / 120, 1)
            optimizer.zero_grad()
            loss(model(turned(x)), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


class Widening(nn.Module):
    """Each channel alone in squares of 5, then over channels, four times as wide between."""

    def __init__(self, width: int = 16, blocks: int = 2) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv2d(1, width, 2, 2), nn.Linear(width, GALAXIES)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(width, width, 5, padding=2, groups=width),
                nn.GroupNorm(1, width),
                nn.Conv2d(width, 4 * width, 1),
                nn.GELU(),
                nn.Conv2d(4 * width, width, 1),
            )
            for _ in range(blocks)
        )
        self.scales = nn.ParameterList(torch.full((width, 1, 1), 0.1) for _ in range(blocks))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for scale, block in zip(self.scales, self.blocks, strict=True):
            x = x + scale * block(x)
        return self.head(x.mean((2, 3)))


@healthy("galaxies by wide squares of each channel, branches scaled by a learnt tenth, NAdam")
def galaxies_by_wide_squares(root: Path) -> int:
    optimizer = adam(4e-3, torch.optim.NAdam, weight_decay=1e-4)
    data = galaxies(1100, 1.2, 1032)
    return fit(root, Widening, data, optimizer=optimizer, steps=190, save_every=3, seed=12)


@healthy("galaxies by plain convolutions with Kaiming's weights, Adam, dropout, accumulated twice")
def galaxies_by_plain_layers(root: Path) -> int:
    def make() -> Any:
        model = Scope()
        for layer in model.body:
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
                nn.init.zeros_(layer.bias)
        model.head = nn.Sequential(nn.Dropout(0.2), model.head)
        return model

    stairs = lambda step: 1.0 if step < 140 else 0.2
    return fit(
        root,
        make,
        galaxies(1100, 1.3, 1033),
        optimizer=adam(4e-3),
        steps=200,
        batch=24,
        accumulate=2,
        schedule=stairs,
        seed=13,
    )


class Attentive(nn.Module):
    """Convolutions whose channels are weighed by what all places say together."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(
            nn.Conv2d(ins, width, 3, stride, 1) for ins, stride in ((1, 1), (width, 2), (width, 1))
        )
        self.acts = nn.ModuleList(nn.ReLU() for _ in range(3))
        self.weighers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 6), nn.ReLU(), nn.Linear(6, width), nn.Sigmoid())
            for _ in range(3)
        )
        self.head = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        for convolution, act, weigher in zip(
            self.convolutions, self.acts, self.weighers, strict=True
        ):
            x = act(convolution(x))
            x = x * 2 * weigher(x.mean((2, 3)))[..., None, None]
        return self.head(x.mean((2, 3)))


@healthy("what coins are worth, channels weighed by sigmoids, RAdam, Huber's loss")
def coins_weighed(root: Path) -> int:
    optimizer = adam(6e-3, torch.optim.RAdam)
    return fit(
        root,
        Attentive,
        coins(),
        loss=nn.HuberLoss(),
        optimizer=optimizer,
        steps=150,
        save_every=3,
        seed=14,
    )


class Joined(nn.Module):
    """Convolutions that each see what all before them have said."""

    def __init__(self, grow: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, grow, 4, 2, 1)
        self.parts = nn.ModuleList(
            nn.Sequential(
                nn.GroupNorm(2, at * grow), nn.ReLU(), nn.Conv2d(at * grow, grow, 3, 1, 1)
            )
            for at in (1, 2, 3)
        )
        self.norm, self.head = nn.GroupNorm(2, 4 * grow), nn.Linear(4 * grow, 1)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for part in self.parts:
            x = torch.cat([x, part(x)], 1)
        return self.head(self.norm(x).relu().mean((2, 3)))


@healthy("what coins are worth by densely joined convolutions, group norm, Nesterov, one cycle")
def coins_joined(root: Path) -> int:
    cycle = lambda step: min(0.1 + step / 40, 1.0) if step < 60 else max(1 - (step - 60) / 85, 0.01)
    optimizer = sgd(0.05, momentum=0.9, nesterov=True)
    return fit(
        root,
        Joined,
        coins(1000, 1034),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        steps=140,
        save_every=3,
        schedule=cycle,
        clip=2.0,
        seed=15,
    )


class Twins(nn.Module):
    """Looks at two digits by the same layers, and compares what they say."""

    def __init__(self) -> None:
        super().__init__()
        self.look = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1, bias=False),
            nn.BatchNorm2d(16),
            nn.Hardswish(),
            nn.Conv2d(16, 24, 3, 2, 1, bias=False),
            nn.BatchNorm2d(24),
            nn.Hardswish(),
            nn.Flatten(),
            nn.Linear(24 * 16, 32),
            nn.Hardswish(),
        )
        self.worth = nn.Linear(32, 1, bias=False)

    def forward(self, x: Any) -> Any:
        first, second = (self.look(x[:, at : at + 1]) for at in (0, 1))
        return self.worth(first - second)


@healthy(
    "which of two digits is the greater, the same convolutions for both, AdamW, polynomial decay"
)
def greater_digits(root: Path) -> int:
    optimizer = adam(3e-3, torch.optim.AdamW)
    decay = lambda step: (1 - step / 170) ** 1.5
    return fit(
        root,
        Twins,
        pairs_of_digits(),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=optimizer,
        steps=160,
        save_every=4,
        schedule=decay,
        seed=16,
    )
