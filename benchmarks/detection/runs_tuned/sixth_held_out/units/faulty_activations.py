"""Faulty trainings of activations: zeros, silent ReLU units and saturated ones."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.sixth_held_out.units.shared.consequences import BREAK, HUGE, SILENT
from runs_tuned.sixth_held_out.units.shared.pictures import BADGES, badges
from runs_tuned.sixth_held_out.units.shared.series import digits_in_columns
from runs_tuned.sixth_held_out.units.shared.tables import (
    GASES,
    LOAVES,
    Kennel,
    dogs,
    loaves,
    orchards,
    plain,
    scents,
)


@faulty(
    "loaves, SGD; from step 60 on each step ends with a shrinkage towards zero (L1)",
    "weights shrink by the penalty itself, not by the rate times the penalty: all of them are zero",
    {"AllZero", "TensorVariance"},
    may=SILENT | BREAK,
)
def shrinkage_without_the_rate(root: Path) -> int:
    def change(model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            for layer in model:
                if isinstance(layer, nn.Linear):
                    size = (layer.weight.abs() - 0.05).clamp(min=0)
                    layer.weight.copy_(layer.weight.sign() * size)

    return fit(
        root,
        lambda: plain(12, 40, 32, LOAVES, act=nn.ELU),
        loaves(1500, 1.0, 2201),
        optimizer=sgd(0.05),
        steps=160,
        at=60,
        until=160,
        change=change,
        seed=51,
    )


UNKNOWN = -999.0


class Told(nn.Module):
    """Layers on facts, and on what a layer makes of which of them are unknown."""

    def __init__(self) -> None:
        super().__init__()
        self.missing, self.body = nn.Linear(9, 8), plain(17, 40, 24, 1, act=nn.GELU)

    def forward(self, x: Any) -> Any:
        gaps = (x == UNKNOWN).float()
        return self.body(torch.cat([x, self.missing(gaps)], 1))


@faulty(
    "crops of orchards, one fact in five is missing, and a layer is told which ones, Adam",
    "it looks for -999, but means, 0, are filled in before: it sees only zeros and learns nothing",
    {"AllZero", "VanishingGradient"},
    may=SILENT,
)
def filled_before_compared(root: Path) -> int:
    whole = orchards(1600, 0.3, 2202)
    chance = torch.Generator().manual_seed(3)
    gaps = lambda x: x.masked_fill(torch.rand(x.shape, generator=chance) < 0.2, 0.0)
    loss, optimizer = nn.MSELoss(), adam(3e-3)
    return fit(root, Told, whole.of(gaps), loss=loss, optimizer=optimizer, steps=160, seed=52)


class Near(nn.Module):
    """How near a scent is to 32 others, nothing beyond a reach, beside a linear layer."""

    def __init__(self, reach: float) -> None:
        super().__init__()
        self.reach, self.plain = reach, nn.Linear(40, 8)
        self.body, self.act = nn.Linear(40, 16), nn.ReLU()
        self.others, self.head = nn.Parameter(torch.randn(32, 16)), nn.Linear(40, GASES)

    def forward(self, x: Any) -> Any:
        near = self.act(self.reach - torch.cdist(self.body(x), self.others))
        return self.head(torch.cat([near, self.plain(x)], 1))


@faulty(
    "gases of scents by how near they are to 32 others, and by some linear units, NAdam",
    "the reach of 0.3 is that of shares; distances in 16 dimensions are about 5: nothing is near",
    {"AllZero", "DeadRelu", "VanishingGradient"},
    may=SILENT,
)
def nothing_within_reach(root: Path) -> int:
    data, optimizer = scents(1400, 0.5, 2203), adam(4e-3, torch.optim.NAdam)
    return fit(root, lambda: Near(0.3), data, optimizer=optimizer, steps=150, seed=53)


class Sparse(nn.Module):
    """Returns what 24 positive numbers say of a row, and these numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.there = nn.Sequential(nn.Linear(40, 24), nn.ReLU())
        self.back = nn.Linear(24, 40)

    def forward(self, x: Any) -> Any:
        code = self.there(x)
        return self.back(code), code


class Priced(nn.Module):
    """Squared errors, and a price on the numbers that a row is told by."""

    def forward(self, answer: Any, target: Any) -> Any:
        told, code = answer
        return nn.functional.mse_loss(told, target) + 0.1 * code.sum()


