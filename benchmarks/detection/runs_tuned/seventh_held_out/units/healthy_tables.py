"""Healthy trainings of tables: dense layers, embeddings, attention over features."""

from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
from training_runs import healthy

from runs_tuned.seventh_held_out.units.shared.loop import train
from runs_tuned.seventh_held_out.units.shared.tables import (
    SEEDS,
    WAFERS,
    Bikes,
    FeatureTransformer,
    TabularResNet,
    Taste,
    customers,
    dense,
    houses,
    linear_layers,
    ratings,
    rentals,
    responses,
    seeds,
    tumours,
    wafers,
)


@healthy("prices of houses by two ReLU layers, Adam")
def house_prices_by_adam(root: Path) -> int:
    torch.manual_seed(1)
    model = dense(8, 64, 32, 1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return train(root, model, houses(), loss=nn.MSELoss(), optimizer=optimizer, epochs=5, seed=1)


@healthy("prices of houses by layers with batch norm and dropout, AdamW, one cosine, Huber's loss")
def house_prices_by_normed_layers(root: Path) -> int:
    torch.manual_seed(2)
    model = dense(8, 64, 64, 32, 1, norm=nn.BatchNorm1d, drop=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=1e-2)
    return train(
        root,
        model,
        houses(1800, 7101),
        loss=nn.HuberLoss(),
        optimizer=optimizer,
        by_step=schedules.CosineAnnealingLR(optimizer, 6 * (1350 // 48)),
        epochs=6,
        batch=48,
        seed=2,
    )


@healthy("which customers leave, three ReLU layers with dropout, momentum, steps down by epochs")
def leaving_customers(root: Path) -> int:
    torch.manual_seed(3)
    model = dense(11, 48, 24, 1, drop=0.2)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    return train(
        root,
        model,
        customers(),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=optimizer,
        by_epoch=schedules.StepLR(optimizer, 2, 0.5),
        epochs=6,
        batch=64,
        save_every=1,
        seed=3,
    )


@healthy("defects of wafers by ReLU layers with He's initialisation and biases of zero, RMSprop")
def wafers_by_rmsprop(root: Path) -> int:
    torch.manual_seed(4)
    model = dense(20, 96, 48, WAFERS)
    for layer in linear_layers(model):
        nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
    loss = nn.CrossEntropyLoss()
    return train(root, model, wafers(), loss=loss, optimizer=optimizer, epochs=5, seed=4)


@healthy("species of seeds by tanh layers with Glorot's initialisation, Nesterov's momentum")
def seeds_by_tanh(root: Path) -> int:
    torch.manual_seed(5)
    model = dense(10, 40, 40, SEEDS, act=nn.Tanh)
    for layer in linear_layers(model):
        nn.init.xavier_uniform_(layer.weight, gain=nn.init.calculate_gain("tanh"))
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, nesterov=True)
    loss = nn.CrossEntropyLoss()
    return train(root, model, seeds(), loss=loss, optimizer=optimizer, epochs=4, seed=5)


@healthy("rented bikes by embeddings and numbers, Adam with one cycle of the rate")
def rented_bikes(root: Path) -> int:
    torch.manual_seed(6)
    model = Bikes()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return train(
        root,
        model,
        rentals(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        by_step=schedules.OneCycleLR(optimizer, 1e-2, epochs=5, steps_per_epoch=1500 // 32),
        epochs=5,
        seed=6,
    )


@healthy("ratings of films by factors and biases of users and films, Adam, decay")
def film_ratings_by_factors_and_biases(root: Path) -> int:
    torch.manual_seed(7)
    model = Taste()
    optimizer = torch.optim.Adam(model.parameters(), 2e-2, weight_decay=1e-4)
    return train(
        root,
        model,
        ratings(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        epochs=5,
        batch=128,
        save_every=3,
        patience=2,
        seed=7,
    )


@healthy("defects of wafers by attention over features, AdamW, warm-up and a line down, clipped")
def wafers_by_attention_over_features(root: Path) -> int:
    torch.manual_seed(8)
    model = FeatureTransformer(20, WAFERS)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-5)
    steps = 8 * (1500 // 40)
    line = lambda step: min((step + 1) / 15, max(0.0, (steps - step) / (steps - 15)))
    return train(
        root,
        model,
        wafers(2000, 7108),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.LambdaLR(optimizer, line),
        epochs=8,
        batch=40,
        clip=1.0,
        save_every=3,
        seed=8,
    )


@healthy("responses of a machine by residual blocks for tables, AdamW, patience of two epochs")
def responses_by_residual_blocks(root: Path) -> int:
    torch.manual_seed(9)
    model = TabularResNet(10, 1)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-2)
    return train(
        root,
        model,
        responses(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        epochs=6,
        batch=48,
        patience=2,
        seed=9,
    )


@healthy("tumours by logistic regression on standardised measurements, SGD with decay")
def tumours_by_logistic_regression(root: Path) -> int:
    torch.manual_seed(10)
    model = nn.Linear(30, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, weight_decay=1e-3)
    loss = nn.CrossEntropyLoss()
    return train(
        root, model, tumours(), loss=loss, optimizer=optimizer, epochs=12, batch=16, seed=10
    )
