"""Healthy trainings of journeys, teas, quakes and orbits."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    chance,
    orbits,
    quakes,
    rides,
    teas,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import (
    by,
    passing_time,
    practice,
    served,
    waned,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    Grader,
    Looped,
    Seismic,
    layers,
)

healthy = training_runs.healthy


@healthy(
    "minutes of journeys, a few of them far off, Huber's loss, Adam, the rate falls once level"
)
def rides_with_outliers(root: Path) -> int:
    torch.manual_seed(1540)
    model = layers(11, 40, 40, 1, drop=0.05)
    x, y = rides(1500, 1540)
    y = y + 2.0 * (torch.rand(y.shape, generator=chance(1541)) < 0.02)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    level = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.4, patience=2)
    objective = by(model, nn.HuberLoss(delta=0.5))
    test = rides(80, 1542)

    def after(step: int) -> None:
        if step % 25 == 24:
            with torch.no_grad():
                level.step(objective(test))

    return practice(
        root,
        model,
        objective,
        served(x, y, size=32, seed=1540),
        optimizer,
        steps=300,
        save_every=2,
        after=after,
        test=test,
    )


@healthy("three quantiles of the minutes of journeys, RMSprop with momentum, warm-up, clipped")
def quantiles_of_rides(root: Path) -> int:
    torch.manual_seed(1543)
    model = layers(11, 32, 32, 3, act=nn.SELU)
    shares = torch.tensor([0.1, 0.5, 0.9])

    def pinball(told: Any, true: Any) -> Any:
        short = true - told
        return torch.maximum(shares * short, (shares - 1) * short).mean()

    return practice(
        root,
        model,
        by(model, pinball),
        served(*rides(1500, 1543, 0.3), size=32, seed=1543),
        torch.optim.RMSprop(model.parameters(), 1e-3, momentum=0.8),
        steps=260,
        save_every=2,
        schedule=waned(20, 270, 0.05),
        clip=0.5,
        test=rides(80, 1544, 0.3),
    )


@healthy("grades of teas, hard ones weigh more (focal loss), words in a group without decay, AdamW")
def teas_by_focal_loss(root: Path) -> int:
    torch.manual_seed(1545)
    model = Grader(drop=0.05)

    def focal(scores: Any, grades: Any) -> Any:
        missed = functional.cross_entropy(scores, grades, reduction="none")
        return ((1 - (-missed).exp()).pow(1.5) * missed).mean()

    groups = [
        {"params": model.words.parameters(), "weight_decay": 0.0, "lr": 8e-3},
        {"params": [*model.join.parameters(), *model.blocks.parameters()]},
        {"params": model.head.parameters()},
    ]
    return practice(
        root,
        model,
        by(model, focal),
        served(*teas(1800, 1545), size=32, seed=1545),
        torch.optim.AdamW(groups, 3e-3, weight_decay=0.05),
        steps=280,
        save_every=2,
        schedule=waned(10, 290, 0.1),
        test=teas(80, 1546),
    )


@healthy("grades of teas are mixed in pairs (mixup), labels smoothed, Adagrad, each 3rd step saved")
def teas_mixed_in_pairs(root: Path) -> int:
    torch.manual_seed(1547)
    model = Grader(depth=1, width=40)
    random = torch.distributions.Beta(0.3, 0.3)

    def objective(batch: Any) -> Any:
        words, numbers, grades = batch
        share, turned = random.sample(), torch.arange(len(grades)).roll(1)
        mixed = share * model.joined(words, numbers)
        mixed = mixed + (1 - share) * model.joined(words[turned], numbers[turned])
        scores = model.head(model.blocks(mixed))
        losses = [
            functional.cross_entropy(scores, each, label_smoothing=0.05)
            for each in (grades, grades[turned])
        ]
        return share * losses[0] + (1 - share) * losses[1]

    return practice(
        root,
        model,
        objective,
        served(*teas(1800, 1547), size=32, seed=1547),
        torch.optim.Adagrad(model.parameters(), 0.04),
        steps=330,
        save_every=3,
        test=teas(80, 1548),
        tested=by(model),
    )


@healthy(
    "a small network learns grades of teas from a frozen larger one, at a temperature of 3, and "
    "from the labels, Adam with a rate that falls by steps"
)
def teas_by_a_teacher(root: Path) -> int:
    torch.manual_seed(1549)
    words, numbers, grades = teas(1800, 1549)
    teacher = Grader(width=48)
    taught = torch.optim.Adam(teacher.parameters(), 4e-3)
    batches = served(words, numbers, grades, size=32, seed=1549)
    for _, batch in zip(range(200), batches, strict=False):
        taught.zero_grad()
        by(teacher)(batch).backward()
        taught.step()
    teacher.eval().requires_grad_(requires_grad=False)
    model = Grader(width=20, depth=1)

    def objective(batch: Any) -> Any:
        scores, told = model(*batch[:2]), teacher(*batch[:2])
        soft = 9 * functional.kl_div(
            (scores / 3).log_softmax(1), (told / 3).softmax(1), reduction="batchmean"
        )
        hard = functional.cross_entropy(scores, batch[2])
        return {"soft": soft, "hard": hard, "loss": 0.5 * soft + 0.5 * hard}

    return practice(
        root,
        model,
        objective,
        served(words, numbers, grades, size=32, seed=1550),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=260,
        save_every=2,
        schedule=lambda step: 0.6 ** (step // 60),
        test=teas(80, 1551),
    )


class _Weighed(nn.Module):
    """A network and how uncertain each of its tasks is, by which their losses are weighed."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Seismic(outs=(1, 3, 2))
        self.unsure = nn.Parameter(torch.zeros(3))

    def losses(self, batch: Any) -> dict[str, Any]:
        """Return the loss of each task and of all together."""
        arrival, kind, angle = self.net(batch[0])
        each = [
            functional.mse_loss(arrival, batch[1]),
            functional.cross_entropy(kind, batch[2]),
            1 - functional.cosine_similarity(angle, batch[3]).mean(),
        ]
        loss = sum(
            (-unsure).exp() * one + 0.5 * unsure.exp()
            for one, unsure in zip(each, self.unsure, strict=True)
        )
        return dict(zip(("arrival", "kind", "angle"), each, strict=True)) | {"loss": loss}


