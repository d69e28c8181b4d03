"""Healthy trainings of breads, auctions, races, borrowed books and crowds."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import Lesson, dealt, told, wave
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import (
    Attending,
    Bidder,
    Gathered,
    Taste,
    square_layers,
    stack,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import (
    BOOKS,
    READERS,
    auctions,
    borrowed,
    breads,
    chance,
    crowds,
    races,
)

healthy = training_runs.healthy


def breads_by_layers(root: Path, kind: Any = torch.optim.AdamW) -> int:
    """Train layers on breads with an optimizer of some kind."""
    torch.manual_seed(6000)
    model = stack(12, 48, 48, 4, unit=nn.SiLU, drop=0.1)
    return Lesson(
        model,
        told(model),
        dealt(*breads(1500, 6000), size=40, seed=6000),
        kind(model.parameters(), 4e-3, weight_decay=0.01),
        steps=200,
        save_every=2,
        factor=lambda step: wave(0, 60)(step % 60) if step < 180 else 0.02,
        test=breads(300, 6001),
    ).run(root)


@healthy("kinds of bread by layers, some units dropped, AdamW, the rate restarts every 60 steps")
def kinds_of_bread(root: Path) -> int:
    return breads_by_layers(root)


@healthy("kinds of bread by layers, once more by the same seed", other="kinds_of_bread")
def kinds_of_bread_again(root: Path) -> int:
    return breads_by_layers(root)


@healthy(
    "kinds of bread by residual layers that learnt the crust; a new head, all thaws at step 60 at "
    "a fifth of the rate, SGD with momentum, clipped"
)
def breads_after_their_crust(root: Path) -> int:
    torch.manual_seed(6002)
    model = square_layers(12, 24, 2, 2)
    x, y = breads(1400, 6002)
    early = torch.optim.Adam(model.parameters(), 3e-3)
    for rows, kinds in (
        next(batches) for batches in [dealt(x, y % 2, size=40)] for _ in range(150)
    ):
        early.zero_grad()
        functional.cross_entropy(model(rows), kinds).backward()
        early.step()
    early.zero_grad()
    model[-1] = nn.Linear(24, 4)
    trunk = [each for part in model[:-1] for each in part.parameters()]
    for each in trunk:
        each.requires_grad_(requires_grad=False)
    groups = [{"params": trunk, "lr": 0.01}, {"params": model[-1].parameters(), "lr": 0.05}]

    def before(step: int) -> None:
        if step == 60:
            for each in trunk:
                each.requires_grad_(requires_grad=True)

    return Lesson(
        model,
        told(model),
        dealt(x, y, size=32, seed=6002),
        torch.optim.SGD(groups, momentum=0.9),
        steps=220,
        save_every=2,
        factor=wave(0, 230, 0.1),
        clip=2.0,
        before=before,
        test=breads(300, 6003),
    ).run(root)


@healthy(
    "prices of lots and how sure they are (Gaussian likelihood), words in a group without decay, "
    "AdamW, warm-up"
)
def lots_and_their_spread(root: Path) -> int:
    torch.manual_seed(6004)
    model = Bidder(2, 40, drop=0.05)

    def loss(batch: Any) -> Any:
        mean, spread = model(*batch[:2]).chunk(2, 1)
        return functional.gaussian_nll_loss(mean, batch[2], functional.softplus(spread) + 0.02)

    groups = [
        {"params": model.words.parameters(), "weight_decay": 0.0},
        {"params": model.layers.parameters(), "weight_decay": 0.02},
    ]
    return Lesson(
        model,
        loss,
        dealt(*auctions(1600, 6004), size=40, seed=6004),
        torch.optim.AdamW(groups, 3e-3),
        steps=260,
        save_every=2,
        factor=wave(20, 270, 0.05),
        test=auctions(300, 6005),
    ).run(root)


@healthy("prices of lots, absolute errors, RMSprop with momentum, four batches to an update")
def lots_four_batches_at_once(root: Path) -> int:
    torch.manual_seed(6006)
    model = Bidder(1, 32, 4)
    return Lesson(
        model,
        told(model, functional.l1_loss),
        dealt(*auctions(1500, 6006, 0.35), size=12, seed=6006),
        torch.optim.RMSprop(model.parameters(), 2e-3, momentum=0.5),
        steps=480,
        accumulate=4,
        factor=lambda update: 1.0 if update < 80 else 0.3,
        test=auctions(200, 6007),
    ).run(root)


class _Judge(nn.Module):
    """Scores for all runners of a race, each of whom attends to the others."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(9, width)
        self.blocks = nn.Sequential(*(Attending(width, 2, is_causal=False) for _ in range(2)))
        self.last = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        return self.last(self.blocks(self.first(x)))[..., 0]


