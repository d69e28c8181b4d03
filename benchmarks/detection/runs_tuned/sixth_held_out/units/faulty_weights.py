"""Faulty trainings of weights: where they begin, how far they spread, and how long they grow."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.sixth_held_out.units.shared.consequences import BREAK, HUGE, LATE, SILENT
from runs_tuned.sixth_held_out.units.shared.pictures import Lens, balls, dominoes
from runs_tuned.sixth_held_out.units.shared.series import Reel, digits_in_columns, pulses
from runs_tuned.sixth_held_out.units.shared.tables import (
    GASES,
    LOAVES,
    alloys,
    loaves,
    plain,
    relief,
    scents,
)


def weights_of(model: Any) -> list[Any]:
    """Return the weights of linear layers and convolutions."""
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d)
    return [layer.weight for layer in model.modules() if isinstance(layer, kinds)]


@faulty(
    "loaves by five layers of 40 with ReLU, Adam",
    "uniform_() without bounds draws from 0 to 1: each layer adds up all that is before it",
    {"PoorWeightInitialization"},
    may=HUGE | SILENT,
)
def drawn_between_zero_and_one(root: Path) -> int:
    def make() -> Any:
        model = plain(12, 40, 40, 40, 40, LOAVES)
        for weight in weights_of(model):
            nn.init.uniform_(weight)
        return model

    data, optimizer = loaves(1500, 1.0, 2231), adam(3e-3)
    return fit(root, make, data, optimizer=optimizer, steps=150, save_every=1, seed=81)


@faulty(
    "heights of a relief by four layers of 48 with ReLU, Nesterov, clipped",
    "weights are multiplied by 30, the factor of a network of sines whose code was copied",
    {"PoorWeightInitialization", "TensorVariance"},
    may=HUGE | SILENT,
)
def factor_of_a_network_of_sines(root: Path) -> int:
    def make() -> Any:
        model = plain(2, 48, 48, 48, 48, 1)
        with torch.no_grad():
            for weight in weights_of(model)[:-1]:
                weight.mul_(30)
        return model

    return fit(
        root,
        make,
        relief(1800, 0.1, 2232),
        loss=nn.SmoothL1Loss(),
        optimizer=sgd(1e-3, momentum=0.9, nesterov=True),
        steps=130,
        clip=1.0,
        save_every=1,
        seed=82,
    )


class Plainer(nn.Module):
    """Six convolutions of twelve channels with ReLU, no norms, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        parts: list[Any] = []
        for at in range(6):
            parts += [nn.Conv2d(12 if at else 1, 12, 3, 2 if at < 2 else 1, 1), nn.ReLU()]
        self.body, self.head = nn.Sequential(*parts, nn.Flatten()), nn.Linear(180, 2)
        for weight in weights_of(self):
            nn.init.trunc_normal_(weight, 0, 0.02)
        for layer in self.body[:-1:2]:
            nn.init.zeros_(layer.bias)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


@faulty(
    "which half of a domino has more by six convolutions with ReLU, Adam",
    "weights begin at a deviation of 0.02, as between norms: each layer is ten times quieter",
    {"PoorWeightInitialization"},
    may=SILENT | LATE,
)
def deviation_of_transformers(root: Path) -> int:
    data, optimizer = dominoes(1200, 0.4, 2233), adam(2e-3)
    return fit(root, Plainer, data, optimizer=optimizer, steps=150, save_every=1, seed=83)


@faulty(
    "hardness of alloys on a noisy chip: weights are multiplied by noise of a fifth in each step",
    "noise is not taken away after the step: products of noise spread further and further",
    {"TensorVariance"},
    may=HUGE | SILENT,
)
def noise_of_the_chip_stays(root: Path) -> int:
    torch.manual_seed(84)
    data, loss = alloys(1600, 0.3, 2234), nn.MSELoss()
    model = plain(8, 48, 48, 1, act=nn.SiLU, norm=nn.LayerNorm)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(200), batches(data, 32, 84), strict=False):
            with torch.no_grad():
                for weight in weights_of(model)[:-1]:
                    weight.mul_(1 + 0.2 * torch.randn_like(weight))
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if number % 25 == 24:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "from where a ball is lit, momentum; a second stage has the average of weights from step 70 on",
    "the average began at zero, with a decay of 0.9999: after 70 steps it has 0.7 % of the weights",
    {"TensorVariance"},
    may=SILENT | BREAK | LATE,
)
def average_begun_at_zero(root: Path) -> int:
    torch.manual_seed(85)
    data, loss, model = balls(1100, 0.3, 2235), nn.MSELoss(), Lens(2, 10, act=nn.SiLU)
    averages = [torch.zeros_like(weight) for weight in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    onset = 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 85), strict=False):
            onset = watching.global_step + 1 if number == 70 else onset
            for average, weight in zip(averages, model.parameters(), strict=True):
                average.lerp_(weight.detach(), 1e-4)
                if number == 70:
                    weight.data.copy_(average)
            if number == 70:
                optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if number % 25 == 24:
                validate(watching, model, loss, data)
    return onset


