"""Ends: what is learnt by heart, and what goes on although nothing is left."""

from pathlib import Path

import torch
from torch import nn
from training_runs import faulty

from runs_tuned.seventh_held_out.data_and_trees.shared.consequences import BY_HEART
from runs_tuned.seventh_held_out.data_and_trees.shared.loops import (
    boosted,
    loader,
    matrices,
    train,
    validation,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.networks import TableResNet, TextCnn, lenet
from runs_tuned.seventh_held_out.data_and_trees.shared.pictures import land
from runs_tuned.seventh_held_out.data_and_trees.shared.tables import (
    faults,
    leavers,
    rows_of_faults,
    rows_of_leavers,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.texts import WORDS, news


@faulty(
    "tiles of mixed land, 120 of them, a LeNet, Adam, 45 epochs",
    "120 pictures without augmentation, dropout, decay or an early stop",
    {"Overfit"},
    may=BY_HEART,
)
def few_tiles_for_long(root: Path) -> int:
    torch.manual_seed(431)
    data = land(320, 5031, tested=200, mixed=0.95, noise=40.0)
    model = lenet(3, 5, 16)
    return train(
        root,
        model,
        loader(data, 20, 431),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=45,
        every=2,
    )


@faulty(
    "XGBoost, which of 250 customers leave, XGBoost's own rate and depth, log loss",
    "300 rounds are asked for and nothing stops it: noise is learnt from the first ones on",
    {"Overfit"},
    may=BY_HEART,
    kind="boosted_trees",
)
def three_hundred_rounds_for_250(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_leavers(850, 5032, noise=2.0), 600),
        300,
        "binary:logistic",
        every=2,
        eval_metric="logloss",
    )


@faulty(
    "news of four desks, 400 texts, a fifth at a wrong desk, convolutions, AdamW, 36 epochs",
    "dropout was set to 0 while code was tried out, and wrong desks are learnt by heart",
    {"Overfit"},
    may=BY_HEART,
)
def dropout_left_at_zero(root: Path) -> int:
    torch.manual_seed(433)
    generator = torch.Generator().manual_seed(5033)
    data = news(800, 5033, told=0.3).relabelled(
        lambda desk: torch.where(
            torch.rand(len(desk), generator=generator) < 0.25,
            torch.randint(0, 4, (len(desk),), generator=generator),
            desk,
        )
    )
    model = TextCnn(WORDS, 4, 20, 0.0)
    return train(
        root,
        model,
        loader(data, 20, 433),
        validation(data),
        torch.optim.AdamW(model.parameters(), 3e-3),
        epochs=36,
        every=4,
    )


@faulty(
    "customers who leave by logistic regression, Adam",
    "80 epochs as for the network before it: after ten no loss falls any more",
    {"Overtraining"},
    may=BY_HEART,
)
def epochs_of_the_network_before(root: Path) -> int:
    torch.manual_seed(434)
    data, model = leavers(2400, 5034, noise=1.0), nn.Sequential(nn.Linear(12, 1))
    return train(
        root,
        model,
        loader(data, 100, 434),
        validation(data, 400),
        torch.optim.Adam(model.parameters(), 1e-2),
        epochs=80,
        loss=nn.BCEWithLogitsLoss(),
        every=5,
    )


@faulty(
    "XGBoost, five kinds of faults, noisy, weak splits pruned, a rate of 0.3",
    "400 rounds are left from a rate of 0.01: after 40 there is no split that is worth it",
    {"Overtraining"},
    may=BY_HEART,
    kind="boosted_trees",
)
def rounds_of_a_slower_rate(root: Path) -> None:
    boosted(
        root,
        matrices(*rows_of_faults(2500, 5035, kinds=5, noise=1.8), 500),
        400,
        "multi:softprob",
        every=4,
        num_class=5,
        eval_metric="mlogloss",
        max_depth=3,
        eta=0.3,
        gamma=4.0,
        min_child_weight=5,
    )


@faulty(
    "four kinds of faults of machines, residual layers, AdamW, a rate that falls on plateaus",
    "the rate has no floor and nothing stops it: it is nothing after half of 40 epochs",
    {"Overtraining"},
    may=BY_HEART | {"LearningRate": "the rate falls to nothing long before the end"},
)
def plateaus_without_a_stop(root: Path) -> int:
    torch.manual_seed(436)
    data, model = faults(1900, 5036, noise=2.0), TableResNet(10, 4, 12, 0.2)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05)
    return train(
        root,
        model,
        loader(data, 75, 436),
        validation(data),
        optimizer,
        epochs=40,
        per_epoch=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.1, patience=1),
        every=5,
    )