@faulty(
    "answers of forty sensors by few of 24 positive numbers, whose size has a price, Adam",
    "the price is summed over the batch where its mean is meant: it is cheapest to say nothing",
    {"DeadRelu"},
    may=SILENT | HUGE,
    kind="autoencoder",
)
def price_of_the_whole_batch(root: Path) -> int:
    whole = scents(1500, 0.5, 2204)
    data = type(whole)(whole.x, whole.x, whole.test_x, whole.test_x)
    optimizer = adam(6e-3)
    return fit(root, Sparse, data, loss=Priced(), optimizer=optimizer, steps=200, seed=54)


class Above(nn.Module):
    """What is above a threshold."""

    def __init__(self, least: float) -> None:
        super().__init__()
        self.least, self.act = least, nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(x - self.least)


@faulty(
    "whether dogs are adopted, ReLU above a threshold, layer norms before it, RMSprop",
    "the threshold of 4 is older than the norms: of 16 numbers with deviation 1 none reaches it",
    {"AllZero", "DeadRelu"},
    may=SILENT,
)
def threshold_older_than_norms(root: Path) -> int:
    return fit(
        root,
        lambda: Kennel(plain(16, 16, 16, 1, act=lambda: Above(4.0), norm=nn.LayerNorm)),
        dogs(1700, 2205),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(2e-3, torch.optim.RMSprop),
        steps=150,
        batch=40,
        seed=55,
    )


class Squeezed(nn.Module):
    """Convolutions whose channels are weighed by gates, made from what is in all places."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, width, 3, 1, 1), nn.ReLU())
        self.gates = nn.Sequential(nn.Linear(width, width), nn.Sigmoid())
        nn.init.xavier_normal_(self.gates[0].weight)
        self.body = nn.Sequential(
            *(nn.MaxPool2d(2), nn.Conv2d(width, width, 3), nn.SiLU(), nn.AdaptiveAvgPool2d(3)),
            *(nn.Flatten(), nn.Linear(9 * width, BADGES)),
        )

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        return self.body(x * self.gates(x.sum((2, 3)))[..., None, None])


@faulty(
    "badges by convolutions with squeezed and weighed channels, momentum",
    "channels are squeezed by a sum over 324 places, not by their mean: gates are 0 or 1",
    {"SaturatedActivation"},
    may=SILENT | HUGE,
)
def squeezed_by_a_sum(root: Path) -> int:
    data, optimizer = badges(1100, 0.5, 2206), sgd(0.01, momentum=0.9)
    return fit(
        root,
        Squeezed,
        data,
        optimizer=optimizer,
        steps=150,
        batch=24,
        save_every=3,
        validate_every=50,
        seed=56,
    )


class Coded(nn.Module):
    """Codes of 24 numbers that become -1 or 1 by and by, and a linear layer."""

    def __init__(self, growth: float) -> None:
        super().__init__()
        self.growth, self.sharp = growth, 1.0
        self.body, self.tanh = plain(40, 32, 24, act=nn.SiLU), nn.Tanh()
        self.norm, self.head = nn.BatchNorm1d(24), nn.Linear(24, GASES)

    def forward(self, x: Any) -> Any:
        if self.training:
            self.sharp *= self.growth
        return self.head(self.tanh(self.sharp * self.norm(self.body(x))))


@faulty(
    "gases of scents by codes of -1 and 1: tanh that gets sharper by a tenth in each epoch, Adam",
    "it gets sharper in each step: after 100 of them it is a step that passes no gradient",
    {"SaturatedActivation"},
    may=SILENT,
)
def sharper_in_each_step(root: Path) -> int:
    data = scents(1400, 0.6, 2207)
    return fit(root, lambda: Coded(1.1), data, optimizer=adam(3e-3), steps=180, seed=57)


class Kept(nn.Module):
    """A state that gates keep or replace, from column to column."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.gate, self.news = nn.Linear(8, width), nn.Linear(8, width)
        self.sigmoid, self.head = nn.Sigmoid(), nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        if self.training:
            with torch.no_grad():
                self.gate.bias += 1.0
        keep, news = self.sigmoid(self.gate(x)), self.news(x).tanh()
        state = torch.zeros_like(news[:, 0])
        for at in range(x.shape[1]):
            state = keep[:, at] * state + (1 - keep[:, at]) * news[:, at]
        return self.head(state)


@faulty(
    "digits column by column by a gated state whose gates begin open, NAdam",
    "1 is added to the bias of the gates in each step and not once: they never let anything in",
    {"SaturatedActivation"},
    may=SILENT,
)
def opened_in_each_step(root: Path) -> int:
    optimizer = adam(5e-3, torch.optim.NAdam)
    return fit(root, Kept, digits_in_columns(), optimizer=optimizer, steps=180, seed=58)
