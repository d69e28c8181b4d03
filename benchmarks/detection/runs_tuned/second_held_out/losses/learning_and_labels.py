"""Models that do not learn, learn by heart or go on too long, and labels that are not in order."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.second_held_out.shared.consequences import EASY, IDLE, SHAKEN
from runs_tuned.second_held_out.shared.pictures import Gallery, coloured, groups
from runs_tuned.second_held_out.shared.series import Forecaster, heat
from runs_tuned.second_held_out.shared.tables import Factors, dense, ratings, rents, tickets
from runs_tuned.second_held_out.shared.words import Listener, moods

# Nothing is learnt


class Broadcast(nn.Module):
    """Squared errors of outputs ``(n, 1)`` and targets ``(n,)``, each of all rows."""

    def forward(self, output: Any, target: Any) -> Any:
        return (output - target[:, 0]).pow(2).mean()


@faulty(
    "heat of a furnace by a GRU, squared errors by hand, all rows in a batch, Adam",
    "outputs have an axis that targets do not have: each is compared with those of all rows",
    {"LossNotDecreasing"},
    may=IDLE,
)
def axis_too_many(root: Path) -> int:
    return fit(
        root,
        Forecaster,
        heat(),
        loss=Broadcast(),
        optimizer=adam(2e-3),
        steps=120,
        batch=675,
        save_every=1,
    )


@faulty(
    "rents of flats, at step 80 the weights become those of several checkpoints",
    "weights of 32 checkpoints are added up, and not divided by their number",
    {"WeightUpdateRatio"},
    may=SHAKEN,
)
def checkpoints_added_up(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            for part in model.parameters():
                part.mul_(32.0)

    make = lambda: dense(9, 32, 1, act=nn.Tanh)
    options = {"loss": nn.SmoothL1Loss(), "optimizer": adam(4e-3), "steps": 130}
    return fit(root, make, rents(), at=80, change=change, **options)


# Learnt by heart


class WithNames(nn.Module):
    """Traits of flats, and a wide embedding of each landlord."""

    def __init__(self) -> None:
        super().__init__()
        self.landlords = nn.Embedding(400, 24)
        self.layers = dense(33, 64, 64, 1)

    def forward(self, x: Any) -> Any:
        return self.layers(torch.cat([x[:, 1:], self.landlords(x[:, 0].long())], 1))


@faulty(
    "rents of flats and the number of their landlord, Adam",
    "a landlord has one or two flats: each is learnt by heart, which helps with no other",
    {"Overfit"},
    may=EASY,
)
def landlords_by_heart(root: Path) -> int:
    data = rents(noise=0.8)
    number = torch.randint(400, (1200, 1), generator=torch.Generator().manual_seed(28)).float()
    data = Split(
        torch.cat([number[:400], data.x[:400]], 1),
        data.y[:400],
        torch.cat([number[900:], data.test_x], 1),
        data.test_y,
    )
    return fit(
        root,
        WithNames,
        data,
        loss=nn.MSELoss(),
        optimizer=adam(4e-3),
        steps=300,
        save_every=3,
        validate_every=15,
    )


@faulty(
    "fruits in 60 pictures, convolutions without dropout or augmentation, a third of wrong labels",
    "there is no early stopping: most epochs go on after the best one",
    {"Overfit"},
    may=EASY,
)
def fruits_by_heart(root: Path) -> int:
    data = coloured()
    wrong = (torch.arange(60) % 3 == 0).long()
    few = Split(data.x[:60], (data.y[:60] + wrong) % 4, data.test_x, data.test_y)
    make = lambda: Gallery(4, 3, 24, norm=groups)
    return fit(
        root, make, few, optimizer=adam(6e-3), steps=360, batch=20, save_every=3, validate_every=15
    )


# Too long


@faulty(
    "ratings of films by factors with a strong penalty, AdamW",
    "a budget of 900 steps is used up, of which 150 help",
    {"Overtraining"},
    may=IDLE | EASY,
)
def budget_used_up(root: Path) -> int:
    make = lambda: Factors(width=2)
    optimizer = adam(0.03, torch.optim.AdamW, weight_decay=0.6)
    return fit(
        root,
        make,
        ratings(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        steps=900,
        batch=600,
        save_every=10,
        validate_every=20,
    )


@faulty(
    "tickets and their desks by a linear layer, plain SGD, weights decay",
    "1,200 steps, as for a network; a linear layer is ready after 100",
    {"Overtraining"},
    may=EASY,
)
def linear_for_too_long(root: Path) -> int:
    optimizer = sgd(0.3, weight_decay=0.02)
    return fit(
        root,
        lambda: dense(14, 5),
        tickets(apart=0.5),
        optimizer=optimizer,
        steps=1200,
        batch=210,
        save_every=10,
        validate_every=30,
    )


# Labels


@faulty(
    "fruits in pictures, four classes",
    "a folder was copied in part: it has one picture for thirty of each other one",
    {"ClassImbalance"},
    may=EASY | IDLE,
)
def folder_copied_in_part(root: Path) -> int:
    data = coloured(1100)
    rare = (data.y == 2).nonzero()[:, 0]
    kept = torch.ones(len(data.y), dtype=torch.bool)
    kept[rare[len(rare) // 30 :]] = False
    make = lambda: Gallery(4, 3, norm=groups)
    return fit(root, make, data.chosen(kept), optimizer=adam(3e-3), steps=150, batch=24)


class Focal(nn.Module):
    """Cross entropy of two classes, weighted by `alpha` for the second one."""

    def __init__(self, alpha: float) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, scores: Any, y: Any) -> Any:
        each = functional.cross_entropy(scores, y, reduction="none")
        weight = torch.where(y == 1, self.alpha, 1 - self.alpha)
        return 10 * (weight * (1 - (-each).exp()) ** 2 * each).mean()


@faulty(
    "tickets of one desk among five, focal loss",
    "alpha is that of the frequent class: the rare one counts a fiftieth and is never found",
    {"ClassImbalance"},
    may=EASY | IDLE,
)
def alpha_of_the_other_class(root: Path) -> int:
    data = tickets(apart=0.4).relabelled(lambda y: (y == 0).long())
    make = lambda: dense(14, 24, 2)
    return fit(root, make, data, loss=Focal(0.02), optimizer=adam(3e-3), steps=200)


class Flipped(nn.Module):
    """A network that sees half of all pictures in a mirror while it is trained."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 12, 5, 2, 2), nn.GELU(), nn.Conv2d(12, 24, 3, 2, 1), nn.GELU()),
            *(nn.Flatten(), nn.Linear(216, 5)),
        )

    def forward(self, x: Any) -> Any:
        if self.training:
            x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
        return self.layers(x)


