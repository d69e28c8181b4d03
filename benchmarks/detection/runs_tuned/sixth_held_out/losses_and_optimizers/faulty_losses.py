"""Losses that do not fall, and losses that jump."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.healthy_pictures_and_texts import Waves
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.consequences import STUCK, UPSET
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import Lesson, dealt, told, wave
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import (
    Ear,
    Gathered,
    Ladder,
    Memory,
    Writer,
    stack,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.pictures import flower, leaves
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.signals import NOTES, morse, tunes
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import chance, crowds
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.texts import buses

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Losses that do not fall


@faulty(
    "keys of tunes by a GRU, Adam; below a level the loss is pushed up again (flooding)",
    "the level of 3 is that of a task with more classes: the loss of ln 6 is below it, and is "
    "pushed up from the start",
    {"LossNotDecreasing"},
    may=UPSET,
)
def flooded_from_the_start(root: Path) -> int:
    torch.manual_seed(6300)
    model = Memory(6, 24, signs=NOTES, inputs=12)

    def loss(batch: Any) -> Any:
        dry = functional.cross_entropy(model(batch[0]), batch[1])
        pushed = (dry - 3.0).abs()
        return dry.detach() + pushed - pushed.detach()

    return Lesson(
        model,
        loss,
        dealt(*tunes(1200, 6300), size=24, seed=6300),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=160,
        clip=1.0,
    ).run(root)


@faulty(
    "around how many centres points stand, Adam, with gradients clipped and noise for privacy",
    "noise is added after gradients are divided by the 32 rows, not before: it drowns them",
    {"LossNotDecreasing"},
    may=STUCK | UPSET,
)
def noise_after_the_mean(root: Path) -> int:
    torch.manual_seed(6302)
    model, random = Gathered(32), chance(6302)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)

    def update() -> None:
        for each in model.parameters():
            each.grad += torch.randn(each.shape, generator=random)
        optimizer.step()

    return Lesson(
        model,
        told(model),
        dealt(*crowds(1500, 6302), size=32, seed=6302),
        optimizer,
        steps=220,
        clip=1.0,
        update=update,
    ).run(root)


class _Turned(torch.autograd.Function):
    """Passes numbers on as they are, and gradients with the other sign."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        """Return the same numbers."""
        del ctx
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, slope: Any) -> Any:
        """Turn the gradient."""
        del ctx
        return -slope


@faulty(
    "letters in Morse code whatever their speed: a head for it turns gradients, NAdam, clipped",
    "gradients are turned before the head for letters, not before the one for the speed",
    {"LossNotDecreasing"},
    may=STUCK | UPSET,
)
def turned_before_the_wrong_head(root: Path) -> int:
    torch.manual_seed(6304)
    model = Ear(12, (8, 1))
    nn.init.normal_(model.heads[0].weight, std=0.01)

    def loss(batch: Any) -> Any:
        body = model.body(batch[0])
        letter = functional.cross_entropy(model.heads[0](_Turned.apply(body)), batch[1])
        speed = functional.mse_loss(model.heads[1](body), batch[2])
        return letter + 0.1 * speed

    return Lesson(
        model,
        loss,
        dealt(*morse(1000, 6304), size=25, seed=6304),
        torch.optim.NAdam(model.parameters(), 4e-3),
        steps=200,
        clip=1.0,
    ).run(root)


# Losses that jump


@faulty(
    "where leaves are, scores of places by a ladder, Adam, a cosine, clipped; from step 90 on "
    "some batches are mirrored",
    "in each ninth batch seven pictures of 40 are mirrored, but their masks are not",
    {"LossSpike"},
    may=UPSET,
)
def masks_not_mirrored(root: Path) -> int:
    torch.manual_seed(6306)
    model = Ladder(6)

    def read() -> Iterator[Any]:
        batches = dealt(*leaves(800, 6306, 0.4), size=40, seed=6306)
        for number, (x, y) in enumerate(batches):
            if number >= 90 and number % 9 == 0:
                yield torch.cat([x[:7].flip(3), x[7:]]), y
            else:
                yield x, y

    return Lesson(
        model,
        told(model, functional.binary_cross_entropy_with_logits),
        read(),
        torch.optim.Adam(model.parameters(), 5e-3),
        steps=200,
        factor=wave(5, 205),
        clip=1.0,
    ).run(root, fault_at=90)


@faulty(
    "colours of a photograph by their places, waves before layers, Adam, a cosine",
    "at step 220 the job moves to another machine, where four of the 24 waves are drawn with other "
    "random numbers",
    {"LossSpike"},
    may=UPSET,
)
def waves_drawn_anew(root: Path) -> int:
    torch.manual_seed(6308)
    waves = Waves(24, 3.0)
    model = nn.Sequential(waves, stack(48, 48, 48, 3))

    def before(step: int) -> None:
        if step == 220:
            waves.along[:, :4] = 3.0 * torch.randn(2, 4, generator=chance(6309))

    return Lesson(
        model,
        told(model, functional.mse_loss),
        dealt(*flower(), size=384, seed=6308),
        torch.optim.Adam(model.parameters(), 5e-3),
        steps=320,
        factor=wave(0, 240, 0.01),
        before=before,
    ).run(root, fault_at=220)


def _moved(lines: Any, filling: int) -> Any:
    """Return lines, the first half of which is moved by two places."""
    half = len(lines) // 2
    filled = torch.full((half, 2), filling)
    return torch.cat([torch.cat([filled, lines[:half, :-2]], 1), lines[half:]])


@of_language(
    "timetables of a bus by a decoder, AdamW, warm-up and cosine, clipped",
    "from step 121 on half of each eleventh batch is of a loader that fills lines up on the left: "
    "their signs are in other places",
    {"LossSpike"},
    may=UPSET,
)
def filled_up_on_the_left(root: Path) -> int:
    torch.manual_seed(6310)
    model = Writer(32, 4, 1)

    def read() -> Iterator[Any]:
        batches = dealt(*buses(1500, 6310), size=32, seed=6310)
        for number, (x, y) in enumerate(batches):
            if number >= 120 and number % 11 == 0:
                yield _moved(x, 1), _moved(y, -100)
            else:
                yield x, y

    return Lesson(
        model,
        told(model),
        read(),
        torch.optim.AdamW(model.parameters(), 6e-3),
        steps=240,
        factor=wave(12, 245, 0.05),
        clip=1.0,
    ).run(root, fault_at=121)
