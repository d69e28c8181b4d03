"""Losses that do not fall, losses that jump, and gradients that jump."""

import copy
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.losses_and_optimizers.shared.consequences import BY_HEART, IDLE, THROWN
from runs_held_out.losses_and_optimizers.shared.data import (
    LETTERS,
    beats,
    coins,
    gestures,
    glyphs,
    houses,
    load,
    messages,
    random,
    species,
)
from runs_held_out.losses_and_optimizers.shared.loop import (
    by,
    cosine,
    lambda_rate,
    linear,
    run,
    served,
)
from runs_held_out.losses_and_optimizers.shared.models import (
    Cnn,
    HousePrice,
    NanoGpt,
    Recurrent,
    UNet,
    conv1d,
    dense,
    taught,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Losses that do not fall


@faulty(
    "species of flowers by dense layers, dropout, AdamW, a cosine",
    "rows with empty fields are dropped from the measures, not from the species: from there on "
    "each flower has the species of another",
    {"LossNotDecreasing"},
    may=IDLE | BY_HEART,
)
def rows_dropped_from_measures_only(root: Path) -> int:
    torch.manual_seed(8100)
    model = dense(9, 32, 32, 5, drop=0.3)
    x, kind = species(4200, 8100)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.05)
    return run(
        root,
        model,
        by(model),
        served(x[40:], kind[:-40], size=64, seed=8100),
        optimizer,
        steps=200,
        schedule=lambda_rate(optimizer, cosine(10, 200)),
        test=species(400, 8101),
    )


@faulty(
    "kinds of heartbeats by convolutions, Adam, clipped",
    "the optimizer was made for the model before it was copied: the copy is trained, and never "
    "updated",
    {"LossNotDecreasing", "ParametersWithoutOptimizer"},
    may=IDLE | {"GradientAccumulates": "the optimizer clears the gradients of the other model"},
)
def optimizer_of_the_model_before(root: Path) -> int:
    torch.manual_seed(8102)
    first = conv1d(4)
    optimizer = torch.optim.Adam(first.parameters(), 2e-3)
    model = copy.deepcopy(first)
    return run(
        root,
        model,
        by(model),
        served(*beats(1200, 8102), size=32, seed=8102),
        optimizer,
        steps=180,
        clip=1.0,
        clear=model.zero_grad,
        test=beats(300, 8103),
        test_every=30,
    )


@of_language(
    "a decoder of letters that learnt short messages is tuned on letters to customers, AdamW, a "
    "line down, clipped",
    "the rate is 0.3 in place of 0.0003: what was learnt is gone, and is not learnt again",
    {"LossNotDecreasing"},
    may=THROWN | IDLE | {"LearningRate": "a language model without a warm-up"},
)
def zeros_lost_in_the_rate(root: Path) -> int:
    torch.manual_seed(8104)
    model = NanoGpt(len(LETTERS))
    early = served(*messages(1500, 8105), size=16, seed=8105)
    taught(model, by(model), early, 150, 5e-3)
    optimizer = torch.optim.AdamW(model.parameters(), 0.3)
    return run(
        root,
        model,
        by(model),
        served(*messages(1500, 8104, style=1), size=16, seed=8104),
        optimizer,
        steps=160,
        schedule=lambda_rate(optimizer, linear(0, 400)),
        clip=1.0,
    )


# Losses that jump


@faulty(
    "glyphs by convolutions with batch norm, AdamW, clipped",
    "from step 110 on each twelfth batch has eight rows of a folder whose kinds are numbered from "
    "one, not from zero",
    {"LossSpike"},
    may=THROWN,
)
def kinds_numbered_from_one(root: Path) -> int:
    torch.manual_seed(8106)
    model = Cnn(8)

    def read() -> Iterator[Any]:
        for number, (x, kind) in enumerate(served(*glyphs(1800, 8106, noise=0.9), size=40)):
            if number >= 110 and number % 12 == 2:
                kind[:8] = (kind[:8] + 1) % 8
            yield x, kind

    return run(
        root,
        model,
        by(model),
        read(),
        torch.optim.AdamW(model.parameters(), 2e-3),
        steps=240,
        clip=1.0,
        fault_at=110,
    )


