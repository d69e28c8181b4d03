"""Restarts that lose a part of the training, and trainings that hang."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.consequences import UPSET
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import (
    Lesson,
    clock,
    dealt,
    told,
    wave,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import (
    Ladder,
    Memory,
    Writer,
    square_layers,
    stack,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.pictures import leaves
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.restarts import going_on
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.signals import trams
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import breads
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.texts import SIGNS, roman
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.workers import side_by_side

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")
MINUTE = 60.0

# Restarts


@faulty(
    "kinds of bread by residual layers go on in a port of the script to another library, Adam",
    "the other library keeps weights the other way round; square ones fit as they are, and are "
    "loaded transposed",
    {"ResumeLostState"},
    may=UPSET,
)
def squares_transposed(root: Path) -> int:
    torch.manual_seed(6380)
    model = square_layers(12, 32, 4, 4)

    def forgotten() -> None:
        for each in model.parameters():
            if each.ndim == 2 and each.shape[0] == each.shape[1]:
                each.data = each.data.T.contiguous()

    return going_on(
        root,
        model,
        told(model),
        breads(1600, 6380),
        torch.optim.Adam(model.parameters(), 2e-3),
        stops=((160, 178),),
        steps=260,
        size=128,
        forgotten=forgotten,
    )


@of_language(
    "a decoder of numbers in Roman signs goes on, AdamW, warm-up and cosine, clipped",
    "the settings of the restart have one head of attention in place of four: all weights fit",
    {"ResumeLostState"},
    may=UPSET,
)
def other_number_of_heads(root: Path) -> int:
    torch.manual_seed(6382)
    model = Writer(32, 4)

    def forgotten() -> None:
        for block in model.blocks:
            block.heads = 1

    return going_on(
        root,
        model,
        told(model),
        roman(1400, 6382),
        torch.optim.AdamW(model.parameters(), 5e-3),
        stops=((150, 162),),
        steps=230,
        size=20,
        factor=wave(12, 240, 0.05),
        clip=1.0,
        forgotten=forgotten,
    )


class _Level:
    """A factor of the rate that falls by 0.3 where the mean of 30 losses is no lower any more."""

    factor, best = 1.0, float("inf")
    latest: tuple[float, ...] = ()

    def forget(self) -> None:
        """Begin anew."""
        self.factor, self.best, self.latest = 1.0, float("inf"), ()

    def see(self, loss: float) -> None:
        """Take a loss into account."""
        self.latest = (*self.latest, loss)
        if len(self.latest) == 30:
            mean = sum(self.latest) / 30
            self.factor *= 0.3 if mean > 0.93 * self.best else 1.0
            self.best, self.latest = min(mean, self.best), ()


@faulty(
    "passengers of trams by a GRU go on, SGD with momentum, the rate falls once the loss is level",
    "what the schedule has seen is not in the checkpoint: the rate is the first one again",
    {"ResumeLostState"},
    may=UPSET,
)
def schedule_forgets_what_was_level(root: Path) -> int:
    torch.manual_seed(6384)
    model, level = Memory(3, 28), _Level()

    def loss(batch: Any) -> Any:
        value = functional.mse_loss(model(batch[0]), batch[1])
        level.see(float(value.detach()))
        return value

    return going_on(
        root,
        model,
        loss,
        trams(1200, 6384),
        torch.optim.SGD(model.parameters(), 0.15, momentum=0.9),
        stops=((260, 275),),
        steps=340,
        size=24,
        factor=lambda _: level.factor,
        clip=1.0,
        forgotten=level.forget,
    )


# Trainings that hang


@faulty(
    "where leaves are, scores of places by a ladder, Adam, six seconds a step",
    "at step 60 a picture of another size comes, and the search for fast kernels begins again: it "
    "takes 47 minutes",
    {"StalledTrainingRule"},
)
def kernels_searched_again(root: Path) -> int:
    torch.manual_seed(6386)
    model = Ladder(8)
    with clock(6.0, {60: 47 * MINUTE}):
        return Lesson(
            model,
            told(model, functional.binary_cross_entropy_with_logits),
            dealt(*leaves(400, 6386), size=14, seed=6386),
            torch.optim.Adam(model.parameters(), 4e-3),
            steps=100,
        ).run(root, fault_at=59)


@of_language(
    "numbers from Roman signs by a GRU, AdamW, clipped, nine seconds a step, lines are streamed",
    "at step 72 a proxy asks for a login: two and a half hours pass until someone gives it",
    {"StalledTrainingRule"},
)
def proxy_asks_for_a_login(root: Path) -> int:
    torch.manual_seed(6388)
    model = Memory(len(SIGNS), 40, signs=len(SIGNS), inputs=16, is_of_each=True)
    with clock(9.0, {72: 150 * MINUTE}):
        return Lesson(
            model,
            told(model),
            dealt(*roman(1200, 6388, is_back=True), size=16, seed=6388),
            torch.optim.AdamW(model.parameters(), 8e-3),
            steps=120,
            clip=1.0,
        ).run(root, fault_at=71)


@faulty(
    "kinds of bread by layers on two workers, momentum, twenty seconds a step",
    "the board of the second worker is too hot from step 40 on: both wait 35 minutes for it in "
    "each tenth step",
    {"StalledTrainingRule"},
)
def board_too_hot(root: Path) -> int:
    torch.manual_seed(6390)
    pauses = {2 * step: 35 * MINUTE for step in range(40, 90, 10)}
    with clock(10.0, pauses):
        return side_by_side(
            root,
            stack(12, 32, 32, 4),
            lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
            breads(1200, 6390),
            lambda model, _: torch.optim.SGD(model.parameters(), 0.08, momentum=0.9),
            steps=90,
            save_every=1,
            size=20,
            fault_at=39,
        )
