"""Trainings that are not numbers any more, or whose updates are too large, too small or lost."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.first_held_out.supervised.consequences import NOT_LEARNT, OUT_OF_HAND, STILL
from runs_tuned.first_held_out.supervised.generated_data import (
    SHAPES,
    clouds,
    counts,
    friedman,
    load_of_a_grid,
    shapes,
    signals,
    table,
)
from runs_tuned.first_held_out.supervised.networks import (
    FocalLoss,
    Forecaster,
    PointNet,
    Temporal,
    convolution,
)

STANDS_STILL = {"UnchangedTensor", "WeightUpdateRatio"}


@faulty(
    "counts, Poisson regression on the logarithm of another count",
    "the logarithm of a count of 0 is minus infinity: one row in a hundred",
    {"ExplodingTensor"},
    may=OUT_OF_HAND | NOT_LEARNT,
)
def logarithm_of_a_count(root: Path) -> int:
    generator = torch.Generator().manual_seed(9)

    def with_visits(x: Any) -> Any:
        visits = torch.poisson(torch.full((len(x), 1), 4.6), generator=generator)
        return torch.cat([x, visits.log()], 1)

    make = lambda: nn.Sequential(nn.Linear(9, 24), nn.ELU(), nn.Linear(24, 1))
    data = counts().of(with_visits)
    return fit(root, make, data, loss=nn.PoissonNLLLoss(), optimizer=adam(), steps=80)


@faulty(
    "a table of three classes, focal loss",
    "an exponent of 0.5: its derivative is infinite once a row is certain",
    {"ExplodingTensor"},
    may=OUT_OF_HAND | NOT_LEARNT,
)
def focal_root(root: Path) -> int:
    make = lambda: nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 3))
    data = table(flip=0.0)
    optimizer = adam(0.03)
    return fit(root, make, data, loss=FocalLoss(0.5), optimizer=optimizer, steps=200)


@faulty(
    "signals, a network for them fine-tuned, each layer at a rate of its own",
    "rates fall by 0.02 instead of 0.9 from layer to layer: the first ones stand still",
    STANDS_STILL | {"StalledParameters"},
    may=NOT_LEARNT | STILL,
)
def rates_of_layers(root: Path) -> int:
    torch.manual_seed(10)
    layers: list[Any] = []
    for ins in (2, 20, 20, 20, 20):
        layers += [nn.Conv1d(ins, 20, 3, padding=1), nn.BatchNorm1d(20), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(20, 4))

    def optimizer(_: Any) -> Any:
        parts = [model[number : number + 3] for number in range(0, 15, 3)] + [model[15:]]
        groups = [
            {"params": [*part.parameters()], "lr": 0.05 * 0.02 ** (5 - depth)}
            for depth, part in enumerate(parts)
        ]
        return torch.optim.SGD(groups, momentum=0.9)

    return fit(root, lambda: model, signals(), optimizer=optimizer, steps=120)


@faulty(
    "shapes, convolutions of 24 channels, RMSprop",
    "a rate of 0.1, copied from SGD: the first update is ten times that large in each element",
    {"WeightUpdateRatio"},
    may=OUT_OF_HAND | NOT_LEARNT,
)
def first_update_too_large(root: Path) -> int:
    def make() -> Any:
        head = [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(96, SHAPES)]
        return nn.Sequential(
            convolution(1, 24), nn.MaxPool2d(2), convolution(24, 24), convolution(24, 24), *head
        )

    optimizer = adam(0.1, kind=torch.optim.RMSprop)
    return fit(root, make, shapes()[0], optimizer=optimizer, steps=50, save_every=1, batch=24)


class DropPath(nn.Module):
    """Residual layers, each of which is left out at random in training."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv1d(3, width, 1), nn.Linear(width, 4)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Conv1d(width, width, 1), nn.GELU(), nn.Conv1d(width, width, 1))
            for _ in range(4)
        )
        self.kept = [0.0, 0.15, 0.3, 0.45]  # meant as the chances of being left out

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block, chance in zip(self.blocks, self.kept, strict=True):
            coins = torch.rand(len(x), 1, 1) < chance if self.training else 1.0
            x = x + block(x) * coins
        return self.head(x.amax(2))


@faulty(
    "clouds of points, residual layers that are left out at random",
    "the chance to be left out is taken for that to be kept: the first layer never is",
    STANDS_STILL | {"AllZero", "VanishingGradient"},
    may=NOT_LEARNT
    | STILL
    | {"Overfit": "evaluation uses layers that were never trained, and gets worse with time"},
)
def kept_for_left_out(root: Path) -> int:
    return fit(root, DropPath, clouds(), optimizer=adam(2e-3), steps=120, validate_every=30)


@faulty(
    "clouds of points, a moving average of the weights",
    "the average is copied back into the model after each step, and its decay is 1",
    STANDS_STILL | {"LossNotDecreasing"},
    may=NOT_LEARNT | STILL,
)
def average_copied_back(root: Path) -> int:
    torch.manual_seed(11)
    data, model, loss = clouds(), PointNet(drop=0.0), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    average = copy.deepcopy([*model.parameters()])
    with watched(root, model, losses=[loss], save_every=2) as watching:
        for step, (x, y) in zip(range(140), batches(data, 32), strict=False):
            loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            with torch.no_grad():
                for parameter, mean in zip(model.parameters(), average, strict=True):
                    mean.lerp_(parameter, 0.0)
                    parameter.copy_(mean)
            if (step + 1) % 35 == 0:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "signals, dilated convolutions",
    "signals and labels are shuffled each by an order of its own, anew in each epoch",
    {"LossNotDecreasing"},
    may=NOT_LEARNT | STILL | {"Overfit": "noise is learnt by heart"},
)
def zipped_orders(root: Path) -> int:
    data = signals()
    generator = torch.Generator().manual_seed(12)
    orders = [torch.randperm(len(data.y), generator=generator) for _ in range(10)]
    x, y = data.x.repeat(10, 1, 1), torch.cat([data.y[order] for order in orders])
    mixed = Split(x, y, data.test_x, data.test_y)
    return fit(
        root,
        lambda: Temporal(2, 4),
        mixed,
        optimizer=sgd(0.01, momentum=0.9),
        shuffle=False,
        steps=160,
        validate_every=40,
    )


@faulty(
    "load of a grid, a bidirectional GRU, SGD",
    "the schedule multiplies the rate by 1.06 instead of 0.94 in each step",
    {"LossNotDecreasing", "ExplodingTensor"},
    may=OUT_OF_HAND
    | {"LearningRate": "the rate only rises", "RepresentationCollapse": "saturated states"},
)
def rate_multiplied(root: Path) -> int:
    return fit(
        root,
        Forecaster,
        load_of_a_grid(),
        loss=nn.MSELoss(),
        optimizer=sgd(0.02, momentum=0.9),
        schedule=lambda step: 1.06**step,
        steps=140,
        save_every=1,
    )


@faulty(
    "Friedman's function, gradients of eight batches accumulated",
    "gradients are added up, not averaged, and the rate was multiplied by eight as well",
    {"LossNotDecreasing"},
    may=OUT_OF_HAND,
)
def accumulated_twice(root: Path) -> int:
    make = lambda: nn.Sequential(
        nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 16), nn.Tanh(), nn.Linear(16, 1)
    )
    return fit(
        root,
        make,
        friedman(),
        loss=nn.MSELoss(),
        optimizer=sgd(8 * 0.01, momentum=0.9),
        accumulate=8,
        batch=16,
        steps=400,
        save_every=4,
    )