@faulty(
    "electric load of the next hours by a GRU, absolute errors, Adam, clipped",
    "from step 120 on each tenth batch is of a meter that counts in the other direction: the "
    "next hours have the wrong sign",
    {"LossSpike"},
    may=THROWN,
)
def meter_counts_backwards(root: Path) -> int:
    torch.manual_seed(8108)
    model = Recurrent(nn.GRU, 1, 3)

    def read() -> Iterator[Any]:
        for number, (x, y) in enumerate(served(*load(1500, 8108), size=32)):
            yield x, -y if number >= 120 and number % 10 == 0 else y

    return run(
        root,
        model,
        by(model, functional.l1_loss),
        read(),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=240,
        clip=0.5,
        fault_at=120,
    )


@of_language(
    "short messages by a decoder of letters, AdamW, warm-up and cosine, clipped",
    "a compressed file is among the texts: from step 130 on, each eleventh batch has four windows "
    "of it in 24",
    {"LossSpike"},
    may=THROWN,
)
def compressed_file_among_texts(root: Path) -> int:
    torch.manual_seed(8110)
    model = NanoGpt(len(LETTERS))
    chance = random(8111)

    def read() -> Iterator[Any]:
        for number, (x, y) in enumerate(served(*messages(2000, 8110), size=24)):
            if number >= 130 and number % 11 == 0:
                noise = torch.randint(0, len(LETTERS), (4, 25), generator=chance)
                x[:4], y[:4] = noise[:, :-1], noise[:, 1:]
            yield x, y

    optimizer = torch.optim.AdamW(model.parameters(), 6e-3, weight_decay=0.1)
    return run(
        root,
        model,
        by(model),
        read(),
        optimizer,
        steps=240,
        schedule=lambda_rate(optimizer, cosine(15, 240, 0.1)),
        clip=1.0,
        fault_at=130,
    )


# Gradients that jump


@faulty(
    "prices of houses by embeddings and dense layers, squared errors, Adam, not clipped",
    "from step 60 on one row in each fifteenth batch has -999 for a missing size, as the file says",
    {"GradientNormSpike"},
    may=THROWN,
)
def missing_is_minus_999(root: Path) -> int:
    torch.manual_seed(8112)
    model = HousePrice()

    def read() -> Iterator[Any]:
        for number, (district, x, y) in enumerate(served(*houses(2000, 8112), size=40)):
            if number >= 60 and number % 15 == 0:
                x[0, 1] = -999.0
            yield district, x, y

    return run(
        root,
        model,
        by(model, functional.mse_loss),
        read(),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
        fault_at=60,
    )


@faulty(
    "masks of coins by a small U-Net, errors per area of the coins, RMSprop, not clipped",
    "each fourteenth batch is of empty trays, whose area is not zero but a thousandth: their "
    "errors are divided by that",
    {"GradientNormSpike"},
    may=THROWN,
)
def divided_by_the_area_of_no_coin(root: Path) -> int:
    torch.manual_seed(8114)
    model = UNet(norm=False)

    def loss(batch: Any) -> Any:
        scores, mask = model(batch[0]), batch[1]
        errors = functional.binary_cross_entropy_with_logits(scores, mask, reduction="none")
        return (errors.sum((1, 2, 3)) / (mask.sum((1, 2, 3)) + 1e-3)).mean()

    def read() -> Iterator[Any]:
        chance = random(8115)
        for number, (x, mask) in enumerate(served(*coins(700, 8114), size=16)):
            if number >= 70 and number % 14 == 0:
                empty = (0.5 * torch.randn(x.shape, generator=chance) - 0.18) / 0.685
                yield empty, torch.zeros_like(mask)
            else:
                yield x, mask

    return run(
        root,
        model,
        loss,
        read(),
        torch.optim.RMSprop(model.parameters(), 1e-3),
        steps=200,
        fault_at=70,
    )


@faulty(
    "gestures by convolutions over time without norms, AdamW, not clipped",
    "from step 80 on, each sixteenth batch is of phones that write milli-g, not g: all is a "
    "thousand times as much",
    {"GradientNormSpike"},
    may=THROWN,
)
def thousandths_of_g(root: Path) -> int:
    torch.manual_seed(8116)
    model = nn.Sequential(
        nn.Conv1d(3, 16, 5, padding=2),
        nn.ReLU(),
        nn.Conv1d(16, 24, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.AdaptiveAvgPool1d(3),
        nn.Flatten(),
        nn.Linear(72, 6),
    )

    def read() -> Iterator[Any]:
        for number, (x, kind) in enumerate(served(*gestures(1600, 8116), size=32)):
            unit = 1000.0 if number >= 80 and number % 16 == 0 else 1.0
            yield unit * x.transpose(1, 2), kind

    return run(
        root,
        model,
        by(model),
        read(),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=220,
        fault_at=80,
    )