def listwise(scores: Any, places: Any) -> Any:
    """Return how far chances to win are from those that places tell (ListNet)."""
    return functional.cross_entropy(scores, (-0.8 * places.float()).softmax(1))


@healthy("the order of runners by a transformer, a listwise loss, AdamW, warm-up, clipped")
def order_of_runners(root: Path) -> int:
    torch.manual_seed(6008)
    model = _Judge(24)
    return Lesson(
        model,
        told(model, listwise),
        dealt(*races(900, 6008), size=20, seed=6008),
        torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05),
        steps=180,
        save_every=2,
        factor=wave(15, 190, 0.05),
        clip=1.0,
        test=races(200, 6009),
    ).run(root)


def pairwise(scores: Any, places: Any) -> Any:
    """Return the logistic loss of all pairs of runners (RankNet)."""
    apart = scores[:, :, None] - scores[:, None, :]
    is_first = (places[:, :, None] < places[:, None, :]).float()
    return (functional.softplus(-apart) * is_first).sum() / is_first.sum()


@healthy("the order of runners by layers, a loss of pairs, momentum, an average of the weights")
def order_of_runners_by_pairs(root: Path) -> int:
    torch.manual_seed(6010)
    model = stack(9, 32, 32, 1)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))

    def loss(batch: Any) -> Any:
        return pairwise(model(batch[0])[..., 0], batch[1])

    def tested(batch: Any) -> Any:
        return pairwise(average(batch[0])[..., 0], batch[1])

    return Lesson(
        model,
        loss,
        dealt(*races(800, 6010), size=16, seed=6010),
        torch.optim.SGD(model.parameters(), 0.05, momentum=0.9),
        steps=240,
        save_every=2,
        factor=lambda step: 0.5 ** (step // 80),
        after=lambda _: average.update_parameters(model),
        test=races(150, 6011),
        tested=tested,
    ).run(root)


def books_by_factors(root: Path, drawn: int = 6051) -> int:
    """Train factors on borrowed books; those that were not borrowed are drawn by a seed."""
    torch.manual_seed(6012)
    model = Taste(READERS, BOOKS)
    reader, book, _ = borrowed(6000, 6012)
    stranger = torch.randint(BOOKS, (6000,), generator=chance(drawn))

    def loss(batch: Any) -> Any:
        better = model(batch[0], batch[1]) - model(batch[0], batch[2])
        return functional.softplus(-better).mean()

    return Lesson(
        model,
        loss,
        dealt(reader, book, stranger, size=128, seed=6012),
        torch.optim.Adam(model.parameters(), 1e-2, weight_decay=1e-5),
        steps=200,
        save_every=2,
        test=borrowed(600, 6013),
    ).run(root)


@healthy("which book a reader borrowed of two, by factors, a loss of pairs (BPR), Adam, a decay")
def books_of_readers(root: Path) -> int:
    return books_by_factors(root)


@healthy("around how many centres points stand, a mean over points, Adagrad, labels smoothed")
def centres_of_crowds(root: Path) -> int:
    torch.manual_seed(6014)
    model = Gathered(40)
    return Lesson(
        model,
        told(model, nn.CrossEntropyLoss(label_smoothing=0.05)),
        dealt(*crowds(1500, 6014), size=32, seed=6014),
        torch.optim.Adagrad(model.parameters(), 0.03),
        steps=220,
        save_every=2,
        test=crowds(300, 6015),
    ).run(root)


@healthy("around how many centres points stand, AMSGrad, one cycle, each 3rd step saved")
def centres_in_one_cycle(root: Path) -> int:
    torch.manual_seed(6016)
    model = Gathered(32, unit=nn.SiLU)
    return Lesson(
        model,
        told(model),
        dealt(*crowds(1400, 6016, 32), size=32, seed=6016),
        torch.optim.AdamW(model.parameters(), 1.5e-2, amsgrad=True),
        steps=300,
        save_every=3,
        factor=lambda step: 0.1 + 0.9 * step / 90 if step < 90 else wave(90, 305, 0.01)(step),
        clip=1.0,
        test=crowds(250, 6017),
    ).run(root)
