"""Trainings that learn by heart, or that go on when there is nothing left to learn."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xgboost
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit
from training_runs import faulty

from runs_tuned.fifth_held_out.data_and_trees.shared.consequences import BY_HEART
from runs_tuned.fifth_held_out.data_and_trees.shared.loops import learn
from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import Slim, land
from runs_tuned.fifth_held_out.data_and_trees.shared.rounds import grow, parted
from runs_tuned.fifth_held_out.data_and_trees.shared.tables import (
    Crossed,
    houses,
    matrices,
    turbines,
)
from runs_tuned.fifth_held_out.data_and_trees.shared.texts import (
    SHOPS,
    Mean,
    Visitor,
    mails,
    next_shops,
)


def partly_wrong(classes: int, share: float, seed: int) -> Callable[[Any], Any]:
    """Return what replaces a share of labels by any."""
    generator = torch.Generator().manual_seed(seed)

    def change(y: Any) -> Any:
        any_class = torch.randint(0, classes, (len(y),), generator=generator)
        return torch.where(torch.rand(len(y), generator=generator) < share, any_class, y)

    return change


@faulty(
    "XGBoost, noisy failures of 300 turbines, weighted by what these cost, 120 rounds",
    "costs are in cents: leaves of ten and all penalties are nothing beside weights of thousands",
    {"Overfit"},
    may=BY_HEART,
    kind="boosted_trees",
)
def costs_in_cents(root: Path) -> None:
    x, failed = matrices(turbines(1000, 561, noise=1.6, share=0.45, tested=700))
    cost = np.random.default_rng(561).uniform(1000, 3000, 1000)
    learnt = xgboost.DMatrix(x[:-700], failed[:-700], weight=cost[:-700])
    other = xgboost.DMatrix(x[-700:], failed[-700:], weight=cost[-700:])
    grow(
        root,
        (learnt, other),
        120,
        "binary:logistic",
        max_depth=5,
        eta=0.1,
        min_child_weight=10,
        reg_lambda=20,
        reg_alpha=5,
    )


def pairs_of_words(x: Any) -> Any:
    """Return numbers of the pairs of words in 2,000 buckets, 0 for padding."""
    both = (x[:, :-1] > 0) & (x[:, 1:] > 0)
    return torch.where(both, 1 + (x[:, :-1] * 157 + x[:, 1:] * 31) % 2000, 0)


@faulty(
    "mails of five desks by the mean of their pairs of words, 140 mails, some at a wrong desk",
    "a vector for each of 2,000 pairs, without any penalty: most pairs come once",
    {"Overfit"},
    may=BY_HEART,
)
def vectors_of_pairs(root: Path) -> int:
    data = mails(740, 562, sharp=1.3, tested=600).taught(partly_wrong(5, 0.3, 562))
    return fit(
        root,
        lambda: Mean(5, 32, words=2001),
        data.of(pairs_of_words),
        optimizer=adam(8e-3),
        steps=200,
        batch=20,
        validate_every=7,
        seed=51,
    )


def shifted(data: Split, size: int, most: float, seed: int) -> Any:
    """Yield shuffled batches of pictures, shifted by up to `most` pixels, rounded down."""
    generator = torch.Generator().manual_seed(seed)
    for x, y in batches(data, size, seed):
        by = (most * (2 * torch.rand(2, generator=generator) - 1)).long().tolist()
        yield x.roll(by, (2, 3)), y


@faulty(
    "land of four kinds in 100 noisy pictures, shifted by chance, convolutions, Adam",
    "shifts are a tenth, meant as a share of the side and taken as pixels: nothing is shifted",
    {"Overfit"},
    may=BY_HEART,
)
def shifts_of_a_tenth(root: Path) -> int:
    torch.manual_seed(53)
    data = land(700, 563, noise=1.6, tested=600).taught(partly_wrong(4, 0.15, 563))
    model = Slim(1, 4, 25, drop=0.0)
    return learn(
        root,
        model,
        shifted(data, 20, 0.1, 53),
        data,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
        steps=210,
        validate_every=7,
    )


@faulty(
    "XGBoost, prices of houses, squared errors, 160 rounds at most",
    "gamma is for prices in thousands: it allows no split after 40 rounds, and nothing stops",
    {"Overtraining"},
    may=BY_HEART
    | {"FeatureImportanceOverweight": "only the strongest features are worth the cost of a split"},
    kind="boosted_trees",
)
def gamma_for_thousands(root: Path) -> None:
    x, price = matrices(houses(1600, 564, tested=400))
    grow(
        root,
        parted(x, price, 400),
        160,
        "reg:squarederror",
        max_depth=4,
        eta=0.1,
        gamma=3.0,
    )


@faulty(
    "prices of houses by products of features, squared errors, the rate falls when nothing helps",
    "the rate may fall without limit, and nothing stops the training when it is next to nothing",
    {"Overtraining"},
    may=BY_HEART,
)
def rate_falls_without_limit(root: Path) -> int:
    torch.manual_seed(55)
    data, model = houses(3000, 565, noise=0.7, tested=500), Crossed(11, 1, 8)
    optimizer = torch.optim.Adam(model.parameters(), 0.02, weight_decay=1e-3)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=2)
    copied = copy.deepcopy(model)  # one that no hook watches

    def after_step(step: int) -> None:
        if step % 20 == 19:
            copied.load_state_dict(model.state_dict())
            with torch.no_grad():
                plateau.step(nn.functional.mse_loss(copied(data.test_x), data.test_y))

    return learn(
        root,
        model,
        batches(data, 64, 55),
        data,
        optimizer=optimizer,
        loss=nn.MSELoss(),
        steps=640,
        save_every=5,
        validate_every=20,
        after_step=after_step,
    )


@faulty(
    "the next of twelve shops by an LSTM, 5,000 visits, Adam",
    "max_steps of 420 is left in the settings and counts more than the number of epochs, one",
    {"Overtraining"},
    may=BY_HEART,
)
def steps_before_epochs(root: Path) -> int:
    return fit(
        root,
        lambda: Visitor(SHOPS, 10),
        next_shops(5000, 566, tested=500, length=5),
        optimizer=adam(8e-3, weight_decay=2e-3),
        steps=420,
        save_every=3,
        validate_every=16,
        seed=56,
    )
