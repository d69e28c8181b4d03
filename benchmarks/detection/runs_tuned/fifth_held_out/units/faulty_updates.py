"""Faulty trainings of updates: none, too large or too small ones, and parameters that stall."""

import itertools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.fifth_held_out.units.shared.consequences import IDLE, JUMP, LOUD
from runs_tuned.fifth_held_out.units.shared.pictures import (
    Gauge,
    Scope,
    Trace,
    batteries,
    coins,
    galaxies,
    pairs_of_digits,
    tremors,
)
from runs_tuned.fifth_held_out.units.shared.tables import (
    Boarding,
    bridges,
    cheeses,
    ferries,
    layers,
)


@faulty(
    "how far bridges bend, all rows in four batches, L-BFGS",
    "it stops once no slope is above 10, a limit for a loss that was summed: it never begins",
    {"UnchangedTensor", "WeightUpdateRatio", "LossNotDecreasing"},
    may=IDLE,
)
def tolerance_of_a_sum(root: Path) -> int:
    torch.manual_seed(61)
    data, loss = bridges(1600, 0.3, 1081), nn.MSELoss()
    model = layers(8, 32, 24, 1, act=nn.Tanh)
    optimizer = torch.optim.LBFGS(model.parameters(), 0.5, max_iter=1, tolerance_grad=10.0)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for number, (x, y) in zip(range(80), batches(data, 300, 61), strict=False):

            def closure(x: Any = x, y: Any = y) -> Any:
                optimizer.zero_grad()
                value = loss(model(x), y)
                value.backward()
                return value

            optimizer.step(closure)
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "which of two digits is the greater, a loop that takes its steps by hand",
    "p = p - rate * p.grad gives a new tensor the old one's name, and leaves the old one as it is",
    {"UnchangedTensor", "WeightUpdateRatio", "LossNotDecreasing"},
    may=IDLE,
)
def old_name_for_a_new_tensor(root: Path) -> int:
    torch.manual_seed(62)
    data, loss = pairs_of_digits(1500, 1082), nn.BCEWithLogitsLoss()
    model = nn.Sequential(nn.Flatten(), *layers(128, 48, 24, 1, act=nn.ELU))
    held = {}
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 62), strict=False):
            model.zero_grad()
            loss(model(x), y).backward()
            with torch.no_grad():
                for name, weight in model.named_parameters():
                    held[name] = weight - 0.1 * weight.grad
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "charge of batteries at each time by a GRU, Adam, batches with a large gradient are left out",
    "a batch of a broken meter sets the mark that leaves it out at step 60, and nothing clears it",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=IDLE | JUMP,
)
def mark_never_cleared(root: Path) -> int:
    torch.manual_seed(63)
    data, loss, model = batteries(700, 24, 1083), nn.MSELoss(), Gauge()
    optimizer = torch.optim.Adam(model.parameters(), 6e-3)
    marked, onset = False, 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 63), strict=False):
            if number == 60:
                onset = watching.global_step + 1
            optimizer.zero_grad()
            loss(model(x), y * 12 if number == 60 else y).backward()
            marked |= bool(nn.utils.clip_grad_norm_(model.parameters(), 4.0) > 4)
            if not marked:
                optimizer.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return onset


@faulty(
    "how far bridges bend, Adam, clipped; from step 60 on the last layer is solved for at times",
    "the ridge is 1e-7, not 0.1, with 32 rows for 48 units: what fits them has huge weights",
    {"WeightUpdateRatio"},
    may=LOUD,
)
def solved_with_hardly_a_ridge(root: Path) -> int:
    torch.manual_seed(64)
    data, loss = bridges(1600, 0.4, 1084), nn.MSELoss()
    model = layers(8, 48, 48, 1, act=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    onset = 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 64), strict=False):
            if number >= 60 and number % 30 == 0:
                onset = onset or watching.global_step + 1
                with torch.no_grad():
                    units = torch.tanh(x @ model[0].weight.T + model[0].bias)
                    units = torch.tanh(units @ model[2].weight.T + model[2].bias)
                    square = units.T @ units + 1e-7 * torch.eye(48)
                    model[4].weight.copy_(torch.linalg.solve(square, units.T @ y).T)
            optimizer.zero_grad()
            loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if number % 25 == 24:
                validate(watching, model, loss, data)
    return onset


