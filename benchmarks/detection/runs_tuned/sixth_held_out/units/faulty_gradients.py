"""Faulty trainings of gradients: those that vanish, and numbers that are none."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.sixth_held_out.units.shared.consequences import BREAK, HUGE, SILENT
from runs_tuned.sixth_held_out.units.shared.pictures import BADGES, badges
from runs_tuned.sixth_held_out.units.shared.series import PULSES, Dancer, dances, pulses
from runs_tuned.sixth_held_out.units.shared.tables import (
    GASES,
    LOAVES,
    loaves,
    orchards,
    plain,
    scents,
)


class Alike(nn.Module):
    """How alike a dance is to four directions: cosines, divided by a temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.dancer = Dancer(nn.Sequential(nn.Linear(24, 32), nn.GELU(), nn.Linear(32, 24)), 24, 12)
        self.directions = nn.Parameter(torch.randn(4, 12))

    def forward(self, steps: Any) -> Any:
        known, directions = self.dancer(steps), self.directions
        both = known.norm(dim=1, keepdim=True) * directions.norm(dim=1)
        return known @ directions.T / both / 0.005


class ByHand(nn.Module):
    """The logarithm of a softmax, by exponents and their sum."""

    def forward(self, scores: Any, target: Any) -> Any:
        raised = scores.exp()
        chances = raised.gather(1, target[:, None])[:, 0] / raised.sum(1)
        return -(chances + 1e-12).log().mean()


@faulty(
    "figures of dances by cosines to four directions, a temperature of 0.005, Adam",
    "a softmax by hand does not take the greatest score off: exponents of up to 200 run over",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=HUGE | SILENT,
)
def greatest_score_not_taken_off(root: Path) -> int:
    data, optimizer = dances(1600, 2211), adam(4e-3)
    return fit(root, Alike, data, loss=ByHand(), optimizer=optimizer, steps=130, seed=61)


class Decorrelated(nn.Module):
    """Turns and scales columns until they are of variance 1 and no longer hang together."""

    def forward(self, x: Any) -> Any:
        x = x - x.mean(0)
        sizes, turns = torch.linalg.eigh(x.T @ x / len(x))
        return x @ turns @ (turns / sizes.sqrt()).T


@faulty(
    "loaves, twelve measurements are decorrelated in each batch, momentum; one fails at step 60",
    "it is 0 from then on: a variance of 0, or of less by rounding, has no root to divide by",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=HUGE | SILENT | BREAK,
)
def measurement_fails(root: Path) -> int:
    torch.manual_seed(62)
    data, loss = loaves(1500, 0.9, 2212), nn.CrossEntropyLoss()
    model = nn.Sequential(Decorrelated(), plain(12, 40, LOAVES, act=nn.SiLU))
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    onset = 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 48, 62), strict=False):
            onset = watching.global_step + 1 if number == 60 else onset
            works = torch.ones(12)
            works[4] = number < 60
            optimizer.zero_grad()
            loss(model(x * works), y).backward()
            optimizer.step()
            if number % 20 == 19 and number < 60:
                validate(watching, model, loss, data)
    return onset


