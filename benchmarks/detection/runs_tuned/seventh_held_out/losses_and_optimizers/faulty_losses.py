"""Losses that do not fall, and losses that jump."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.consequences import IDLE, SHAKEN
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.loops import cosine, train
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.networks import (
    Forecast,
    Opinion,
    Speaker,
    convolutions,
    layers,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.signals import (
    heartbeats,
    loads,
    shapes,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import houses, pumps
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.texts import (
    REVIEW_WORDS,
    SIGNS,
    recipes,
    reviews,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Losses that do not fall


@faulty(
    "shapes by convolutions, SGD with momentum",
    "pictures and labels are shuffled apart from each other before they are split",
    {"LossNotDecreasing"},
    may=IDLE,
)
def labels_shuffled_apart(root: Path) -> int:
    torch.manual_seed(7200)
    model = convolutions(norm=False)
    random = torch.Generator().manual_seed(7201)
    data = shapes(3000, 7200).relabelled(lambda y: y[torch.randperm(len(y), generator=random)])
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        data,
        torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        steps=180,
    )


@faulty(
    "prices of houses by layers, Adam at one rate",
    "the rate is 1 in place of 1e-3",
    {"LossNotDecreasing"},
    may=SHAKEN,
)
def rate_without_its_zeros(root: Path) -> int:
    torch.manual_seed(7202)
    model = layers(6, 64, 64, 1)
    return train(
        root,
        model,
        nn.MSELoss(),
        houses(2000, 7202),
        torch.optim.Adam(model.parameters(), 1.0),
        steps=160,
    )


@faulty(
    "rhythms of heartbeats by layers, Adam",
    "the optimizer has the parameters of a model that was copied afterwards, and the copy is "
    "trained",
    {"LossNotDecreasing", "ParametersWithoutOptimizer", "UnchangedTensor"},
    may=IDLE | {"GradientAccumulates": "nothing clears gradients that no optimizer has"},
)
def copied_after_the_optimizer(root: Path) -> int:
    torch.manual_seed(7204)
    model = nn.Sequential(nn.Flatten(), *layers(64, 48, 48, 3))
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    model = copy.deepcopy(model)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        heartbeats(1500, 7204),
        optimizer,
        steps=160,
        clear=lambda _: model.zero_grad(),
    )


@faulty(
    "praise in reviews by an encoder, AdamW at one rate, clipped",
    "the rate has four zeros too many: 2e-7 in place of 2e-3",
    {"LossNotDecreasing"},
    may=IDLE,
)
def rate_of_2e_7(root: Path) -> int:
    torch.manual_seed(7206)
    model = Opinion(REVIEW_WORDS, 16, blocks=1, drop=0.0)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        reviews(3000, 7206),
        torch.optim.AdamW(model.parameters(), 2e-7),
        steps=180,
        batch=64,
        clip=1.0,
    )


# Losses that jump


@faulty(
    "what ails pumps by layers, Adam, clipped; from step 96 on some batches are of a second file",
    "the second file, each twelfth batch, numbers classes in another order",
    {"LossSpike"},
    may=SHAKEN,
)
def classes_in_another_order(root: Path) -> int:
    torch.manual_seed(7210)
    model = layers(10, 48, 48, 4)

    def served(step: int, x: Any, y: Any) -> tuple[Any, Any]:
        return x, ((y + 1) % 4 if step >= 96 and step % 12 == 0 else y)

    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        pumps(3000, 7210),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=240,
        batch=64,
        clip=1.0,
        served=served,
        fault_at=96,
    )


@of_language(
    "recipes by a decoder, AdamW, warm-up and a cosine, clipped; from step 98 on some batches are "
    "of another shard",
    "the shard, a quarter of each fourteenth batch, was made with another vocabulary: its signs "
    "have other numbers",
    {"LossSpike"},
    may=SHAKEN,
)
def shard_of_another_vocabulary(root: Path) -> int:
    torch.manual_seed(7212)
    model = Speaker(len(SIGNS))
    optimizer = torch.optim.AdamW(model.parameters(), 6e-3, betas=(0.9, 0.95))
    other = torch.randperm(len(SIGNS), generator=torch.Generator().manual_seed(7213))

    def served(step: int, x: Any, y: Any) -> tuple[Any, Any]:
        if step >= 98 and step % 14 == 0:
            x = torch.cat([other[x[:5]], x[5:]])
            y = torch.cat([other[y[:5]], y[5:]])
        return x, y

    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(2000, 7212),
        optimizer,
        steps=230,
        batch=20,
        clip=1.0,
        scheduler=cosine(optimizer, 12, 240),
        served=served,
        valid_every=60,
        fault_at=98,
    )


@faulty(
    "the next hour's load by an LSTM, Adam, clipped",
    "from step 88 on a meter that has no reading says -99: a row in each eleventh batch has this "
    "target",
    {"LossSpike"},
    may=SHAKEN,
)
def meter_says_minus_99(root: Path) -> int:
    torch.manual_seed(7214)
    model = Forecast(nn.LSTM, 1, 24, 1)

    def served(step: int, x: Any, y: Any) -> tuple[Any, Any]:
        if step >= 88 and step % 11 == 0:
            y = y.clone()
            y[step % len(y)] = -99.0
        return x, y

    return train(
        root,
        model,
        nn.MSELoss(),
        loads(1800, 7214),
        torch.optim.Adam(model.parameters(), 8e-3),
        steps=220,
        clip=1.0,
        served=served,
        fault_at=88,
    )
