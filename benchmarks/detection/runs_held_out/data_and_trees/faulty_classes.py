"""Classes that are rare, or that the model takes for one another."""

from pathlib import Path

import numpy as np
import torch
import xgboost
from torch import nn
from torch.utils.data import WeightedRandomSampler
from training_runs import faulty

from runs_held_out.data_and_trees.shared.consequences import LEARNT_BY_HEART, UNTELLABLE
from runs_held_out.data_and_trees.shared.loops import (
    adamw,
    grow,
    held_back,
    learn,
    shuffled,
)
from runs_held_out.data_and_trees.shared.networks import BagOfWords, perceptron, vgg
from runs_held_out.data_and_trees.shared.pictures import (
    cloths,
    parts,
    signs,
    standardised,
)
from runs_held_out.data_and_trees.shared.tables import crops, scaled
from runs_held_out.data_and_trees.shared.texts import VOCABULARY, ticket_data


@faulty(
    "four kinds of cloth, plain convolutions with batch norm, Adam",
    "pictures are found by *.jpg, and those of one kind are nearly all *.JPG: one of 30 is found",
    {"ClassImbalance"},
    may=UNTELLABLE | LEARNT_BY_HEART,
)
def pictures_in_capitals(root: Path) -> int:
    torch.manual_seed(871)
    x, kind = cloths(2900, 8071)
    rng = torch.Generator().manual_seed(8071)
    found = (kind != 3) | (torch.rand(len(kind), generator=rng) < 1 / 30)
    data = standardised(parts(x[found], kind[found], 400))
    model = vgg(1, 4, norm=True)
    return learn(
        root,
        model,
        shuffled(data, 40, 871),
        held_back(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=4,
        save_every=2,
    )


@faulty(
    "tickets of four queues, six of the first to one of another, drawn by weights, a bag of words",
    "the sampler's weights are the counts of the queues, not one by them: 36 to one are drawn",
    {"ClassImbalance"},
    may=UNTELLABLE | LEARNT_BY_HEART,
)
def drawn_by_counts(root: Path) -> int:
    torch.manual_seed(872)
    data = ticket_data(2800, 8072, queues=4, told=0.4, shares=(6.0, 3.0, 2.0, 1.0))
    weights = torch.bincount(data.y).float()[data.y]
    generator = torch.Generator().manual_seed(8072)
    sampler = WeightedRandomSampler(weights, len(data.y), generator=generator)
    model = BagOfWords(VOCABULARY, 4)
    return learn(
        root,
        model,
        shuffled(data, 40, 872, shuffle=False, sampler=sampler),
        held_back(data),
        torch.optim.AdamW(model.parameters(), 3e-3),
        epochs=4,
        save_every=1,
    )


@faulty(
    "three crops, one of them half of all rows, weighed by how rare they are, dropout, Adam",
    "the weights are divided as integers: the most frequent crop weighs nothing",
    {"ClassImbalance"},
    may=UNTELLABLE | LEARNT_BY_HEART,
)
def weights_divided_as_integers(root: Path) -> int:
    torch.manual_seed(873)
    x, kind = crops(4000, 8073, kinds=3, noise=0.5)
    kept = (kind == 0) | (np.random.default_rng(8073).random(4000) < 0.5)
    data = scaled((x[kept], kind[kept]), 400, classes=True)
    counts = torch.bincount(data.y)
    weights = (len(data.y) // (3 * counts)).float()
    model = perceptron(11, 3, drop=0.1)
    return learn(
        root,
        model,
        shuffled(data, 40, 873),
        held_back(data),
        torch.optim.Adam(model.parameters(), 3e-3),
        epochs=5,
        loss=nn.CrossEntropyLoss(weight=weights),
    )


@faulty(
    "six signs, two of them red and green discs, batch norm, Adam, a falling rate",
    "pictures are made grey as in an example for MNIST: red discs look like green ones",
    {"Confusion"},
    may=UNTELLABLE,
)
def colours_made_grey(root: Path) -> int:
    torch.manual_seed(874)
    x, kind = signs(2900, 8074, bright=True)
    luma = torch.tensor([0.299, 0.587, 0.114])[:, None, None]
    data = standardised(parts((luma * x).sum(1, keepdim=True), kind, 500))
    model = vgg(1, 6, 12, norm=True)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    return learn(
        root,
        model,
        shuffled(data, 48, 874),
        held_back(data, 250),
        optimizer,
        epochs=9,
        each_epoch=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.6),
        check_every=25,
        save_every=6,
    )


@faulty(
    "XGBoost, six crops, log loss, depth 4; the rows to validate with have no crop of kind 2",
    "an encoder of its own numbers what is validated: kinds above 2 are one lower there",
    {"Confusion"},
    may=UNTELLABLE | LEARNT_BY_HEART,
    kind="boosted_trees",
)
def encoder_of_its_own(root: Path) -> None:
    x, kind = crops(3000, 8075, kinds=6, noise=0.8)
    learnt, other = slice(None, -700), slice(-700, None)
    there = kind[other] != 2
    numbers = np.unique(kind[other][there], return_inverse=True)[1].astype(float)
    grow(
        root,
        (xgboost.DMatrix(x[learnt], kind[learnt]), xgboost.DMatrix(x[other][there], numbers)),
        40,
        "multi:softprob",
        num_class=6,
        eval_metric="mlogloss",
        max_depth=4,
        eta=0.2,
        subsample=0.8,
    )


@faulty(
    "tickets of five queues, a bag of words, AdamW, evaluated every 20 steps",
    "those who labelled never agreed: refunds are filed under refunds or bills at random",
    {"Confusion"},
    may=UNTELLABLE | LEARNT_BY_HEART,
)
def refunds_filed_as_bills(root: Path) -> int:
    torch.manual_seed(876)
    generator = torch.Generator().manual_seed(8076)

    def filed(queue: torch.Tensor) -> torch.Tensor:
        either = torch.randint(0, 2, (len(queue),), generator=generator)
        return torch.where(queue < 2, either, queue)

    data = ticket_data(3200, 8076, told=0.6, shortest=18, tested=500).relabelled(filed)
    model = BagOfWords(VOCABULARY, 5)
    optimizer = adamw(model, 6e-3)
    return learn(
        root,
        model,
        shuffled(data, 50, 876),
        held_back(data, 250),
        optimizer,
        epochs=5,
        each_epoch=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5),
        check_every=20,
        save_every=4,
    )
