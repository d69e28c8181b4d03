"""Healthy trainings of pictures: kinds, numbers, places, and pictures that are filled in."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.third_held_out.networks.shared.pictures import (
    Herbarium,
    Mixer,
    Squeezed,
    cells,
    convolved,
    divided,
    leaves,
    tracks,
    turned,
)


@healthy("leaves, batch norm, momentum, warm-up over 20 steps and a falling line, every step saved")
def leaves_by_line(root: Path) -> int:
    return fit(
        root,
        Herbarium,
        leaves(),
        optimizer=sgd(0.05, momentum=0.9, weight_decay=1e-3),
        steps=110,
        save_every=1,
        schedule=lambda step: min((step + 1) / 20, (115 - step) / 95),
    )


@healthy("leaves turned and mirrored at random, label smoothing, drop: validation is better")
def leaves_turned(root: Path) -> int:
    torch.manual_seed(31)
    torch.set_num_threads(1)
    data, generator = leaves(), torch.Generator().manual_seed(31)
    model = Herbarium(norm=lambda width: nn.GroupNorm(4, width), between=nn.SiLU, drop=0.3)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.02)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(150), batches(data, 32, 31), strict=False):
            optimizer.zero_grad()
            loss(model(turned(x, generator)), y).backward()
            optimizer.step()
            if (step + 1) % 25 == 0:
                validate(watching, model, loss, data)
    return 0


@healthy("leaves by patches that are mixed, in bfloat16 where that is safe, NAdam, clipped")
def leaves_mixed(root: Path) -> int:
    def make() -> Any:
        model: Any = Mixer()
        inner = torch.autocast("cpu", torch.bfloat16)(model.forward)
        model.forward = lambda x: inner(x).float()
        return model

    optimizer = adam(4e-3, torch.optim.NAdam)
    return fit(root, make, leaves(noise=0.3), optimizer=optimizer, steps=90, clip=1.0, seed=2)


@healthy("leaves by filters that are random and frozen, a wide layer on top, Adadelta")
def leaves_by_random_filters(root: Path) -> int:
    def make() -> Any:
        model = Herbarium(width=20)
        model.low.requires_grad_(requires_grad=False)
        return model

    optimizer = adam(1.0, torch.optim.Adadelta)
    return fit(root, make, leaves(), optimizer=optimizer, steps=160, save_every=4)


@healthy("cells as a map of where they are, squared errors, most of the map is empty, Adam")
def cells_mapped(root: Path) -> int:
    make = lambda: nn.Sequential(convolved(1, 12, 12), nn.Conv2d(12, 1, 3, padding=1))
    return fit(
        root, make, cells()[0], loss=nn.MSELoss(), optimizer=adam(5e-3), steps=120, save_every=3
    )


@healthy("the number of cells, from one to six, absolute errors, squeezed channels, Adamax")
def cells_counted(root: Path) -> int:
    pictures, number = cells()
    x = torch.cat([pictures.x, pictures.test_x])
    data = divided(x, number[:, None].float())
    make = lambda: nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        Squeezed(12),
        nn.Conv2d(12, 12, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 1),
    )
    optimizer = adam(8e-3, torch.optim.Adamax)
    return fit(
        root,
        make,
        data,
        loss=nn.SmoothL1Loss(),
        optimizer=optimizer,
        steps=180,
        batch=24,
        save_every=6,
    )


class Filler(nn.Module):
    """Fills in patches of pictures, most of which it cannot see."""

    def __init__(self) -> None:
        super().__init__()
        self.inward = nn.Sequential(nn.Linear(256 * 2, 64), nn.GELU(), nn.Linear(64, 32), nn.GELU())
        self.outward = nn.Linear(32, 256)

    def forward(self, x: Any) -> Any:
        hidden = (torch.rand(len(x), 1, 4, 4) < 0.5).float()
        hidden = hidden.repeat_interleave(4, 2).repeat_interleave(4, 3)
        seen = torch.cat([(x * (1 - hidden)).flatten(1), hidden.flatten(1)], 1)
        return self.outward(self.inward(seen)).view(-1, 1, 16, 16)


@healthy(
    "pictures of one or two cells, half of the patches are hidden and filled in, AdamW, two rates",
    kind="autoencoder",
)
def cells_filled_in(root: Path) -> int:
    pictures, number = cells(1400, seed=314)
    few = torch.cat([pictures.x, pictures.test_x])[number < 3]
    optimizer = lambda parameters: torch.optim.AdamW(
        [{"params": parameters[:4]}, {"params": parameters[4:], "lr": 2e-3}], 4e-3
    )
    return fit(
        root,
        Filler,
        divided(few, few),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        steps=200,
        batch=32,
        save_every=5,
    )


@healthy("how far to steer on a track, a tanh at the end, momentum, two gradients accumulated")
def tracks_steered(root: Path) -> int:
    make = lambda: nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(8, 12, 3, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(108, 24),
        nn.ReLU(),
        nn.Linear(24, 1),
        nn.Tanh(),
    )
    return fit(
        root,
        make,
        tracks(),
        loss=nn.MSELoss(),
        optimizer=sgd(0.03, momentum=0.9),
        steps=200,
        batch=20,
        accumulate=2,
        validate_every=40,
    )


@healthy("leaves, the rate is halved whenever validation gets no better, every 20th step saved")
def leaves_on_plateaus(root: Path) -> int:
    torch.manual_seed(33)
    torch.set_num_threads(1)
    model, loss, data = Herbarium(width=8, drop=0.1), nn.CrossEntropyLoss(), leaves()
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.8)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    with watched(root, model, losses=[loss], save_every=20) as watching:
        for step, (x, y) in zip(range(400), batches(data, 24, 33), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 34 == 0:
                validate(watching, model, loss, data)
                model.eval()
                with torch.no_grad():
                    plateau.step(
                        float(nn.functional.cross_entropy(model(data.test_x), data.test_y))
                    )
                model.train()
    return 0