class Together(nn.Module):
    """How both places of a pulse hang together in four pieces, and convolutions beside that."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Sequential(nn.Conv1d(2, 20, 9, 3), nn.SiLU(), nn.Conv1d(20, 24, 5, 2))
        self.body = plain(28, 32, PULSES, act=nn.SiLU)

    def forward(self, x: Any) -> Any:
        pieces = x.unflatten(2, (4, 18))
        pieces = pieces - pieces.mean(3, keepdim=True)
        first, second = pieces.unbind(1)
        size = ((first**2).mean(2) * (second**2).mean(2)).sqrt()
        linked = (first * second).mean(2) / size
        return self.body(torch.cat([linked.atanh(), self.wide(x).amax(2)], 1))


@faulty(
    "pulses by how both places hang together (Fisher's z) and by convolutions, Adam",
    "from step 60 on some have one place twice: a correlation of 1 has no finite z",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=HUGE | SILENT | BREAK,
)
def place_recorded_twice(root: Path) -> int:
    torch.manual_seed(63)
    data, loss, model = pulses(1200, 0.5, 2213), nn.CrossEntropyLoss(), Together()
    optimizer = torch.optim.Adam(model.parameters(), 6e-3)
    onset = 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 63), strict=False):
            onset = watching.global_step + 1 if number == 60 else onset
            twice = (torch.arange(len(x)) % 5 == 0) & (number >= 60)
            optimizer.zero_grad()
            loss(model(torch.where(twice[:, None, None], x[:, :1], x)), y).backward()
            optimizer.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return onset


class Rules(nn.Module):
    """Twelve rules, each true if it is so for all sensors, beside a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.slopes = nn.Parameter(0.5 * torch.randn(12, 40))
        self.limits = nn.Parameter(0.5 * torch.randn(12, 40))
        self.plain, self.head = nn.Linear(40, 8), nn.Linear(20, GASES)

    def forward(self, x: Any) -> Any:
        truths = (x[:, None] * self.slopes + self.limits).sigmoid().prod(2)
        return self.head(torch.cat([truths, self.plain(x)], 1))


@faulty(
    "gases of scents by twelve rules of forty conditions, and by some linear units, momentum",
    "a rule is the product of its forty truths: about 1e-13, and so are all gradients of rules",
    {"VanishingGradient"},
    may=SILENT,
)
def product_of_forty_truths(root: Path) -> int:
    data, optimizer = scents(1400, 0.5, 2214), sgd(0.05, momentum=0.9)
    return fit(root, Rules, data, optimizer=optimizer, steps=150, seed=64)


class Shortened(nn.Module):
    """Layers that are each added to what they see."""

    def __init__(self, share: float, depth: int = 12, width: int = 24) -> None:
        super().__init__()
        self.share, self.stem, self.head = share, nn.Linear(9, width), nn.Linear(width, 1)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for layer in self.layers:
            x = self.share * (x + nn.functional.silu(layer(x)))
        return self.head(x)


@faulty(
    "crops of orchards by twelve layers that are added to what they see, Adam",
    "a factor of 0.1, meant for what is added, is applied to the sum: 1e-12 is left of the stem",
    {"VanishingGradient"},
    may=SILENT,
)
def sum_shortened_twelve_times(root: Path) -> int:
    return fit(
        root,
        lambda: Shortened(0.1),
        orchards(1500, 0.3, 2215),
        loss=nn.MSELoss(),
        optimizer=adam(2e-3),
        steps=150,
        seed=65,
    )


class Glance(nn.Module):
    """Looks at six by six pixels around a place that it chooses, beside a coarse view."""

    def __init__(self) -> None:
        super().__init__()
        self.coarse = nn.Sequential(nn.AvgPool2d(2), nn.Flatten(), nn.Linear(81, 24), nn.Tanh())
        self.place = nn.Linear(24, 2)
        self.fine = nn.Sequential(nn.Conv2d(1, 12, 3), nn.SiLU(), nn.Conv2d(12, 12, 3), nn.SiLU())
        self.head = nn.Linear(24 + 48, BADGES)

    def forward(self, x: Any) -> Any:
        seen = self.coarse(x)
        around = torch.arange(6) - 2.5
        pixels = torch.stack(torch.meshgrid(around, around, indexing="xy"), 2)
        grid = 9 + 3 * self.place(seen).tanh()[:, None, None] + pixels
        glance = nn.functional.grid_sample(x, grid, align_corners=False)
        return self.head(torch.cat([seen, self.fine(glance).flatten(1)], 1))


@faulty(
    "badges by a coarse view and by a glance at a place that it chooses, AdamW",
    "the place is given in pixels, 0 to 18, where -1 to 1 is meant: all that is seen is zeros",
    {"AllZero", "VanishingGradient"},
    may=SILENT,
)
def glance_beside_the_picture(root: Path) -> int:
    optimizer = adam(3e-3, torch.optim.AdamW)
    data = badges(1300, 0.4, 2216)
    return fit(root, Glance, data, optimizer=optimizer, steps=150, save_every=3, seed=66)
