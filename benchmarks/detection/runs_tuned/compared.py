"""Pairs of trainings that should be the same: some are, and some differ by an accident."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.boosting import boost, table
from training.learnt_data import digits, images
from training.learnt_data import table as split
from training.small_networks import Cnn, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty, healthy

from runs_tuned.healthy.images import digits_dropout, digits_momentum
from runs_tuned.healthy.tables import wine_tanh

DIFFERS = {"SimilarAcrossRuns"}


@healthy("digits with momentum, a second time", other="digits_momentum")
def digits_momentum_again(root: Path) -> int | None:
    return digits_momentum(root)


@healthy("digits with dropout, a second time with the same seed", other="digits_dropout")
def digits_dropout_again(root: Path) -> int | None:
    return digits_dropout(root)


@healthy("wine with tanh, a second time", other="wine_tanh")
def wine_tanh_again(root: Path) -> int | None:
    return wine_tanh(root)


@healthy("XGBoost, breast cancer, a second time", other="boosted_cancer", kind="boosted_trees")
def boosted_cancer_again(root: Path) -> int:
    return boost(root, *table("breast_cancer"), max_depth=3, eta=0.2)


@faulty(
    "digits with momentum, a second time",
    "the seed was not set",
    DIFFERS,
    other="digits_momentum",
)
def digits_other_seed(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(
        root, mlp(64, 48, 32, 10), digits(), optimizer=optimizer, save_every=1, steps=160, seed=1
    )


@faulty(
    "digits with momentum, a second time",
    "the learning rate is 1 % higher",
    DIFFERS,
    other="digits_momentum",
)
def digits_other_rate(root: Path) -> int:
    optimizer = sgd(0.0505, momentum=0.9)
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=optimizer, save_every=1, steps=160)


@faulty(
    "wine with tanh, a second time",
    "the data are in another order",
    DIFFERS,
    other="wine_tanh",
)
def wine_other_order(root: Path) -> int:
    data = split("wine")
    order = torch.arange(len(data.x)).flip(0)
    optimizer = sgd(0.05, momentum=0.9, weight_decay=1e-3)
    return fit(
        root,
        mlp(13, 16, 3, act=nn.Tanh),
        data.chosen(order),
        optimizer=optimizer,
        batch=16,
        steps=80,
        save_every=1,
    )


@faulty(
    "wine with tanh, a second time",
    "weight decay is switched off at step 40, by an edited configuration",
    DIFFERS,
    other="wine_tanh",
)
def wine_other_decay(root: Path) -> int:
    def change(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["weight_decay"] = 0.0

    optimizer = sgd(0.05, momentum=0.9, weight_decay=1e-3)
    return fit(
        root,
        mlp(13, 16, 3, act=nn.Tanh),
        split("wine"),
        optimizer=optimizer,
        batch=16,
        steps=80,
        save_every=1,
        at=40,
        change=change,
    )


@faulty(
    "XGBoost, breast cancer, a second time",
    "rows are sampled with another seed",
    DIFFERS,
    other="boosted_cancer",
    kind="boosted_trees",
)
def boosted_other_sample(root: Path) -> int:
    return boost(root, *table("breast_cancer"), max_depth=3, eta=0.2, subsample=0.9)


@faulty(
    "digits, convolutions, a second time",
    "another activation is the default of a new version",
    DIFFERS,
    other="digits_cnn",
)
def digits_other_activation(root: Path) -> int:
    make = lambda: Cnn(act=nn.Softplus)
    return fit(root, make, images(), optimizer=adam(5e-3), save_every=3)
