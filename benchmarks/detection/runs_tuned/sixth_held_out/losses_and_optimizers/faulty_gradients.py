"""Gradients that jump, and gradients that add up."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.consequences import UPSET
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import Lesson, dealt, told, wave
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import (
    Ear,
    Gathered,
    Ladder,
    ring,
    stack,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.pictures import leaves
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.signals import dyes, morse
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import (
    breads,
    chance,
    crowds,
    races,
)

faulty = training_runs.faulty

# Gradients that jump


@faulty(
    "dye a little later by circular convolutions, squared errors, AdamW, not clipped",
    "one simulation in 400 has blown up: its dye is 25 times as much, and differs from cell to "
    "cell",
    {"GradientNormSpike"},
    may=UPSET,
)
def simulations_blown_up(root: Path) -> int:
    torch.manual_seed(6320)
    model = ring(16)
    random = chance(6321)

    def read() -> Iterator[Any]:
        for number, (x, y) in enumerate(dealt(*dyes(1200, 6320), size=20, seed=6320)):
            if number >= 40 and number % 20 == 0:
                x[0, 0], y[0, 0] = 25.0 * torch.randn(2, 48, generator=random)
            yield x, y

    return Lesson(
        model,
        told(model, functional.mse_loss),
        read(),
        torch.optim.AdamW(model.parameters(), 2e-3),
        steps=220,
    ).run(root, fault_at=40)


@faulty(
    "the order of runners by layers, an exponential loss of pairs, SGD with momentum, not clipped",
    "each seventeenth batch is of a club that writes place 0 for runners who gave up: they come "
    "before the first",
    {"GradientNormSpike"},
    may=UPSET,
)
def gave_up_before_the_first(root: Path) -> int:
    torch.manual_seed(6322)
    model = stack(9, 32, 32, 1)

    def loss(batch: Any) -> Any:
        x, places = batch
        scores = model(x)[..., 0]
        is_first = (places[:, :, None] < places[:, None, :]).float()
        lost = (scores[:, None, :] - scores[:, :, None]).clamp(max=12.0).exp()
        return (lost * is_first).sum() / is_first.sum()

    def read() -> Iterator[Any]:
        for number, (x, places) in enumerate(dealt(*races(900, 6322), size=16, seed=6322)):
            if number >= 102 and number % 17 == 0:
                yield x, torch.where(places >= 6, places - 9, places)
            else:
                yield x, places

    return Lesson(
        model,
        loss,
        read(),
        torch.optim.SGD(model.parameters(), 1.2e-2, momentum=0.9),
        steps=240,
    ).run(root, fault_at=102)


@faulty(
    "letters in Morse code by convolutions without norms, made louder at random, Adam, not clipped",
    "in one batch of eighteen the gain of 26 decibels is taken as a factor of 26",
    {"GradientNormSpike"},
    may=UPSET,
)
def decibels_as_a_factor(root: Path) -> int:
    torch.manual_seed(6324)
    model = Ear(12, normed=False)

    def read() -> Iterator[Any]:
        letters = dealt(*morse(1100, 6324, 0.35)[:2], size=25, seed=6324)
        for number, (x, y) in enumerate(letters):
            yield (26.0 * x if number >= 54 and number % 18 == 0 else x), y

    return Lesson(
        model,
        told(model),
        read(),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
    ).run(root, fault_at=54)


# Gradients that add up


@faulty(
    "kinds of bread by layers, Adam, gradients are set to zero in a loop",
    "in the loop a name is bound to new zeros, and gradients stay as they are",
    {"GradientAccumulates"},
    may=UPSET,
)
def name_bound_to_zeros(root: Path) -> int:
    torch.manual_seed(6326)
    model = stack(12, 40, 40, 4)

    def clear() -> None:
        zeros = []
        for gradient in (each.grad for each in model.parameters()):
            cleared = torch.zeros_like(gradient)
            zeros.append(cleared)

    return Lesson(
        model,
        told(model),
        dealt(*breads(1500, 6326), size=32, seed=6326),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=140,
        clear=clear,
    ).run(root)


class _Trainer:
    """Calls what is named after a moment of the training, if there is such a method."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer

    def on_after_step(self) -> None:
        """Clear gradients, which an older version of the trainer called at each step."""
        self.optimizer.zero_grad()

    def call(self, moment: str) -> None:
        """Call a method, if there is one."""
        getattr(self, f"on_{moment}", lambda: None)()


@faulty(
    "around how many centres points stand, SGD with momentum, clipped, a trainer with callbacks",
    "the callback that clears gradients has the name of an older version, and is never called",
    {"GradientAccumulates"},
    may=UPSET,
)
def callback_of_an_older_name(root: Path) -> int:
    torch.manual_seed(6328)
    model = Gathered(32)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    trainer = _Trainer(optimizer)
    return Lesson(
        model,
        told(model),
        dealt(*crowds(1400, 6328), size=28, seed=6328),
        optimizer,
        steps=150,
        factor=wave(10, 155, 0.1),
        clip=1.0,
        clear=lambda: trainer.call("update_end"),
    ).run(root)


@faulty(
    "where leaves are, scores of places by a ladder, RMSprop, gradients are cleared by hand",
    "only gradients that require a gradient themselves are cleared: none does",
    {"GradientAccumulates"},
    may=UPSET,
)
def only_what_requires_a_gradient(root: Path) -> int:
    torch.manual_seed(6330)
    model = Ladder(6)

    def clear() -> None:
        for each in model.parameters():
            if each.grad is not None and each.grad.requires_grad:
                each.grad = None

    return Lesson(
        model,
        told(model, functional.binary_cross_entropy_with_logits),
        dealt(*leaves(450, 6330), size=14, seed=6330),
        torch.optim.RMSprop(model.parameters(), 5e-4),
        steps=120,
        clear=clear,
    ).run(root)