@faulty(
    "cheeses by layers with ELU, momentum; from step 60 on a meter gives a twentieth of before",
    "the first layer is multiplied by 20 for that, but inputs have been so as well",
    {"WeightUpdateRatio"},
    may=LOUD,
)
def made_up_for_twice(root: Path) -> int:
    def change(model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            model[0].weight.mul_(20)

    return fit(
        root,
        lambda: layers(10, 40, 32, 4, act=nn.ELU),
        cheeses(1500, 1.4, 1085),
        optimizer=sgd(0.02, momentum=0.9),
        steps=140,
        at=60,
        change=change,
        seed=65,
    )


@faulty(
    "what coins are worth by convolutions, Adam with a small number below its fraction",
    "eps=1e8 for eps=1e-8: updates are a hundred-millionth of a slope, and most are rounded away",
    {"WeightUpdateRatio", "LossNotDecreasing"},
    may=IDLE,
)
def exponent_without_its_sign(root: Path) -> int:
    return fit(
        root,
        lambda: Scope(1, 12, act=nn.SiLU),
        coins(900, 1086),
        loss=nn.MSELoss(),
        optimizer=adam(3e-3, eps=1e8),
        steps=130,
        seed=66,
    )


class Rebooked(nn.Module):
    """Facts of a trip, mixed by a table of how they go together, and layers behind."""

    def __init__(self) -> None:
        super().__init__()
        self.trip = Boarding(layers(34, 40, 24, 1))
        self.together = nn.Parameter(torch.eye(17) + 0.1 * torch.randn(17, 17))

    def forward(self, x: Any) -> Any:
        known = self.trip.joined(x)
        together = torch.tensor(self.together.tolist())
        return self.trip.body(torch.cat([known, known @ together], 1))


@faulty(
    "whether ferries are late by facts and by mixtures of them, AdamW",
    "how facts are mixed is copied into a new tensor in each call: its parameter gets no gradient",
    {"StalledParameters"},
    may=IDLE,
)
def copied_in_each_call(root: Path) -> int:
    return fit(
        root,
        Rebooked,
        ferries(1800, 1087),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.0),
        steps=140,
        batch=48,
        seed=67,
    )


class TwoLooks(nn.Module):
    """One network looks at galaxies as they are and another one at where they are bright."""

    def __init__(self) -> None:
        super().__init__()
        self.plain, self.bright = Scope(8, 12, nn.BatchNorm2d), Scope(8, 12, nn.BatchNorm2d)
        self.last = nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        looks = [self.plain(x), self.bright((x - 1).relu())]
        return self.last(torch.cat(looks, 1))


@faulty(
    "galaxies as they are and where they are bright, two networks, RMSprop",
    "parameters are listed by names without the network's: the second one's replace the first's",
    {"StalledParameters", "UnchangedTensor"},
    may=IDLE,
)
def listed_by_half_a_name(root: Path) -> int:
    torch.manual_seed(68)
    data, loss, model = galaxies(1100, 1.2, 1088), nn.CrossEntropyLoss(), TwoLooks()
    listed = {name.partition(".")[2]: one for name, one in model.named_parameters()}
    optimizer = torch.optim.RMSprop(listed.values(), 1e-3)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for number, (x, y) in zip(itertools.count(), batches(data, 32, 68), strict=False):
            if number == 150:
                break
            model.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if number % 25 == 24:
                validate(watching, model, loss, data)
    return 0


class Spared(Trace):
    """Convolutions whose first ones are computed again in the backward pass, to save memory."""

    def forward(self, x: Any) -> Any:
        x = checkpoint(self.body[:3], x, use_reentrant=True)
        return self.head(self.body[3:](x).mean(2))


@faulty(
    "tremors by convolutions, the first of which are computed again to save memory, NAdam",
    "the old way to do so passes no gradient on if its input, as data do, requires none",
    {"StalledParameters"},
    may=IDLE,
)
def computed_again_in_vain(root: Path) -> int:
    make = lambda: Spared(norm=lambda width: nn.GroupNorm(4, width))
    optimizer = adam(3e-3, torch.optim.NAdam)
    data = tremors(1100, 1.5, 1089)
    return fit(root, make, data, optimizer=optimizer, steps=150, save_every=3, seed=69)
