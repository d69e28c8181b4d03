"""Gradients that jump, and gradients that add up."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.consequences import SHAKEN
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.loops import cosine, train
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.networks import (
    Factors,
    Speaker,
    convolutions,
    layers,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.signals import shapes
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import houses, ratings
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.texts import SIGNS, recipes

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Gradients that jump


@faulty(
    "shapes by convolutions without norms, Adam, not clipped; from step 75 on some pictures are of "
    "another format",
    "pictures of the other format, half of each fifteenth batch, are not standardised: their "
    "pixels are from 0 to 255",
    {"GradientNormSpike"},
    may=SHAKEN,
)
def pixels_to_255_at_times(root: Path) -> int:
    torch.manual_seed(7220)
    model = convolutions(norm=False)

    def served(step: int, x: Any, y: Any) -> tuple[Any, Any]:
        if step >= 75 and step % 15 == 0:
            half = len(x) // 2
            x = torch.cat([127.5 + 50 * x[:half], x[half:]])
        return x, y

    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        shapes(2400, 7220),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
        served=served,
        fault_at=75,
    )


@faulty(
    "prices of houses by layers, Adam, not clipped; some batches are of a second agency",
    "the second agency, each sixteenth batch from step 64 on, has areas in square feet, not metres",
    {"GradientNormSpike"},
    may=SHAKEN,
)
def areas_in_square_feet(root: Path) -> int:
    torch.manual_seed(7222)
    model = layers(6, 48, 48, 1)

    def served(step: int, x: Any, y: Any) -> tuple[Any, Any]:
        if step >= 64 and step % 16 == 0:
            x = x.clone()
            # The area is standardised: its mean is three of its deviations.
            x[:, 0] = 10.76 * (x[:, 0] + 3) - 3
        return x, y

    return train(
        root,
        model,
        nn.MSELoss(),
        houses(2400, 7222),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
        served=served,
        fault_at=64,
    )


@faulty(
    "ratings of films by factors and biases, Adam, not clipped; some batches are of another site",
    "the other site, each eighteenth batch from step 90 on, has ratings up to 100, not up to 5",
    {"GradientNormSpike"},
    may=SHAKEN,
)
def ratings_up_to_100(root: Path) -> int:
    torch.manual_seed(7224)
    model = Factors()

    def served(step: int, x: Any, y: Any) -> tuple[Any, Any]:
        return x, (20 * y if step >= 90 and step % 18 == 0 else y)

    return train(
        root,
        model,
        nn.MSELoss(),
        ratings(7000, 7224),
        torch.optim.Adam(model.parameters(), 1e-2),
        steps=240,
        batch=128,
        served=served,
        fault_at=90,
    )


# Gradients that add up


@faulty(
    "prices of houses by layers, Adam",
    "zero_grad is written without parentheses, and never called",
    {"GradientAccumulates"},
    may=SHAKEN,
)
def no_parentheses(root: Path) -> int:
    torch.manual_seed(7226)
    model = layers(6, 48, 48, 1)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return train(
        root,
        model,
        nn.MSELoss(),
        houses(2000, 7226),
        optimizer,
        steps=150,
        clear=lambda _: optimizer.zero_grad,
    )


@faulty(
    "shapes by convolutions with batch norm, SGD with momentum, clipped",
    "gradients are cleared once an epoch, in the outer loop",
    {"GradientAccumulates"},
    may=SHAKEN,
)
def cleared_once_an_epoch(root: Path) -> int:
    torch.manual_seed(7228)
    model, data = convolutions(), shapes(1600, 7228)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    epoch = len(data.x) // 32

    def clear(step: int) -> None:
        if (step + 1) % epoch == 0:
            optimizer.zero_grad()

    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        data,
        optimizer,
        steps=160,
        clip=5.0,
        clear=clear,
    )


@of_language(
    "recipes by a decoder, two batches to an update, AdamW, warm-up and a cosine, clipped",
    "zero_grad has moved into the block that logs, each 40 batches: twenty updates add up",
    {"GradientAccumulates"},
    may=SHAKEN,
)
def cleared_where_it_logs(root: Path) -> int:
    torch.manual_seed(7230)
    model = Speaker(len(SIGNS), 24)
    optimizer = torch.optim.AdamW(model.parameters(), 6e-3)

    def clear(step: int) -> None:
        if (step + 1) % 40 == 0:
            optimizer.zero_grad()

    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(1600, 7230),
        optimizer,
        steps=200,
        batch=12,
        clip=1.0,
        accumulate=2,
        scheduler=cosine(optimizer, 8, 105),
        clear=clear,
    )
