"""Signals that do not pass: dead, saturated and masked units, tiny gradients, first weights."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, watched
from training_runs import faulty

from runs_tuned.third_held_out.networks.shared.consequences import DAMAGED, IDLE, KNOWN, OTHERWISE
from runs_tuned.third_held_out.networks.shared.pictures import Herbarium, tracks
from runs_tuned.third_held_out.networks.shared.series import Shaker, bearings, tides
from runs_tuned.third_held_out.networks.shared.sets import solids
from runs_tuned.third_held_out.networks.shared.tables import layers, orders, soils


@faulty(
    "crops of soils by five layers, momentum",
    "the activation is read from the setting of the output, softmax, and stands behind each layer",
    {"VanishingGradient", "LossNotDecreasing"},
    may=IDLE,
)
def softmax_behind_each_layer(root: Path) -> int:
    make = lambda: layers(9, 48, 48, 48, 48, 4, between=lambda: nn.Softmax(1))
    optimizer = sgd(0.1, momentum=0.9)
    return fit(root, make, soils(), optimizer=optimizer, steps=220)


@faulty(
    "lateness of orders, which must not fall with any fact, no shifts within, Adam",
    "weights are cut to at most 0 in place of at least 0, in each layer after each update",
    {"AllZero", "DeadRelu"},
    may=IDLE,
)
def cut_on_the_wrong_side(root: Path) -> int:
    weights: list[Any] = []

    def make() -> Any:
        inner = nn.Linear(32, 24, bias=False)
        model = nn.Sequential(nn.Linear(11, 32), nn.ReLU(), inner, nn.ReLU(), nn.Linear(24, 1))
        weights.extend(each for each in model.parameters() if each.dim() > 1)
        return model

    def update(optimizer: Any) -> None:
        optimizer.step()
        with torch.no_grad():
            for weight in weights:
                weight.clamp_(max=0)

    return fit(
        root,
        make,
        orders(),
        loss=nn.MSELoss(),
        optimizer=adam(4e-3),
        steps=140,
        update=update,
        seed=61,
    )


@faulty(
    "how far to steer on a track, convolutions, Adam, shifts of units in a group of their own",
    "the rate of the shifts is 1.5, as for SGD, and not 1.5e-3: they jump to and fro",
    {"AllZero", "DeadRelu", "VanishingGradient"},
    may=DAMAGED | IDLE,
)
def rate_of_shifts(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        shifts = [each for each in parameters if each.dim() == 1]
        others = [each for each in parameters if each.dim() > 1]
        return torch.optim.Adam([{"params": others}, {"params": shifts, "lr": 1.5}], 1.5e-3)

    make = lambda: Herbarium(1, 1, 8, norm=None)
    loss = nn.SmoothL1Loss()
    return fit(root, make, tracks(), loss=loss, optimizer=optimizer, steps=110, seed=62)


class Totals(nn.Module):
    """Tells solids by a total over all points, behind which is a tanh."""

    def __init__(self) -> None:
        super().__init__()
        self.point = layers(3, 24, 24)
        self.total = nn.Sequential(nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 4))

    def forward(self, x: Any) -> Any:
        return self.total(nn.functional.relu(self.point(3 * x)).sum(1))


@faulty(
    "solids of 96 points, what points say is added up, RMSprop",
    "the sum is from a network of eight points, with 96 it is far beyond what tanh can tell apart",
    {"SaturatedActivation"},
    may=IDLE | DAMAGED,
)
def totals_of_many_points(root: Path) -> int:
    optimizer = adam(2e-3, torch.optim.RMSprop)
    data = solids(600, 96, seed=336)
    return fit(root, Totals, data, optimizer=optimizer, steps=120, batch=24)


@faulty(
    "crops of soils by five layers, weights scaled layer by layer by what a batch shows, SGD",
    "weights are divided by the variance of a layer's outputs instead of their deviation",
    {"PoorWeightInitialization"},
    may=DAMAGED,
)
def divided_by_variance(root: Path) -> int:
    def make() -> Any:
        model, x = layers(9, 64, 64, 64, 64, 4), soils().x[:256]
        with torch.no_grad():
            for layer in model:
                if isinstance(layer, nn.Linear):
                    nn.init.orthogonal_(layer.weight, 0.15)
                    layer.weight.div_(layer(x).var())
                    layer.bias.zero_()
                x = layer(x)
        return model

    return fit(root, make, soils(), optimizer=sgd(0.05), steps=120, save_every=1)


class Dropped(nn.Module):
    """Keeps a share of its inputs in training, by a mask of its own."""

    def __init__(self, keep: float) -> None:
        super().__init__()
        self.keep = int(keep)

    def forward(self, x: Any) -> Any:
        if not self.training:
            return x
        return x * (torch.rand_like(x) < self.keep)


class Branches(nn.Module):
    """Forecasts tides by a branch for levels and another for the wind."""

    def __init__(self) -> None:
        super().__init__()
        self.level = nn.Sequential(nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.wind = nn.Sequential(nn.Linear(36, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.drop, self.head = Dropped(0.8), nn.Linear(32, 6)

    def forward(self, x: Any) -> Any:
        level, wind = self.level(x[:, :, 0]), self.drop(self.wind(x[:, :, 1]))
        return self.head(torch.cat([level, wind], 1))


@faulty(
    "tides by levels and by the wind, the wind's branch is masked at random, Adam",
    "the share to keep, 0.8, is read as a whole number: the mask is always 0",
    {"AllZero", "VanishingGradient"},
    may=IDLE | OTHERWISE,
)
def share_as_a_whole_number(root: Path) -> int:
    return fit(root, Branches, tides(), loss=nn.MSELoss(), optimizer=adam(3e-3), steps=140, seed=64)


@faulty(
    "sound bearings are to lie close to a centre, so that damaged ones lie far away, AdamW",
    "layers have biases, and nothing else holds the embeddings apart: all become the centre",
    {"RepresentationCollapse"},
    may=KNOWN | IDLE,
    kind="contrastive",
)
def all_in_the_centre(root: Path) -> int:
    torch.manual_seed(65)
    torch.set_num_threads(1)
    data = bearings(1600, seed=326)
    model, loss = Shaker(outs=12, norm=None), nn.MSELoss()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05)
    with torch.no_grad():
        centre = model(data.x[:200]).mean(0) + 0.3
    with watched(root, model, losses=[loss], save_every=2) as watching:
        rows = data.chosen(data.y == 0)
        for _, (x, _) in zip(range(180), batches(rows, 32, 65), strict=False):
            found = model(x)
            watching.save_tensor("embeddings", found.detach(), "embeddings")
            optimizer.zero_grad()
            loss(found, centre.expand_as(found)).backward()
            optimizer.step()
    return 0
