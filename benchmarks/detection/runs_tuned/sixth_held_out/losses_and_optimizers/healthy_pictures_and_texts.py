"""Healthy trainings of dominoes, leaves, a flower, Roman numbers and timetables."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import Lesson, dealt, told, wave
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import (
    Ladder,
    Memory,
    Writer,
    bricks,
    stack,
    tiles,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.pictures import dominoes, flower, leaves
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.restarts import going_on
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import chance
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.texts import SIGNS, buses, roman
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.workers import side_by_side

healthy = training_runs.healthy
of_language = functools.partial(healthy, kind="language_model")


def pips_by_bricks(root: Path, soften: float = 0.0) -> int:
    """Train convolutions on dominoes; pictures may be softened as they are read."""
    torch.manual_seed(6200)
    model = bricks(1, 7)
    x, y = dominoes(900, 6200)
    x = (1 - soften) * x + soften * functional.avg_pool2d(x, 3, 1, 1)
    return Lesson(
        model,
        told(model, nn.CrossEntropyLoss(label_smoothing=0.1)),
        dealt(x, y, size=30, seed=6200),
        torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=1e-3),
        steps=150,
        save_every=3,
        factor=wave(10, 155),
        test=dominoes(200, 6201),
    ).run(root)


@healthy("pips of dominoes by convolutions, labels smoothed, Nesterov momentum, warm-up, a cosine")
def pips_of_dominoes(root: Path) -> int:
    return pips_by_bricks(root)


@healthy("pips of dominoes by tiles in bfloat16, AdamW, clipped, the last weights are averaged")
def pips_by_tiles(root: Path) -> int:
    torch.manual_seed(6202)
    model = tiles(1, 7)
    average = AveragedModel(model)

    def after(step: int) -> None:
        if step >= 120 and step % 5 == 4:
            average.update_parameters(model)

    def tested(batch: Any) -> Any:
        chosen = average if int(average.n_averaged) else model
        return functional.cross_entropy(chosen(batch[0]).float(), batch[1])

    return Lesson(
        model,
        told(model),
        dealt(*dominoes(800, 6202), size=25, seed=6202),
        torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05),
        steps=180,
        save_every=2,
        half=torch.bfloat16,
        factor=lambda step: 1.0 if step < 110 else 0.4,
        clip=1.0,
        after=after,
        test=dominoes(150, 6203),
        tested=tested,
    ).run(root)


def overlap(scores: Any, masks: Any) -> Any:
    """Return what is missing of the overlap (Dice)."""
    chances = scores.sigmoid().flatten(1)
    both = (chances * masks.flatten(1)).sum(1)
    return 1 - ((2 * both + 1) / (chances.sum(1) + masks.flatten(1).sum(1) + 1)).mean()


@healthy("where leaves are, scores of places by a ladder, entropy and overlap, Adam")
def places_of_leaves(root: Path) -> int:
    torch.manual_seed(6204)
    model = Ladder(8)

    def loss(batch: Any) -> Any:
        scores = model(batch[0])
        sure = functional.binary_cross_entropy_with_logits(scores, batch[1])
        over = overlap(scores, batch[1])
        return {"sure": sure, "over": over, "loss": sure + 0.5 * over}

    return Lesson(
        model,
        loss,
        dealt(*leaves(500, 6204), size=16, seed=6204),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=120,
        save_every=3,
        factor=lambda step: 1.0 if step < 80 else 0.25,
        test=leaves(80, 6205),
    ).run(root)


@healthy(
    "where leaves are in half precision, group norms, a scale that is doubled each 30 good steps, "
    "two batches to an update, RMSprop"
)
def places_of_leaves_in_half(root: Path) -> int:
    torch.manual_seed(6206)
    model = Ladder(8, lambda width: nn.GroupNorm(4, width))
    return Lesson(
        model,
        told(model, functional.binary_cross_entropy_with_logits),
        dealt(*leaves(450, 6206, 0.5), size=10, seed=6206),
        torch.optim.RMSprop(model.parameters(), 1e-3, eps=1e-6),
        steps=160,
        accumulate=2,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=30),
        test=leaves(60, 6207, 0.5),
    ).run(root)


class Waves(nn.Module):
    """Sines and cosines of places along fixed directions."""

    def __init__(self, number: int = 24, size: float = 4.0) -> None:
        super().__init__()
        self.register_buffer("along", size * torch.randn(2, number))

    def forward(self, x: Any) -> Any:
        turn = x @ self.along
        return torch.cat([turn.sin(), turn.cos()], 1)


@healthy("colours of a photograph by their places, waves before layers, Adam, a cosine")
def colours_by_places(root: Path) -> int:
    torch.manual_seed(6208)
    model = nn.Sequential(Waves(), stack(48, 64, 64, 3))
    return Lesson(
        model,
        told(model, functional.mse_loss),
        dealt(*flower(), size=128, seed=6208),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=220,
        save_every=2,
        factor=wave(0, 225, 0.01),
    ).run(root)


@healthy(
    "colours of a photograph by their places go on at half the rate, as was planned, AdaMax, "
    "each 2nd step logged"
)
def colours_go_on(root: Path) -> int:
    torch.manual_seed(6210)
    model = nn.Sequential(Waves(16, 3.0), stack(32, 48, 48, 3, unit=nn.SiLU))
    going_on(
        root,
        model,
        told(model, functional.mse_loss),
        flower(),
        torch.optim.Adamax(model.parameters(), 5e-3),
        stops=((160, 176),),
        steps=300,
        size=96,
        every=2,
        factor=lambda step: 1.0 if step < 160 else 0.5,
    )
    return 0


@of_language("numbers in Roman signs by a decoder, AdamW, warm-up and cosine, clipped")
def roman_numbers(root: Path) -> int:
    torch.manual_seed(6212)
    model = Writer(32)
    groups = [
        {"params": [each for each in model.parameters() if each.ndim > 1], "weight_decay": 0.1},
        {"params": [each for each in model.parameters() if each.ndim < 2], "weight_decay": 0.0},
    ]
    return Lesson(
        model,
        told(model),
        dealt(*roman(1200, 6212), size=16, seed=6212),
        torch.optim.AdamW(groups, 4e-3, betas=(0.9, 0.95)),
        steps=180,
        save_every=2,
        factor=wave(15, 185, 0.1),
        clip=1.0,
        test=roman(80, 6213),
    ).run(root)


@of_language("numbers from Roman signs by an LSTM, Adam, three batches to an update, clipped")
def numbers_from_roman(root: Path) -> int:
    torch.manual_seed(6214)
    model = Memory(len(SIGNS), 48, signs=len(SIGNS), inputs=16, cell=nn.LSTM, is_of_each=True)
    return Lesson(
        model,
        told(model),
        dealt(*roman(1400, 6214, is_back=True), size=12, seed=6214),
        torch.optim.Adam(model.parameters(), 1e-2),
        steps=300,
        accumulate=3,
        clip=1.0,
        test=roman(80, 6215, is_back=True),
    ).run(root)


@of_language("numbers in Roman signs by one layer of attention on two workers, NAdam, clipped")
def roman_on_two_workers(root: Path) -> int:
    torch.manual_seed(6216)
    side_by_side(
        root,
        Writer(24, 2, 1),
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        roman(1400, 6216),
        lambda model, _: torch.optim.NAdam(model.parameters(), 5e-3),
        steps=120,
        save_every=4,
        clip=1.0,
    )
    return 0


@of_language("timetables of a bus by a decoder of eight heads, signs dropped, Adagrad, warm-up")
def timetables_of_a_bus(root: Path) -> int:
    torch.manual_seed(6218)
    model = Writer(32, 8, 1)
    random = chance(6218)

    def loss(batch: Any) -> Any:
        is_dropped = torch.rand(batch[0].shape, generator=random) < 0.03
        return functional.cross_entropy(model(batch[0].masked_fill(is_dropped, 1)), batch[1])

    return Lesson(
        model,
        loss,
        dealt(*buses(1200, 6218), size=16, seed=6218),
        torch.optim.Adagrad(model.parameters(), 0.03),
        steps=200,
        save_every=2,
        factor=lambda step: min(1.0, (step + 1) / 12),
        clip=1.0,
        test=buses(80, 6219),
        tested=told(model),
    ).run(root)


@of_language("timetables by two layers of GRUs go on with all their state, AdamW, a cosine")
def timetables_go_on(root: Path) -> int:
    torch.manual_seed(6220)
    model = Memory(len(SIGNS), 40, signs=len(SIGNS), inputs=16, num_layers=2, is_of_each=True)
    going_on(
        root,
        model,
        told(model),
        buses(1300, 6220),
        torch.optim.AdamW(model.parameters(), 6e-3),
        stops=((120, 139),),
        steps=220,
        size=20,
        factor=wave(10, 230, 0.05),
        clip=1.0,
    )
    return 0
