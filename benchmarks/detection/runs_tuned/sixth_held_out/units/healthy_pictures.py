"""Healthy trainings of pictures: dominoes, badges and balls."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.sixth_held_out.units.shared.pictures import (
    BADGES,
    Lens,
    badges,
    balls,
    dominoes,
    residual,
)
from runs_tuned.sixth_held_out.units.shared.tables import Attended


class Weighed(nn.Module):
    """Counts what is in each half by the same convolutions, and compares both."""

    def __init__(self, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.count = nn.Sequential(
            *(nn.Conv2d(1, 12, 3), act(), nn.Conv2d(12, 16, 3, 2), act()),
            *(nn.Flatten(), nn.Linear(16 * 12, 8), act()),
        )
        self.head = nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        return self.head(torch.cat([self.count(half) for half in x.chunk(2, 3)], 1))


@healthy("which half of a domino has more, the same convolutions for both, Adam")
def dominoes_by_halves(root: Path) -> int:
    return fit(
        root,
        Weighed,
        dominoes(1300, 0.5),
        optimizer=adam(2e-3),
        steps=150,
        save_every=4,
        validate_every=30,
        seed=21,
    )


@healthy("which half of a domino has more, layers on pixels with CELU and dropout, momentum")
def dominoes_by_pixels(root: Path) -> int:
    make = lambda: nn.Sequential(
        *(nn.Flatten(), nn.Linear(240, 48), nn.CELU(), nn.Dropout(0.3)),
        *(nn.Linear(48, 24), nn.CELU(), nn.Linear(24, 2)),
    )
    data = dominoes(2400, 0.6, 2111)
    optimizer = sgd(0.005, momentum=0.9, weight_decay=1e-2)
    stairs = lambda step: 0.3 ** (step // 70)
    return fit(root, make, data, optimizer=optimizer, steps=180, schedule=stairs, seed=22)


@healthy("badges by residual blocks with batch norm, momentum, one cycle of the rate")
def badges_in_one_cycle(root: Path) -> int:
    cycle = lambda step: 0.1 + 0.9 * math.sin(math.pi * (step + 1) / 162)
    optimizer = sgd(0.08, momentum=0.9, weight_decay=5e-4)
    make, rarely = lambda: residual(BADGES, 8), {"save_every": 4, "validate_every": 32}
    return fit(
        root, make, badges(), optimizer=optimizer, steps=160, schedule=cycle, **rarely, seed=23
    )


class Apart(nn.Module):
    """Convolutions of each channel alone and of all channels at one place, in turn."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        parts: list[Any] = [nn.Conv2d(1, width, 4, 2, 1), nn.BatchNorm2d(width), nn.ReLU6()]
        for stride in (2, 1):
            parts += [nn.Conv2d(width, width, 3, stride, 1, groups=width), nn.BatchNorm2d(width)]
            parts += [nn.ReLU6(), nn.Conv2d(width, width, 1), nn.BatchNorm2d(width), nn.ReLU6()]
        self.body, self.head = nn.Sequential(*parts), nn.Linear(width, BADGES)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean((2, 3)))


@healthy("badges by convolutions of single channels with ReLU6, AdamW, a warm-up")
def badges_by_single_channels(root: Path) -> int:
    return fit(
        root,
        Apart,
        badges(1300, 0.6, 2112),
        optimizer=adam(5e-3, torch.optim.AdamW),
        steps=160,
        schedule=lambda step: min(1.0, (step + 1) / 20),
        save_every=4,
        validate_every=40,
        seed=24,
    )


class Quilt(nn.Module):
    """Nine patches of a picture as tokens, and layers of attention."""

    def __init__(self) -> None:
        super().__init__()
        self.cut, self.places = nn.Conv2d(1, 24, 6, 6), nn.Parameter(0.1 * torch.randn(9, 24))
        whole = Attended(9, BADGES, 24, 2)
        self.layers, self.norm, self.head = whole.layers, whole.norm, whole.head

    def forward(self, x: Any) -> Any:
        x = self.cut(x).flatten(2).transpose(1, 2) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


@healthy("badges by attention to nine patches, Adam, clipped, the rate falls by a cosine")
def badges_by_patches(root: Path) -> int:
    cosine = lambda step: 0.55 + 0.45 * math.cos(math.pi * step / 160)
    data, optimizer = badges(1500, 0.5, 2113), adam(4e-3)
    return fit(
        root, Quilt, data, optimizer=optimizer, steps=160, schedule=cosine, clip=1.0, seed=25
    )


@healthy("badges by convolutions without norms, ReLU, Adam, pictures are mirrored at random")
def badges_mirrored(root: Path) -> int:
    torch.manual_seed(26)
    data, loss, model = badges(1200, 0.5, 2114), nn.CrossEntropyLoss(), Lens()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss], save_every=4) as watching:
        for number, (x, y) in zip(range(160), batches(data, 32, 26), strict=False):
            mirrored = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(2), x)
            optimizer.zero_grad()
            loss(model(mirrored), y).backward()
            optimizer.step()
            if number % 40 == 39:
                validate(watching, model, loss, data)
    return 0


@healthy("from where a ball is lit by convolutions with group norm and SiLU, NAdam")
def balls_by_group_norm(root: Path) -> int:
    make = lambda: Lens(2, norm=lambda width: nn.GroupNorm(4, width), act=nn.SiLU)
    loss, optimizer = nn.MSELoss(), adam(1e-3, torch.optim.NAdam)
    return fit(root, make, balls(1500), loss=loss, optimizer=optimizer, steps=160, seed=27)


@healthy("from where a ball is lit by residual blocks, leaky units, RMSprop, a falling rate")
def balls_by_leaky_blocks(root: Path) -> int:
    return fit(
        root,
        lambda: residual(2, 10, act=lambda: nn.LeakyReLU(0.2)),
        balls(1200, 0.4, 2115),
        loss=nn.HuberLoss(),
        optimizer=adam(1e-3, torch.optim.RMSprop),
        steps=130,
        schedule=lambda step: 0.98**step,
        save_every=1,
        validate_every=25,
        seed=28,
    )


class Narrow(nn.Module):
    """Convolutions to 24 numbers, and back to the picture by transposed ones."""

    def __init__(self) -> None:
        super().__init__()
        self.there = nn.Sequential(
            *(nn.Conv2d(1, 10, 4, 2, 1), nn.BatchNorm2d(10), nn.ReLU()),
            *(nn.Conv2d(10, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(256, 24)),
        )
        self.back = nn.Sequential(
            *(nn.Linear(24, 256), nn.ReLU(), nn.Unflatten(1, (16, 4, 4))),
            *(nn.ConvTranspose2d(16, 10, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(10, 1, 4, 2, 1)),
        )

    def forward(self, x: Any) -> Any:
        return self.back(self.there(x))


@healthy("balls by 24 numbers and back by transposed convolutions, Adam", kind="autoencoder")
def balls_by_24_numbers(root: Path) -> int:
    whole = balls(1200, 0.15, 2116)
    data = type(whole)(whole.x, whole.x, whole.test_x, whole.test_x)
    loss, optimizer = nn.MSELoss(), adam(4e-3)
    return fit(root, Narrow, data, loss=loss, optimizer=optimizer, steps=160, save_every=5, seed=29)
