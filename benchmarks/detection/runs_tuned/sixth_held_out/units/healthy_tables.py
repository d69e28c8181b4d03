"""Healthy trainings of tables: loaves, orchards, alloys, dogs, scents and reliefs."""

import copy
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.sixth_held_out.units.shared.tables import (
    GASES,
    LOAVES,
    METALS,
    Attended,
    Kennel,
    alloys,
    dogs,
    even,
    loaves,
    orchards,
    parted,
    plain,
    relief,
    scents,
)


@healthy("loaves by layers with SELU, momentum, three warm restarts of a cosine")
def loaves_by_selu_with_restarts(root: Path) -> int:
    restarts = lambda step: 0.1 + 0.45 * (1 + math.cos(math.pi * (step % 60) / 60))
    return fit(
        root,
        lambda: plain(12, 40, 32, LOAVES, act=nn.SELU),
        loaves(),
        optimizer=sgd(0.02, momentum=0.9),
        steps=180,
        schedule=restarts,
        seed=1,
    )


@healthy("loaves by layers with batch norm, Mish and dropout, AdamW, labels are smoothed")
def loaves_with_smoothed_labels(root: Path) -> int:
    return fit(
        root,
        lambda: plain(12, 48, 48, LOAVES, act=nn.Mish, norm=nn.BatchNorm1d, drop=0.2),
        loaves(1600, 1.1, 2101),
        loss=nn.CrossEntropyLoss(label_smoothing=0.05),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.02),
        steps=170,
        batch=48,
        seed=2,
    )


@healthy("loaves, the first layer is random and frozen, wide ReLU layers learn behind it, Adagrad")
def loaves_behind_a_frozen_layer(root: Path) -> int:
    def make() -> Any:
        model = plain(12, 96, 32, LOAVES)
        model[0].requires_grad_(requires_grad=False)
        return model

    optimizer = adam(0.03, torch.optim.Adagrad)
    return fit(root, make, loaves(1500, 0.9, 2102), optimizer=optimizer, steps=160, seed=3)


class Stepped(nn.Module):
    """Residual layers with a norm before each, on a table."""

    def __init__(self, ins: int, width: int, outs: int, depth: int, act: Any) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(ins, width), nn.Linear(width, outs)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                *(nn.LayerNorm(width), nn.Linear(width, 2 * width)),
                *(act(), nn.Linear(2 * width, width)),
            )
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(self.norm(x))


@healthy("crops of orchards by four residual layers, robust errors, NAdam, warm-up and a line down")
def orchards_by_residual_layers(root: Path) -> int:
    line = lambda step: min((step + 1) / 20, (180 - step) / 160)
    return fit(
        root,
        lambda: Stepped(9, 24, 1, 4, nn.SiLU),
        orchards(),
        loss=nn.SmoothL1Loss(),
        optimizer=adam(4e-3, torch.optim.NAdam),
        steps=180,
        schedule=line,
        clip=1.0,
        seed=4,
    )


@healthy("crops of orchards by maxima of pairs of units, momentum, 50 rows validate")
def orchards_by_maxima(root: Path) -> int:
    class Maximum(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.unflatten(1, (-1, 2)).amax(2)

    make = lambda: nn.Sequential(
        *(nn.Linear(9, 64), Maximum(), nn.Linear(32, 48), Maximum(), nn.Linear(24, 1))
    )
    whole = orchards(1500, 0.3, 2103)
    data = type(whole)(whole.x, whole.y, whole.test_x[:50], whole.test_y[:50])
    loss, optimizer = nn.MSELoss(), sgd(0.03, momentum=0.8, weight_decay=1e-3)
    return fit(root, make, data, loss=loss, optimizer=optimizer, steps=170, save_every=3, seed=5)


@healthy("crops of orchards by layers with tanh in bfloat16, Adam, every fourth step saved")
def orchards_in_bfloat16(root: Path) -> int:
    torch.manual_seed(6)
    data, loss = orchards(1600, 0.3, 2104), nn.MSELoss()
    model = plain(9, 40, 24, 1, act=nn.Tanh)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    with watched(root, model, losses=[loss], save_every=4) as watching:
        for number, (x, y) in zip(range(240), batches(data, 32, 6), strict=False):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                answer = model(x)
            loss(answer.float(), y).backward()
            optimizer.step()
            if number % 40 == 39:
                validate(watching, model, loss, data)
    return 0


@healthy("hardness of alloys, metals attend to each other, AdamW, warm-up and cosine, clipped")
def alloys_attended(root: Path) -> int:
    cosine = lambda step: min((step + 1) / 15, 0.5 + 0.5 * math.cos(math.pi * step / 190))
    return fit(
        root,
        lambda: Attended(METALS, 1, dropout=0.1),
        alloys(),
        loss=nn.MSELoss(),
        optimizer=adam(5e-3, torch.optim.AdamW, weight_decay=0.05),
        steps=180,
        schedule=cosine,
        clip=1.0,
        save_every=3,
        seed=7,
    )


class Cross(nn.Module):
    """Products of the inputs with linear rules of them, three times, beside layers with ELU."""

    def __init__(self) -> None:
        super().__init__()
        self.rules = nn.ModuleList(nn.Linear(METALS, METALS) for _ in range(3))
        self.deep = plain(METALS, 32, 16, act=nn.ELU)
        self.head = nn.Linear(METALS + 16, 1)

    def forward(self, x: Any) -> Any:
        crossed = x
        for rule in self.rules:
            crossed = x * rule(crossed) * 0.3 + crossed
        return self.head(torch.cat([crossed, self.deep(x)], 1))


@healthy("hardness of alloys by crossed and by deep layers, RAdam, an average of the weights")
def alloys_crossed(root: Path) -> int:
    torch.manual_seed(8)
    data, loss, model = alloys(1600, 0.25, 2105), nn.MSELoss(), Cross()
    average = copy.deepcopy(model)
    optimizer = torch.optim.RAdam(model.parameters(), 6e-3)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(180), batches(data, 40, 8), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 0.05)
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