def signs(count: int = 900) -> Split:
    """Return pictures of wedges that point to the left, to the right, up or down, or of rings."""
    random = torch.Generator().manual_seed(29)
    y = torch.randint(5, (count,), generator=random)
    across = torch.linspace(-1, 1, 12)
    wedge = (across[:, None].abs() < (1 - across) / 2).float()
    ring = ((across[:, None] ** 2 + across**2).sqrt() - 0.7).abs().lt(0.2).float()
    kinds = torch.stack([wedge.flip(1), wedge, wedge.T.flip(0), wedge.T, ring])
    moved = torch.stack(
        [
            picture.roll(tuple(move.tolist()), (0, 1))
            for picture, move in zip(
                kinds[y], torch.randint(-1, 2, (count, 2), generator=random), strict=True
            )
        ]
    )
    x = moved[:, None] + 0.6 * torch.randn(count, 1, 12, 12, generator=random)
    x = (x - x.mean()) / x.std()
    return Split(x[:600], y[:600], x[600:], y[600:])


@faulty(
    "signs that point to the left, to the right, up or down",
    "pictures are mirrored at random to have more of them: left and right become the same",
    {"Confusion"},
    may=IDLE,
)
def mirrored_signs(root: Path) -> int:
    return fit(
        root,
        Flipped,
        signs(),
        optimizer=adam(3e-3),
        steps=240,
        batch=30,
        save_every=4,
        validate_every=20,
    )


@faulty(
    "fruits in pictures of different sizes, fitted into squares",
    "the border is filled with white after the pictures were normalised: 1 in place of the mean",
    {"CheckInputImages"},
)
def white_borders(root: Path) -> int:
    def framed(x: Any) -> Any:
        x = x.clone()
        x[:, :, :3], x[:, :, -3:] = 1.0, 1.0
        return x

    make = lambda: Gallery(4, 3)
    return fit(root, make, coloured().of(framed), optimizer=adam(3e-3), steps=140, batch=24)


@faulty(
    "reviews by an encoder, grouped by their length",
    "limits of the groups are in letters, not in words: rows are padded to four times their length",
    {"NLPSequenceRatio"},
    may=IDLE,
)
def limits_in_letters(root: Path) -> int:
    data = moods().of(lambda x: functional.pad(x, (0, 3 * x.shape[1])))
    return fit(root, Listener, data, optimizer=adam(3e-3), steps=120)