@healthy(
    "arrival, kind and direction of quakes, three losses weighed by how uncertain each is, which "
    "is learnt, Adam, warm-up"
)
def quakes_of_three_tasks(root: Path) -> int:
    torch.manual_seed(1552)
    model = _Weighed()
    return practice(
        root,
        model,
        model.losses,
        served(*quakes(1200, 1552), size=24, seed=1552),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=260,
        save_every=2,
        schedule=waned(15, 280, 0.1),
        test=quakes(60, 1553),
    )


@healthy(
    "places of a body around a sun one step ahead, a GRU, AdaMax, clipped; each step takes 20 "
    "seconds, and each of its few validations 25 minutes"
)
def orbits_validated_slowly(root: Path) -> int:
    torch.manual_seed(1554)
    model = Looped(4, 32, nn.GRU, ins=4)
    rows = orbits(900, 1554)
    test = orbits(60, 1555)
    pauses = {50 * (turn + 1) + turn: 25 * 60.0 for turn in range(3)}
    with passing_time(20.0, pauses):
        return practice(
            root,
            model,
            by(model, nn.SmoothL1Loss(beta=0.1)),
            served(rows[:, :-1], rows[:, 1:], size=16, seed=1554),
            torch.optim.Adamax(model.parameters(), 6e-3),
            steps=200,
            schedule=waned(5, 210, 0.1),
            clip=0.5,
            test=(test[:, :-1], test[:, 1:]),
            test_every=50,
        )
