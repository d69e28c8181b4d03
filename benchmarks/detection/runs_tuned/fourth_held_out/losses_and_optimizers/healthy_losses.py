"""Healthy trainings with losses of several parts, of rows that count, and of other kinds."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.boosting import boost

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    TOPICS,
    WORDS,
    letters_to_editors,
    plaids,
    power,
    pumps,
    visits,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import (
    clock,
    cosine,
    dealt,
    learn,
    of,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import (
    Dilated,
    Mixer,
    Recalling,
    Weaver,
    stack,
)

healthy = training_runs.healthy


@healthy(
    "power of a town: squared errors, a penalty of bends and one of the sum of the day, RMSprop"
)
def power_of_three_parts(root: Path) -> int:
    torch.manual_seed(760)
    model = Dilated(12)

    def objective(batch: Any) -> Any:
        foreseen = model(batch[0])
        bends = (foreseen.diff(n=2, dim=1) - batch[1].diff(n=2, dim=1)).abs().mean()
        whole = (foreseen.sum(1) - batch[1].sum(1)).pow(2).mean()
        return functional.mse_loss(foreseen, batch[1]) + 0.1 * bends + 0.02 * whole

    return learn(
        root,
        model,
        objective,
        dealt(*power(600, 760), size=32, seed=760),
        torch.optim.RMSprop(model.parameters(), 1e-3),
        steps=180,
        schedule=cosine(10, 200),
        held_out=power(24, 761),
    )


@healthy(
    "flow of pumps with its spread, a likelihood that falls below zero, Adam, clipped, two heads"
)
def pumps_with_spread(root: Path) -> int:
    torch.manual_seed(761)
    model = stack(12, 32, 32, 2, act=nn.Tanh)

    def objective(batch: Any) -> Any:
        mean, spread = model(batch[0]).chunk(2, 1)
        spread = spread.clamp(-4, 4)
        return (0.5 * (batch[1] - mean).pow(2) * (-spread).exp() + 0.5 * spread).mean()

    return learn(
        root,
        model,
        objective,
        dealt(*pumps(1000, 761), size=48, seed=761),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=200,
        save_every=2,
        clip=2.0,
        held_out=pumps(100, 762),
    )


@healthy("visits of shops as counts of days that differ, a Poisson loss, AdamW, ten epochs")
def shops_counted(root: Path) -> int:
    torch.manual_seed(762)
    model = stack(8, 32, 16, 1)

    def objective(batch: Any) -> Any:
        return functional.poisson_nll_loss(model(batch[0]) + batch[1].log(), batch[2], full=True)

    return learn(
        root,
        model,
        objective,
        dealt(*visits(800, 762), size=40, seed=762),
        torch.optim.AdamW(model.parameters(), 4e-3),
        steps=200,
        held_out=visits(80, 763),
    )


@healthy(
    "woven patterns, a half of each is hidden and filled in, convolutions, an average is validated",
    kind="autoencoder",
)
def plaids_filled_in(root: Path) -> int:
    torch.manual_seed(763)
    x, _ = plaids(700, 763, 0.2)
    model = nn.Sequential(
        *(nn.Conv2d(2, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.SiLU()),
        *(nn.Conv2d(16, 16, 5, padding=2), nn.SiLU(), nn.Upsample(scale_factor=2)),
        *(nn.Conv2d(16, 16, 3, padding=1), nn.SiLU(), nn.Conv2d(16, 1, 3, padding=1)),
    )

    def objective(batch: Any) -> Any:
        pictures = batch[0]
        hidden = (torch.rand(len(pictures), 1, 4, 4) < 0.5).float()
        hidden = functional.interpolate(hidden, scale_factor=3)
        filled = model(torch.cat([pictures * (1 - hidden), hidden], 1))
        return ((filled - pictures).pow(2) * hidden).sum() / hidden.sum()

    return learn(
        root,
        model,
        objective,
        dealt(x, size=24, seed=763),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=170,
        save_every=2,
        schedule=cosine(8, 190),
    )


@healthy(
    "two views of a woven pattern find each other, a learnt temperature, AdamW", kind="contrastive"
)
def views_of_plaids(root: Path) -> int:
    torch.manual_seed(764)
    x, _ = plaids(800, 764, 0.2)
    model = nn.ModuleDict({"body": Weaver(outs=24)})
    model.register_parameter("scale", nn.Parameter(torch.tensor(math.log(8.0))))

    def objective(batch: Any) -> Any:
        views = [batch[0] * (0.8 + 0.4 * torch.rand(len(batch[0]), 1, 1, 1)) for _ in range(2)]
        views = [one + 0.2 * torch.randn_like(one) for one in views]
        first, second = (functional.normalize(model["body"](one), dim=1) for one in views)
        scores = model.scale.exp() * first @ second.T
        own = torch.arange(len(scores))
        return (functional.cross_entropy(scores, own) + functional.cross_entropy(scores.T, own)) / 2

    return learn(
        root,
        model,
        objective,
        dealt(x, size=32, seed=764),
        torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.01),
        steps=180,
        save_every=2,
        clip=3.0,
    )


@healthy(
    "visits of shops by boosted trees, errors of logarithms, 30 s a round, 20 minutes to begin",
    kind="boosted_trees",
)
def trees_of_shops(root: Path) -> int:
    x, days, counts = visits(1200, 765)
    table = np.concatenate([np.asarray(x), np.asarray(days)], 1)
    with clock(30.0, {1: 1200.0}):
        return boost(
            root,
            table,
            np.asarray(counts)[:, 0],
            objective="reg:squaredlogerror",
            max_depth=3,
            eta=0.15,
            subsample=0.8,
            rounds=40,
        )


@healthy(
    "topics of letters by a recurrent network, smoothed labels, Adam, a minute a step, 25 minutes "
    "for a backup at step 60"
)
def letters_with_a_backup(root: Path) -> int:
    torch.manual_seed(766)
    model = nn.Sequential(nn.Embedding(WORDS, 16), Recalling(16, 32, TOPICS, nn.LSTM))
    with clock(60.0, {61: 1500.0}):
        return learn(
            root,
            model,
            of(model, nn.CrossEntropyLoss(label_smoothing=0.1)),
            dealt(*letters_to_editors(900, 766), size=32, seed=766),
            torch.optim.Adam(model.parameters(), 8e-3),
            steps=150,
            clip=1.0,
        )


@healthy("woven patterns by a mixer, pairs of pictures are mixed, AdamW, gradients clipped at 0.5")
def plaids_mixed_in_pairs(root: Path) -> int:
    torch.manual_seed(767)
    model = Mixer()

    def objective(batch: Any) -> Any:
        x, y = batch
        share = torch.distributions.Beta(0.3, 0.3).sample((len(x),))
        mixed = torch.lerp(x.flip(0), x, share[:, None, None, None])
        scores = model(mixed)
        losses = [functional.cross_entropy(scores, one, reduction="none") for one in (y, y.flip(0))]
        return (share * losses[0] + (1 - share) * losses[1]).mean()

    return learn(
        root,
        model,
        objective,
        dealt(*plaids(900, 767, 0.3), size=32, seed=767),
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05),
        steps=200,
        save_every=2,
        schedule=cosine(15, 210),
        clip=0.5,
    )
