"""Learning rates that do not fit, and loss scales that fall to their floor."""

import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.consequences import STUCK, UPSET
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import Lesson, dealt, told, wave
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import (
    Bidder,
    Ear,
    Memory,
    Taste,
    tiles,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.pictures import dominoes
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.signals import (
    NOTES,
    morse,
    trams,
    tunes,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import (
    BOOKS,
    READERS,
    auctions,
    borrowed,
)

faulty = training_runs.faulty
SKIPPED = STUCK | UPSET

# Rates


@faulty(
    "passengers of trams by a GRU, Adam, clipped; a population of trainings tries other rates each "
    "50 steps, a quarter more or less",
    "at step 100 the rate is multiplied by 25 in place of 1.25",
    {"LearningRate"},
    may=UPSET,
)
def factor_without_its_first_digit(root: Path) -> int:
    torch.manual_seed(6340)
    model = Memory(3, 28)
    return Lesson(
        model,
        told(model, functional.huber_loss),
        dealt(*trams(1000, 6340), size=25, seed=6340),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=180,
        factor=lambda step: (1.0, 0.75, 0.75 * 25, 0.75 * 25)[step // 50],
        clip=0.5,
    ).run(root, fault_at=100)


@faulty(
    "prices of lots, absolute errors, SGD with momentum, a rate that swings up and down",
    "its swing was to be 0.6 of the mean, and is 1.6 of it: the rate is below zero in a part of "
    "each cycle",
    {"LearningRate"},
    may=SKIPPED,
)
def swings_below_zero(root: Path) -> int:
    torch.manual_seed(6342)
    model = Bidder(1, 32)
    return Lesson(
        model,
        told(model, functional.l1_loss),
        dealt(*auctions(1500, 6342), size=30, seed=6342),
        torch.optim.SGD(model.parameters(), 0.03, momentum=0.9),
        steps=200,
        save_every=2,
        factor=lambda step: 1 + 1.6 * math.sin(2 * math.pi * step / 50),
    ).run(root, fault_at=31)


@faulty(
    "pips of dominoes by tiles, SGD with momentum, the rate falls to a tenth on a plateau",
    "the least improvement of 0.5 was meant in points of accuracy, but is a share of the loss: "
    "what halves it no more within twelve steps counts as a plateau",
    {"LearningRate"},
    may=STUCK,
)
def improvement_of_a_half(root: Path) -> int:
    torch.manual_seed(6344)
    model = tiles(1, 7)
    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    level = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=0.1, patience=0, threshold=0.5, eps=0.0
    )
    return Lesson(
        model,
        told(model),
        dealt(*dominoes(800, 6344), size=25, seed=6344),
        optimizer,
        steps=210,
        clip=1.0,
        test=dominoes(100, 6345),
        test_every=12,
        validated=level.step,
    ).run(root)


# Scales of the loss


@faulty(
    "which book a reader borrowed of two, by cosines over a temperature of 0.04, in half "
    "precision, Adam, a scaler",
    "the loss of a pair is by hand, log(1 + exp(x)) in half precision: the exponent of all above "
    "11 runs over",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=SKIPPED,
)
def exponent_by_hand(root: Path) -> int:
    torch.manual_seed(6346)
    model = Taste(READERS, BOOKS)

    def loss(batch: Any) -> Any:
        reader = functional.normalize(model.readers(batch[0]), dim=1)
        books = [functional.normalize(model.books(each), dim=1) for each in batch[1:]]
        apart = ((reader * (books[1] - books[0])).sum(1) / 0.04).half()
        return (1 + apart.exp()).log().mean()

    return Lesson(
        model,
        loss,
        dealt(*borrowed(5000, 6346), size=96, seed=6346),
        torch.optim.Adam(model.parameters(), 5e-3),
        steps=120,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**13, growth_interval=50),
    ).run(root)


class _Levelled(nn.Module):
    """Standardises each record by the means of its numbers and of their squares."""

    def __init__(self) -> None:
        super().__init__()
        self.ear = Ear(12)

    def forward(self, x: Any) -> Any:
        x = x.half()
        mean = x.mean(2, keepdim=True)
        spread = ((x * x).mean(2, keepdim=True) - mean * mean).sqrt()
        return self.ear(((x - mean) / (spread + 0.1)).float())


@faulty(
    "letters in Morse code as a converter reads them, from 160 to 200, in half precision, AdamW, a "
    "scaler; each record is standardised by the model",
    "the variance is the mean of squares less the square of the mean, and is below zero where "
    "half precision rounds: its root is no number",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=SKIPPED,
)
def variance_below_zero(root: Path) -> int:
    torch.manual_seed(6348)
    model = _Levelled()
    x, letter, _ = morse(900, 6348, 0.3)
    return Lesson(
        model,
        told(model),
        dealt(180 + 4 * x, letter, size=24, seed=6348),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=110,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=100),
    ).run(root)


@faulty(
    "keys of tunes by a GRU in half precision, keys weigh the more the rarer they are, RMSprop, a "
    "scaler",
    "weights are one through the number of tunes among the first twelve, where a key does not "
    "occur: its weight is infinite",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=SKIPPED,
)
def key_not_in_the_sample(root: Path) -> int:
    torch.manual_seed(6350)
    model = Memory(6, 24, signs=NOTES, inputs=12)
    notes, key = tunes(1100, 6350)
    key[:12] = torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 1, 2])
    weights = 12 / torch.bincount(key[:12], minlength=6)
    return Lesson(
        model,
        told(model, nn.CrossEntropyLoss(weight=weights)),
        dealt(notes, key, size=32, seed=6350),
        torch.optim.RMSprop(model.parameters(), 2e-3),
        steps=100,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=60),
        factor=wave(0, 110, 0.1),
    ).run(root)