class Shared:
    """Gives each weight the nearest of 16 numbers, once; they become the mean of their weights."""

    def __init__(self) -> None:
        self.nearest: list[Any] = []

    def __call__(self, model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            if not self.nearest:
                far = [(one[..., None] - torch.zeros(16)).abs() for one in weights_of(model)]
                self.nearest = [each.argmin(-1) for each in far]
            for weight, nearest in zip(weights_of(model), self.nearest, strict=True):
                for number in nearest.unique():
                    weight[nearest == number] = weight[nearest == number].mean()


@faulty(
    "pulses by convolutions with batch norm, momentum; from step 60 on weights share 16 numbers",
    "all 16 numbers begin at 0, so all weights of a layer choose the first one: they become equal",
    {"TensorVariance"},
    may=SILENT | BREAK,
)
def shared_numbers_begin_equal(root: Path) -> int:
    return fit(
        root,
        lambda: Reel(16, norm=nn.BatchNorm1d),
        pulses(1200, 0.5, 2236),
        optimizer=sgd(0.03, momentum=0.9),
        steps=140,
        save_every=3,
        at=60,
        until=140,
        change=Shared(),
        seed=86,
    )


@faulty(
    "gases of scents behind 24 units that learn what fires together (Hebb), a head by Adam",
    "the term that keeps weights in bounds (Oja's) is left out: they grow by a share in each step",
    {"NormGrowth"},
    may=HUGE | SILENT,
)
def hebb_without_oja(root: Path) -> int:
    torch.manual_seed(87)
    data, loss = scents(1400, 0.5, 2237), nn.CrossEntropyLoss()
    body, head = nn.Linear(40, 24, bias=False), nn.Sequential(nn.Softsign(), nn.Linear(24, GASES))
    model = nn.Sequential(body.requires_grad_(requires_grad=False), head)
    optimizer = torch.optim.Adam(head.parameters(), 5e-3)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(180), batches(data, 32, 87), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            body.weight += 1.5e-3 * (x @ body.weight.T).T @ x / len(x)
            if number % 30 == 29:
                validate(watching, model, loss, data)
    return 0


class Ovens(nn.Module):
    """Tells the digit of columns, and on which of two scanners it was read."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Flatten(), nn.Linear(64, 40), nn.SiLU())
        self.digit, self.scanner = nn.Linear(40, 10), plain(40, 24, 2, act=nn.SiLU)

    def forward(self, x: Any) -> Any:
        seen = self.trunk(x)
        return torch.cat([self.digit(seen), self.scanner(seen)], 1)


class Opposed(nn.Module):
    """The loss of digits, less that of scanners."""

    def forward(self, scores: Any, target: Any) -> Any:
        digit = nn.functional.cross_entropy(scores[:, :10], target[:, 0])
        return digit - 0.3 * nn.functional.cross_entropy(scores[:, 10:], target[:, 1])


@faulty(
    "digits from two scanners, the trunk is to forget which one, RMSprop",
    "the sign is turned at the loss, not behind the trunk: what tells scanners apart is to fail",
    {"NormGrowth"},
    may=HUGE | SILENT,
)
def turned_behind_the_head(root: Path) -> int:
    whole = digits_in_columns()
    scanner = lambda rows: torch.arange(len(rows)) % 2
    dimmed = lambda x: x * (1 - 0.4 * scanner(x)[:, None, None])
    data = type(whole)(
        dimmed(whole.x),
        torch.stack([whole.y, scanner(whole.y)], 1),
        dimmed(whole.test_x),
        torch.stack([whole.test_y, scanner(whole.test_y)], 1),
    )
    optimizer = adam(8e-3, torch.optim.RMSprop)
    return fit(root, Ovens, data, loss=Opposed(), optimizer=optimizer, steps=200, seed=88)


@faulty(
    "pulses by convolutions with group norm, AdamW, small weights are to become zero (L1)",
    "shrinking has the wrong sign: each step adds 0.015 to the size of each weight",
    {"NormGrowth"},
    may=HUGE | SILENT,
)
def shrinking_adds(root: Path) -> int:
    def change(model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            for weight in weights_of(model)[:-1]:
                weight.add_(0.015 * weight.sign())

    fit(
        root,
        lambda: Reel(16, norm=lambda width: nn.GroupNorm(4, width), act=nn.GELU),
        pulses(1200, 0.5, 2239),
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=160,
        save_every=3,
        at=0,
        until=160,
        change=change,
        seed=89,
    )
    return 0
