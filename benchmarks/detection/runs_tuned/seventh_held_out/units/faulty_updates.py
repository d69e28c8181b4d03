"""Faulty trainings of updates: none at all, tiny ones, and huge ones."""

from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
from training_runs import faulty

from runs_tuned.seventh_held_out.units.shared.consequences import CUT_OFF, OVERSIZED
from runs_tuned.seventh_held_out.units.shared.loop import loader, train
from runs_tuned.seventh_held_out.units.shared.pictures import (
    FABRICS,
    LeNet,
    Vgg,
    fabrics,
    trained_before,
    written,
)
from runs_tuned.seventh_held_out.units.shared.series import MOVES, Forecaster, movements
from runs_tuned.seventh_held_out.units.shared.tables import (
    SEEDS,
    WAFERS,
    dense,
    houses,
    responses,
    seeds,
    wafers,
)

SCHEDULED = {"LearningRate": "the schedule is over long before the training"}
UNCLEARED = {
    "GradientAccumulates": "the optimizer clears the gradients of the parameters that it has",
    "GradientNormSpike": "gradients that are not cleared grow from step to step",
}


@faulty(
    "defects of wafers by ReLU layers, Adam, the rate falls by 15 % from epoch to epoch",
    "the scheduler is stepped in the loop over batches: within two epochs no rate is left",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | SCHEDULED,
)
def rate_of_epochs_falls_by_batches(root: Path) -> int:
    torch.manual_seed(61)
    model = dense(20, 64, 32, WAFERS)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return train(
        root,
        model,
        wafers(1800, 7501),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.ExponentialLR(optimizer, 0.85),
        epochs=6,
        seed=61,
    )


@faulty(
    "defects of wafers by ReLU layers, Adam",
    "the exponent of the rate got lost: 3 and not 3e-3; the first step overrides all weights",
    {"WeightUpdateRatio"},
    may=OVERSIZED | CUT_OFF,
)
def exponent_of_the_rate_is_lost(root: Path) -> int:
    torch.manual_seed(62)
    model = dense(20, 96, 48, WAFERS)
    optimizer = torch.optim.Adam(model.parameters(), 3.0)
    loss, data = nn.CrossEntropyLoss(), wafers(1800, 7502)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=3, save_every=1, seed=62)


@faulty(
    "responses of a machine by layers with GELU, SGD at a rate for mean errors",
    "squared errors are summed over the 64 rows of a batch: steps are 64 times as large",
    {"LossNotDecreasing", "WeightUpdateRatio"},
    may=OVERSIZED | CUT_OFF,
)
def errors_summed_over_the_batch(root: Path) -> int:
    torch.manual_seed(63)
    model = dense(10, 64, 32, 1, act=nn.GELU)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    loss, data = nn.MSELoss(reduction="sum"), responses(1800, 0.8, 7503)
    return train(
        root, model, data, loss=loss, optimizer=optimizer, epochs=4, batch=64, save_every=1, seed=63
    )


@faulty(
    "fabrics by convolutions with batch norm, their head replaced by a larger one, momentum",
    "the optimizer is made before both are put in: it has the old head, the new layers never move",
    {"ParametersWithoutOptimizer", "StalledParameters", "UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | UNCLEARED,
)
def optimizer_made_before_the_head(root: Path) -> int:
    torch.manual_seed(64)
    model = Vgg(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=1e-4)
    model[-1] = nn.Sequential(nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, FABRICS))
    loss, data = nn.CrossEntropyLoss(), fabrics(1100, 0.7, 12, 7504)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=5, save_every=3, seed=64)


@faulty(
    "species of seeds by ReLU layers, two folds, Adam; the second fold is watched",
    "each fold makes a model of its own, the optimizer is made once: it still has the first model",
    {"LossNotDecreasing", "ParametersWithoutOptimizer", "UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | UNCLEARED,
)
def second_fold_with_the_first_optimizer(root: Path) -> int:
    torch.manual_seed(65)
    loss, data = nn.CrossEntropyLoss(), seeds(1700, 1.0, 7505)
    first = dense(10, 48, 32, SEEDS)
    optimizer = torch.optim.Adam(first.parameters(), 3e-3)
    for x, y in loader(data, 32, 65):
        optimizer.zero_grad()
        loss(first(x), y).backward()
        optimizer.step()
    second = dense(10, 48, 32, SEEDS)
    return train(root, second, data, loss=loss, optimizer=optimizer, epochs=6, seed=66)


@faulty(
    "movements by a GRU, AdamW, the rate falls along a line over eight epochs",
    "the line counts epochs and is stepped by batches: the rate is 0 after eight batches",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | SCHEDULED,
)
def line_of_epochs_ends_after_batches(root: Path) -> int:
    torch.manual_seed(67)
    model, epochs = Forecaster(nn.GRU, 3, MOVES, 24), 8
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    return train(
        root,
        model,
        movements(1000, 0.6, 7506),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.PolynomialLR(optimizer, epochs),
        epochs=epochs,
        seed=67,
    )


@faulty(
    "prices of houses by layers with SiLU, SGD, losses scaled by 65536 for half precision",
    "gradients are not scaled back before the step, which is 65536 times as large as meant",
    {"LossNotDecreasing", "WeightUpdateRatio"},
    may=OVERSIZED | CUT_OFF,
)
def gradients_are_not_scaled_back(root: Path) -> int:
    torch.manual_seed(68)
    model = dense(8, 64, 32, 1, act=nn.SiLU)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    return train(
        root,
        model,
        houses(1600, 7507),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        backward=lambda value: (2.0**16 * value).backward(),
        epochs=3,
        save_every=1,
        seed=68,
    )


@faulty(
    "digits from 5 on by a LeNet that knows others, convolutions thawed after two epochs, Adam",
    "the optimizer was given what required a gradient at first: thawed convolutions never move",
    {"ParametersWithoutOptimizer", "StalledParameters", "UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | UNCLEARED,
)
def thawed_but_not_in_the_optimizer(root: Path) -> int:
    torch.manual_seed(69)
    model = trained_before(LeNet(1, 8, 5), written(0, 4), 120, 3e-3)
    model.classifier = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 5))
    model.features.requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 2e-3)
    data = written(5, 9)
    thaw = 2 * (len(data.x) // 24)

    def thawed(step: int) -> None:
        if step == thaw:
            model.features.requires_grad_(requires_grad=True)

    return train(
        root,
        model,
        data,
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        before=thawed,
        begins=thaw,
        epochs=6,
        batch=24,
        seed=69,
    )
