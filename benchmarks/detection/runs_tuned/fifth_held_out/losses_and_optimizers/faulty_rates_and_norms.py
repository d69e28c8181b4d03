"""Learning rates that do not fit, and weights that grow."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.consequences import BROKEN, IDLE
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    STITCHES,
    cells,
    dates,
    knitting,
    patches,
    sums,
    teas,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import by, practice, served, waned
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    Grader,
    Looped,
    Teller,
    folded,
    layers,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.optimizers import Muon

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Rates


@of_language(
    "sums by an LSTM, AdamW, warm-up and a linear fall to zero, clipped",
    "the number of updates is that of a smoke test with a third of the rows: the rate is zero "
    "from step 60 of 180 on",
    {"LearningRate"},
    may=IDLE,
)
def length_of_a_smoke_test(root: Path) -> int:
    torch.manual_seed(1620)
    model = Looped(43, 40)
    return practice(
        root,
        model,
        by(model),
        served(*sums(1200, 1620), size=20, seed=1620),
        torch.optim.AdamW(model.parameters(), 1e-2),
        steps=180,
        save_every=2,
        schedule=lambda step: max(0.0, min((step + 1) / 10, (60 - step) / 50)),
        clip=1.0,
        fault_at=60,
    )


@faulty(
    "cells are counted by residual convolutions, Poisson counts, momentum, a rate in stairs",
    "at the stair of step 90 the rate is divided by the factor of 0.05, not multiplied by it",
    {"LearningRate"},
    may=BROKEN,
)
def stair_divides(root: Path) -> int:
    torch.manual_seed(1621)
    model = folded(1, 1, 6)
    loss = nn.PoissonNLLLoss(full=True)
    return practice(
        root,
        model,
        lambda batch: loss(model(batch[0])[:, 0] + 1.0, batch[1]),
        served(*cells(700, 1621), size=16, seed=1621),
        torch.optim.SGD(model.parameters(), 2e-3, momentum=0.9),
        steps=150,
        save_every=1,
        schedule=lambda step: 1.0 if step < 90 else 1 / 0.05,
        clip=2.0,
        fault_at=90,
    )


@of_language(
    "dates by a decoder, all of it trained from the start, Adam, warm-up, then a slow fall",
    "the warm-up waits for the 70 steps in which only scores were trained in an older version: "
    "the rate is zero in them",
    {"LearningRate"},
    may=IDLE,
)
def waits_for_a_stage_that_is_gone(root: Path) -> int:
    torch.manual_seed(1622)
    model = Teller(width=24)
    later = waned(10, 130, 0.1)
    return practice(
        root,
        model,
        by(model),
        served(*dates(1200, 1622), size=16, seed=1622),
        torch.optim.Adam(model.parameters(), 5e-3),
        steps=170,
        save_every=1,
        schedule=lambda step: later(step - 70) if step >= 70 else 0.0,
        clip=1.0,
    )


# Weights that grow


@faulty(
    "patches of a photograph through a middle of twelve numbers, whose spread is to be at least "
    "1, Adam",
    "the bound of the spread is left out: more of it is always better, and weights grow for it",
    {"NormGrowth"},
    may=BROKEN,
    kind="autoencoder",
)
def spread_without_bound(root: Path) -> int:
    torch.manual_seed(1623)
    down, up = layers(64, 40, 12), layers(12, 40, 64)

    def objective(batch: Any) -> Any:
        middle = down(batch[0])
        told = functional.mse_loss(up(middle), batch[0])
        spread = middle.std(0).mean()
        return {"told": told, "spread": spread, "loss": told - 0.05 * spread}

    model = nn.Sequential(down, up)
    return practice(
        root,
        model,
        objective,
        served(patches(), size=24, seed=1623),
        torch.optim.Adam(model.parameters(), 6e-3),
        steps=240,
        save_every=3,
    )


@of_language(
    "stitches by a decoder, whose norms hide how large weights are, Muon, an even rate",
    "updates are multiplied by the root of the number of weights where that of the rows is "
    "meant, and there is no decay",
    {"NormGrowth"},
    may=BROKEN,
)
def multiplied_by_all_weights(root: Path) -> int:
    torch.manual_seed(1624)
    model = Teller(STITCHES, 24, normed=True)
    return practice(
        root,
        model,
        by(model),
        served(*knitting(1200, 1624), size=20, seed=1624),
        Muon(model.parameters(), 0.02, scale=lambda parameter: parameter.numel() ** 0.5),
        steps=160,
        save_every=4,
    )


@faulty(
    "grades of teas, a third of them known; the rest is told by a slow teacher that follows the "
    "student, Adam",
    "the teacher is 0.98 of itself plus all of the student, not 0.02 of it: it grows fiftyfold",
    {"NormGrowth"},
    may=BROKEN,
)
def average_of_too_much(root: Path) -> int:
    torch.manual_seed(1625)
    student = Grader()
    model = nn.ModuleDict({"student": student, "teacher": copy.deepcopy(student)})
    model["teacher"].requires_grad_(requires_grad=False)

    def objective(batch: Any) -> Any:
        words, numbers, grades = batch
        scores = student(words, numbers)
        with torch.no_grad():
            told = model["teacher"](words, numbers).softmax(1)
        known = functional.cross_entropy(scores[:10], grades[:10])
        return known + 0.3 * functional.mse_loss(scores[10:].softmax(1), told[10:])

    def after(_: int) -> None:
        with torch.no_grad():
            pairs = zip(model["teacher"].parameters(), student.parameters(), strict=True)
            for slow, quick in pairs:
                slow.mul_(0.98).add_(quick)

    return practice(
        root,
        model,
        objective,
        served(*teas(1500, 1625), size=30, seed=1625),
        torch.optim.Adam(student.parameters(), 3e-3),
        steps=160,
        save_every=4,
        after=after,
    )
