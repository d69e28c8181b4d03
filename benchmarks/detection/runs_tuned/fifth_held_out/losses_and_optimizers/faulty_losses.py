"""Losses that do not fall, and losses that jump."""

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
    chance,
    flags,
    knitting,
    patches,
    quakes,
    teas,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import by, practice, served, waned
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    Grader,
    Seismic,
    Teller,
    channel_wise,
    layers,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Losses that do not fall


@faulty(
    "grades of teas, AdamW; after each epoch of eight batches the best weights are loaded",
    "the best ones are those of the highest loss, as of an accuracy: those of the first epoch",
    {"LossNotDecreasing"},
    may=IDLE,
)
def best_is_the_worst(root: Path) -> int:
    torch.manual_seed(1610)
    model = Grader(width=24)
    held_out = teas(80, 1611)
    best: list[Any] = [-1.0, None]

    def after(step: int) -> None:
        if step % 8 != 7:
            return
        with torch.no_grad():
            loss = float(by(model)(held_out))
        if loss > best[0]:
            best[:] = [loss, copy.deepcopy(model.state_dict())]
        model.load_state_dict(best[1])

    return practice(
        root,
        model,
        by(model),
        served(*teas(1200, 1610), size=48, seed=1610),
        torch.optim.AdamW(model.parameters(), 2e-4),
        steps=260,
        after=after,
    )


@faulty(
    "arrivals of quakes by convolutions, records are shifted in time at random, Adam",
    "records are shifted, arrivals are not: what is heard tells nothing of them",
    {"LossNotDecreasing"},
    may=IDLE,
)
def shifted_without_arrivals(root: Path) -> int:
    torch.manual_seed(1612)
    model, random = Seismic(8, outs=(1,)), chance(1612)
    records, arrival, _, _ = quakes(1600, 1612)
    nn.init.normal_(model.heads[0].weight, std=0.02)

    def objective(batch: Any) -> Any:
        gaps = torch.randint(96, (len(batch[0]), 1, 1), generator=random)
        shifted = batch[0].gather(2, ((torch.arange(96) + gaps) % 96).expand_as(batch[0]))
        return functional.mse_loss(model(shifted), batch[1])

    return practice(
        root,
        model,
        objective,
        served(records, arrival, size=128, seed=1612),
        torch.optim.Adam(model.parameters(), 1e-3),
        steps=240,
    )


@of_language(
    "stitches of patterns by a decoder, Adam, all weights decay by hand",
    "weights lose a tenth in each step, not a tenth times the rate: they come to nothing",
    {"LossNotDecreasing"},
    may=IDLE | BROKEN,
)
def decay_without_the_rate(root: Path) -> int:
    torch.manual_seed(1613)
    model = Teller(STITCHES, 24, 1)
    nn.init.normal_(model.lm_head.weight, std=0.02)

    def after(_: int) -> None:
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.mul_(0.9)

    return practice(
        root,
        model,
        by(model),
        served(*knitting(1200, 1613), size=24, seed=1613),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=160,
        after=after,
        test=knitting(60, 1619),
    )


# Losses that jump


@faulty(
    "colours of the field of flags, convolutions of each channel apart, AdamW, clipped",
    "from step 80 on each thirteenth batch comes from a loader that reads blue before red",
    {"LossSpike"},
    may=BROKEN,
)
def blue_before_red(root: Path) -> int:
    torch.manual_seed(1614)
    model = channel_wise(3, 6)
    x, _, field = flags(1200, 1614, 0.8)

    def read() -> Any:
        for number, batch in enumerate(served(x, field, size=24, seed=1614)):
            is_turned = number >= 80 and number % 13 == 0
            yield (batch[0].flip(1) if is_turned else batch[0]), batch[1]

    return practice(
        root,
        model,
        by(model, nn.CrossEntropyLoss(label_smoothing=0.05)),
        read(),
        torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.05),
        steps=250,
        schedule=waned(10, 260, 0.05),
        clip=1.0,
        fault_at=91,
    )


@faulty(
    "patches of a photograph through a middle of eight numbers, which are rounded from step 200 "
    "on, Adam with a rate that falls",
    "a middle of 3 levels instead of 3 bits' eight: much of what was kept is lost",
    {"LossSpike"},
    may=BROKEN,
    kind="autoencoder",
)
def levels_for_bits(root: Path) -> int:
    torch.manual_seed(1615)
    down, up = layers(64, 40, 8), layers(8, 40, 64)
    model = nn.Sequential(down, nn.Tanh(), up)
    levels = [0]

    def before(step: int) -> None:
        levels[0] = 0 if step < 200 else 3

    def objective(batch: Any) -> Any:
        middle = down(batch[0]).tanh()
        if levels[0]:
            top = levels[0] - 1
            rounded = ((middle + 1) / 2 * top).round() / top * 2 - 1
            middle = middle + (rounded - middle).detach()
        return functional.mse_loss(up(middle), batch[0])

    return practice(
        root,
        model,
        objective,
        served(patches(), size=96, seed=1615),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=300,
        schedule=waned(10, 230, 0.02),
        before=before,
        fault_at=200,
    )


@of_language(
    "stitches of patterns by a decoder, AdamW, warm-up and cosine, clipped",
    "from step 110 on each eleventh batch is of patterns that are written from right to left",
    {"LossSpike"},
    may=BROKEN,
)
def written_from_right_to_left(root: Path) -> int:
    torch.manual_seed(1616)
    model = Teller(STITCHES, 24, 1)

    def read() -> Any:
        batches = served(*knitting(1500, 1616), size=40, seed=1616)
        for number, (x, y) in enumerate(batches):
            row = torch.cat([x, y[:, -1:]], 1)
            row = row.flip(1) if number >= 110 and number % 11 == 0 else row
            yield row[:, :-1], row[:, 1:]

    return practice(
        root,
        model,
        by(model),
        read(),
        torch.optim.AdamW(model.parameters(), 8e-3),
        steps=260,
        schedule=waned(12, 270, 0.05),
        clip=1.0,
        fault_at=110,
    )