@healthy(
    "hardness of alloys by ReLU layers with orthogonal weights, L1 errors, Adamax, rates decay"
)
def alloys_by_orthogonal_layers(root: Path) -> int:
    def make() -> Any:
        model = plain(METALS, 48, 48, 1)
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight)
        return model

    return fit(
        root,
        make,
        alloys(1600, 0.25, 2106),
        loss=nn.L1Loss(),
        optimizer=adam(8e-3, torch.optim.Adamax),
        steps=170,
        schedule=lambda step: 0.99**step,
        seed=9,
    )


@healthy("whether dogs are adopted, embeddings and layers with PReLU, Adam, two batches an update")
def dogs_by_prelu(root: Path) -> int:
    return fit(
        root,
        lambda: Kennel(plain(16, 40, 24, 1, act=nn.PReLU)),
        dogs(),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(8e-3),
        steps=220,
        accumulate=2,
        seed=10,
    )


@healthy("whether dogs are adopted, one in three, layer norm and Hardswish, RMSprop with momentum")
def dogs_adopted_rarely(root: Path) -> int:
    whole = dogs(2400, 2107)
    keep = torch.rand(len(whole.x), generator=torch.Generator().manual_seed(1)) < 0.5
    data = whole.chosen(keep | (whole.y[:, 0] < 0.5))
    tested = keep[: len(whole.test_x)] | (whole.test_y[:, 0] < 0.5)
    data = type(whole)(data.x, data.y, whole.test_x[tested], whole.test_y[tested])
    optimizer = adam(1.5e-3, torch.optim.RMSprop, momentum=0.5)
    make = lambda: Kennel(plain(16, 32, 32, 1, act=nn.Hardswish, norm=nn.LayerNorm))
    loss = nn.BCEWithLogitsLoss()
    return fit(root, make, data, loss=loss, optimizer=optimizer, steps=180, batch=48, seed=11)


@healthy("gases of scents by a squeeze to 12 units and softplus, Nesterov, clipped")
def gases_by_softplus(root: Path) -> int:
    return fit(
        root,
        lambda: plain(40, 32, 12, GASES, act=nn.Softplus, norm=nn.BatchNorm1d),
        scents(),
        optimizer=sgd(0.015, momentum=0.9, nesterov=True),
        steps=170,
        clip=2.0,
        seed=12,
    )


@healthy(
    "answers of forty sensors by ten numbers, some answers are dropped, Adam", kind="autoencoder"
)
def scents_by_ten_numbers(root: Path) -> int:
    whole = scents(1500, 0.6, 2108)
    data = type(whole)(whole.x, whole.x, whole.test_x, whole.test_x)
    make = lambda: nn.Sequential(
        nn.Dropout(0.1), plain(40, 32, 10, act=nn.GELU), plain(10, 32, 40, act=nn.GELU)
    )
    loss, optimizer = nn.MSELoss(), adam(4e-3)
    return fit(root, make, data, loss=loss, optimizer=optimizer, steps=180, seed=13)


class Waved(nn.Module):
    """The sine of its input."""

    def forward(self, x: Any) -> Any:
        return x.sin()


@healthy("heights of a relief by layers with sines, Adam, the rate falls by a root")
def relief_by_sines(root: Path) -> int:
    return fit(
        root,
        lambda: plain(2, 48, 48, 1, act=Waved),
        relief(),
        loss=nn.MSELoss(),
        optimizer=adam(8e-3),
        steps=180,
        batch=48,
        schedule=lambda step: (1 + step / 30) ** -0.5,
        seed=14,
    )


@healthy("heights of a relief from waves of four widths that are fixed, ReLU, Adadelta")
def relief_by_fixed_waves(root: Path) -> int:
    plan = torch.randn(2, 12, generator=torch.Generator().manual_seed(2))
    seen = relief(1800, 0.1, 2109).of(lambda x: torch.cat([(x @ plan).sin(), (x @ plan).cos()], 1))
    data = parted(
        even(torch.cat([seen.x, seen.test_x])).numpy(), torch.cat([seen.y, seen.test_y]).numpy()
    )
    loss, optimizer = nn.MSELoss(), adam(0.25, torch.optim.Adadelta)
    make = lambda: plain(24, 40, 24, 1)
    return fit(root, make, data, loss=loss, optimizer=optimizer, steps=170, batch=40, seed=15)
