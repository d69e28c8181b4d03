"""What is learnt by heart, and trainings that should be the same as an earlier one and are not."""

from pathlib import Path

import numpy as np
import torch
from torch import nn
from training_runs import faulty

from runs_held_out.data_and_trees.shared.consequences import LEARNT_BY_HEART
from runs_held_out.data_and_trees.shared.loops import (
    adamw,
    grow,
    held_back,
    learn,
    parted,
    shuffled,
)
from runs_held_out.data_and_trees.shared.networks import Encoder, perceptron
from runs_held_out.data_and_trees.shared.tables import crops, loans, scaled, turbines
from runs_held_out.data_and_trees.shared.texts import VOCABULARY, ticket_data


@faulty(
    "power of turbines, 160 noisy rows, a wide network, Adam, 60 epochs",
    "160 rows for 25,000 weights, without decay, dropout or an early stop: noise is learnt",
    {"Overfit"},
    may=LEARNT_BY_HEART,
)
def wide_network_of_few_rows(root: Path) -> int:
    torch.manual_seed(891)
    data, model = scaled(turbines(560, 8091, noise=1.2), 400), perceptron(13, 1, 150)
    return learn(
        root,
        model,
        shuffled(data, 20, 891),
        held_back(data, 50),
        torch.optim.Adam(model.parameters(), 3e-3),
        epochs=60,
        loss=nn.MSELoss(),
        save_every=4,
    )


@faulty(
    "tickets of five queues, 200 of them, a transformer, AdamW, 30 epochs at a constant rate",
    "no pretrained words, dropout off and no early stop: the 200 tickets are known after a few",
    {"Overfit"},
    may=LEARNT_BY_HEART,
)
def transformer_of_200_tickets(root: Path) -> int:
    torch.manual_seed(892)
    data = ticket_data(500, 8092, told=0.35, tested=300)
    model = Encoder(VOCABULARY, 5, 24, drop=0.0)
    return learn(
        root,
        model,
        shuffled(data, 20, 892),
        held_back(data, 60),
        adamw(model, 1e-3),
        epochs=30,
        save_every=4,
    )


@faulty(
    "XGBoost, five noisy crops, 300 rows, depth 5",
    "a rate of 0.5 and 150 rounds without an early stop: validation is worse from round five on",
    {"Overfit"},
    may=LEARNT_BY_HEART,
    kind="boosted_trees",
)
def fast_rounds_of_few_rows(root: Path) -> None:
    grow(
        root,
        parted(*crops(900, 8093, noise=2.2), 600),
        150,
        "multi:softprob",
        save_every=2,
        num_class=5,
        eval_metric="mlogloss",
        max_depth=5,
        eta=0.5,
    )


@faulty(
    "which loans are not paid back, on another machine",
    "rows are read from files in the order in which that machine lists them",
    {"SimilarAcrossRuns"},
    other="loans_of_two_classes",
)
def files_in_another_order(root: Path) -> int:
    torch.manual_seed(838)
    x, lost = loans(2600, 8038)
    files = [np.arange(at, at + 220) for at in range(0, 2200, 220)]
    listed = np.concatenate([files[at] for at in (3, 0, 7, 1, 9, 4, 2, 8, 5, 6)])
    order = np.concatenate([listed, np.arange(2200, 2600)])
    data = scaled((x[order], lost[order]), 400, classes=True)
    model = perceptron(14, 2, 32, drop=0.1)
    return learn(
        root,
        model,
        shuffled(data, 44, 838),
        held_back(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=4,
    )


@faulty(
    "which loans are not paid back, after the code was tidied",
    "Adam became AdamW, as if it were the same: it decays weights by 0.01 by default",
    {"SimilarAcrossRuns"},
    other="loans_of_two_classes",
)
def adam_became_adamw(root: Path) -> int:
    torch.manual_seed(838)
    data = scaled(loans(2600, 8038), 400, classes=True)
    model = perceptron(14, 2, 32, drop=0.1)
    return learn(
        root,
        model,
        shuffled(data, 44, 838),
        held_back(data),
        torch.optim.AdamW(model.parameters(), 2e-3),
        epochs=4,
    )


@faulty(
    "XGBoost, crops by columns that are drawn, once more",
    "a table is joined anew, and two of its columns have changed places",
    {"SimilarAcrossRuns"},
    other="trees_of_drawn_columns",
    kind="boosted_trees",
)
def columns_that_changed_places(root: Path) -> None:
    x, kind = crops(2000, 8061, noise=1.2)
    grow(
        root,
        parted(x[:, [0, 1, 7, 3, 4, 5, 6, 2, 8, 9, 10]], kind, 400),
        40,
        "multi:softprob",
        num_class=5,
        eval_metric="mlogloss",
        max_depth=4,
        eta=0.1,
        subsample=0.8,
        colsample_bytree=0.6,
    )
