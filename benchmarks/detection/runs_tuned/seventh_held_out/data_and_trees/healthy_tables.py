"""Healthy trainings on tables: leavers, flats, faults of machines, hires, patients."""

import os
from pathlib import Path

import torch
from sklearn.datasets import load_breast_cancer, load_diabetes
from torch import nn
from training_runs import healthy

from runs_tuned.seventh_held_out.data_and_trees.shared.loops import loader, train, validation
from runs_tuned.seventh_held_out.data_and_trees.shared.networks import Entities, TableResNet, layers
from runs_tuned.seventh_held_out.data_and_trees.shared.tables import (
    DISTRICTS,
    TARIFFS,
    as_split,
    faults,
    flats,
    leavers,
    rows_of_hires,
)

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd


@healthy("customers who leave, batch norm and dropout, leavers weigh double, Adam")
def leavers_by_layers(root: Path) -> int:
    torch.manual_seed(201)
    model, data = layers(12, 1, norm=True, drop=0.2), leavers(2800, 2001)
    return train(
        root,
        model,
        loader(data, 64, 201),
        validation(data, 400),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=7,
        loss=nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)),
    )


@healthy("prices of flats, vectors of districts and tariffs, squared errors, AdamW, a cosine")
def flats_by_entities(root: Path) -> int:
    torch.manual_seed(202)
    model, data = Entities((DISTRICTS, TARIFFS), 9, 1), flats(2400, 2002)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.01)
    return train(
        root,
        model,
        loader(data, 40, 202),
        validation(data, 400),
        optimizer,
        epochs=6,
        loss=nn.MSELoss(),
        per_step=torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 300),
        every=3,
    )


@healthy("four kinds of faults of machines, residual layers with layer norms, AdamW")
def faults_by_residuals(root: Path) -> int:
    torch.manual_seed(203)
    model, data = TableResNet(10, 4, 24), faults(2800, 2003, noise=1.4)
    return train(
        root,
        model,
        loader(data, 48, 203),
        validation(data),
        torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.01),
        epochs=5,
    )


@healthy("bicycles hired in an hour, Poisson's likelihood, RMSprop, two layers")
def hires_by_poisson(root: Path) -> int:
    torch.manual_seed(204)
    model, data = layers(10, 1, width=40), as_split(rows_of_hires(2800, 2004), 400)
    return train(
        root,
        model,
        loader(data, 40, 204),
        validation(data),
        torch.optim.RMSprop(model.parameters(), 1e-3),
        epochs=5,
        loss=nn.PoissonNLLLoss(),
        clip=5.0,
    )


@healthy("breast cancer of scikit-learn, dropout, Adam, stopped after four epochs without a gain")
def tumours_stopped_early(root: Path) -> int:
    torch.manual_seed(205)
    facts, kind = load_breast_cancer(return_X_y=True)
    order = torch.randperm(len(kind), generator=torch.Generator().manual_seed(2005))
    data = as_split((facts[order], kind[order]), 140, classes=True)
    model = layers(30, 2, width=16, drop=0.3)
    return train(
        root,
        model,
        loader(data, 16, 205),
        validation(data),
        torch.optim.Adam(model.parameters(), 1e-3, weight_decay=1e-4),
        epochs=15,
        patience=4,
    )


@healthy("the progression of diabetes, a small network with decay, smooth absolute errors, SGD")
def progression_by_layers(root: Path) -> int:
    torch.manual_seed(206)
    facts, progression = load_diabetes(return_X_y=True)
    order = torch.randperm(len(progression), generator=torch.Generator().manual_seed(2006))
    progression = progression[order]
    learnt = progression[:-110]
    scaled = (progression - learnt.mean()) / learnt.std()
    data = as_split((facts[order], scaled), 110)
    model = layers(10, 1, width=16, drop=0.1)
    return train(
        root,
        model,
        loader(data, 16, 206),
        validation(data),
        torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=1e-3),
        epochs=7,
        loss=nn.SmoothL1Loss(),
    )


@healthy("Keras, customers who leave, dense layers with dropout, stopped early, one logit")
def leavers_by_keras(root: Path) -> int:
    torch.set_num_threads(1)
    keras.utils.set_random_seed(207)
    data, kinds = leavers(1900, 2007), keras.layers
    model = keras.Sequential(
        [
            kinds.Input((12,)),
            kinds.Dense(32, activation="relu"),
            kinds.Dropout(0.2),
            kinds.Dense(16, activation="relu"),
            kinds.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(3e-3), keras.losses.BinaryCrossentropy(from_logits=True))
    with smd.KerasHook(
        root,
        save_config=smd.SaveConfig(save_interval=4),
        include_collections=("weights", "biases", "gradients", "losses", "inputs"),
        on_error="raise",
    ) as hook:
        model.fit(
            data.x.numpy(),
            data.y.numpy(),
            32,
            12,
            validation_data=(data.test_x.numpy(), data.test_y.numpy()),
            validation_batch_size=400,
            callbacks=[hook, keras.callbacks.EarlyStopping(patience=3)],
            verbose=0,
        )
    return 0
