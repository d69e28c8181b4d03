"""Learning rates that do not fit, loss scales at their floor, and numbers that are not finite."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR
from training.learnt_data import Split
from training.torch_loop import batches

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.consequences import BROKEN, IDLE
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.loops import linear, train
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.networks import Beat, Opinion, layers
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.signals import heartbeats, shapes
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import (
    chance_pairs,
    pumps,
    raw_houses,
    scaled,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.texts import REVIEW_WORDS, reviews

faulty = training_runs.faulty

# Rates


@faulty(
    "rhythms of heartbeats by convolutions, AdamW, warm-up and a line down to zero",
    "the line is as long as one epoch, and the training has five: the rate is zero from step 37 on",
    {"LearningRate"},
    may=IDLE,
)
def line_of_one_epoch(root: Path) -> int:
    torch.manual_seed(7240)
    model = Beat()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        heartbeats(1500, 7240),
        optimizer,
        steps=185,
        scheduler=linear(optimizer, 4, 37),
        fault_at=37,
    )


@faulty(
    "what ails pumps by layers, Adam, a cosine of 240 batches",
    "the schedule counts batches, but is stepped once an epoch: the rate stays where it was",
    {"LearningRate"},
    may=IDLE,
)
def stepped_once_an_epoch(root: Path) -> int:
    torch.manual_seed(7242)
    model = layers(10, 40, 40, 4)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        pumps(1200, 7242),
        optimizer,
        steps=240,
        by_epoch=CosineAnnealingLR(optimizer, 240),
    )


@faulty(
    "praise in reviews by an encoder, AdamW, a warm-up of 100 steps, clipped",
    "the step is divided by 100 as whole numbers (//): the rate is zero for 100 steps",
    {"LearningRate"},
    may=IDLE,
)
def warmed_up_by_whole_numbers(root: Path) -> int:
    torch.manual_seed(7244)
    model = Opinion(REVIEW_WORDS, blocks=1)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        reviews(3000, 7244),
        optimizer,
        steps=200,
        clip=1.0,
        scheduler=LambdaLR(optimizer, lambda step: min(1, step // 100)),
    )


# Scales of the loss


class _MeanOfWords(nn.Module):
    """The mean of the vectors of a review's words, and layers."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(REVIEW_WORDS, 32, padding_idx=0)
        self.layers = layers(32, 32, 2)

    def forward(self, x: Any) -> Any:
        used = (x != 0)[..., None].float()
        return self.layers((self.words(x) * used).sum(1) / used.sum(1))


@faulty(
    "praise in reviews by the mean of words in half precision, Adam, a scaler",
    "one review in eight is empty, and its sum is divided by the number of its words: zero",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=BROKEN,
)
def empty_reviews(root: Path) -> int:
    torch.manual_seed(7246)
    model = _MeanOfWords()
    full = torch.arange(8) > 0
    data = reviews(3000, 7246).of(lambda x: x * full.repeat(len(x) // 8)[:, None])
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        data,
        torch.optim.Adam(model.parameters(), 5e-3),
        steps=120,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu"),
    )


class _SquaresInHalf(nn.Module):
    """Squared errors in half precision."""

    def forward(self, outputs: Any, targets: Any) -> Any:
        apart = outputs - targets.half()
        return (apart * apart).mean()


@faulty(
    "prices of houses in thousands by layers in half precision, AdamW, a scaler, clipped",
    "prices are not standardised, and errors are squared in half precision: above 255 squares are "
    "infinite",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=BROKEN,
)
def squares_above_65504(root: Path) -> int:
    torch.manual_seed(7248)
    model = layers(6, 48, 48, 1)
    return train(
        root,
        model,
        _SquaresInHalf(),
        scaled(raw_houses(2000, 7248)),
        torch.optim.AdamW(model.parameters(), 2e-3),
        steps=120,
        clip=1.0,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**14),
    )


class _Apart(nn.Module):
    """How far two pumps' codes are from each other."""

    def __init__(self) -> None:
        super().__init__()
        self.code = layers(10, 32, 8)

    def forward(self, x: Any) -> Any:
        codes = self.code(x.reshape(-1, 2, 10))
        return (codes[:, 0] - codes[:, 1]).float().square().sum(1).sqrt()


class _Margin(nn.Module):
    """The loss of pairs: the same ones are to be close, others apart."""

    def forward(self, outputs: Any, targets: Any) -> Any:
        close = targets * outputs.square()
        return (close + (1 - targets) * functional.relu(1.5 - outputs).square()).mean()


@faulty(
    "which pumps ail alike, by distances of codes in half precision, Adam, a scaler, pairs",
    "a pump is paired with itself at times: the root of their distance, zero, has no gradient",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=BROKEN,
    kind="contrastive",
)
def paired_with_itself(root: Path) -> int:
    torch.manual_seed(7250)
    model = _Apart()
    return train(
        root,
        model,
        _Margin(),
        chance_pairs(pumps(2400, 7250), 7251),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=200,
        batch=240,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**15),
    )


# Numbers that are not finite


class _SoftmaxByHand(nn.Module):
    """Cross entropy of exponents and their sum."""

    def forward(self, outputs: Any, targets: Any) -> Any:
        exponents = outputs.exp()
        chances = exponents / exponents.sum(1, keepdim=True)
        return -chances.gather(1, targets[:, None]).log().mean()


@faulty(
    "shapes by layers, SGD with momentum, softmax and logarithm by hand",
    "pixels are from 0 to 255, and no maximum is taken off before the exponent: scores above 88 "
    "run over",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=BROKEN,
)
def softmax_by_hand(root: Path) -> int:
    torch.manual_seed(7252)
    model = nn.Sequential(nn.Flatten(), *layers(144, 64, 4))
    return train(
        root,
        model,
        _SoftmaxByHand(),
        shapes(1500, 7252).of(lambda x: (60 + 50 * x).clamp(0, 255)),
        torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        steps=100,
    )


@faulty(
    "what ails pumps by layers, Adam",
    "one reading of one pump is missing in the table, and was read as NaN",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=BROKEN,
)
def reading_is_missing(root: Path) -> int:
    torch.manual_seed(7254)
    model, data = layers(10, 48, 48, 4), pumps(2000, 7254)
    x = data.x.clone()
    x[700, 3] = torch.nan
    data = Split(x, data.y, data.test_x, data.test_y)
    first = next(
        step for step, (rows, _) in enumerate(batches(data, 32)) if bool(rows.isnan().any())
    )
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        data,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=140,
        fault_at=first,
    )


@faulty(
    "prices of houses by a linear model, SGD",
    "area, age and distance are not standardised: each step overshoots by more than the last",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=BROKEN,
)
def columns_as_they_are(root: Path) -> int:
    torch.manual_seed(7256)
    model = nn.Linear(6, 1)
    return train(
        root,
        model,
        nn.MSELoss(),
        raw_houses(1600, 7256),
        torch.optim.SGD(model.parameters(), 0.01),
        steps=100,
    )
