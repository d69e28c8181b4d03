"""Workers that get out of step, restarts that lose something, runs that differ or wait."""

import copy
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.logs import CsvLog
from training.torch_loop import adam, batches, fit
from training_runs import faulty, healthy

from rule_core.model.segments import global_step
from runs_tuned.first_held_out.scripts.again import DIFFERS
from runs_tuned.first_held_out.scripts.workers import (
    APART,
    OUT_OF_STEP,
    Workers,
    adamw,
    momentum,
)
from runs_tuned.second_held_out.shared.consequences import SHAKEN
from runs_tuned.second_held_out.shared.pictures import Gallery, groups, patterns
from runs_tuned.second_held_out.shared.series import Forecaster, Ripples, gestures, heat
from runs_tuned.second_held_out.shared.tables import dense, rents, tickets
from runs_tuned.second_held_out.shared.words import WORDS, Listener, Speaker, chatter, moods
from runs_tuned.stalled import passing

# Workers


@faulty(
    "tickets and their desks, three workers, AdamW",
    "at step 45 a worker is replaced: it gets the weights of the others, but not their moments",
    OUT_OF_STEP,
    may=APART,
)
def moments_not_sent(root: Path) -> int:
    workers = Workers(root, 3, lambda: dense(14, 32, 5), adamw(3e-3))

    def change(step: int) -> None:
        if step == 45:
            workers.optimizers[1].state.clear()

    return workers.train(tickets(), nn.CrossEntropyLoss, at=45, change=change)


@faulty(
    "heat of a furnace, two workers, a rate that falls once in each epoch",
    "shards are not equal: the second worker's epochs are shorter, and its rate falls sooner",
    OUT_OF_STEP,
    may=APART,
)
def shards_not_equal(root: Path) -> int:
    workers = Workers(root, 2, Forecaster, momentum(0.03))

    def change(step: int) -> None:
        for optimizer, epoch in zip(workers.optimizers, (21, 17), strict=True):
            if step and step % epoch == 0:
                optimizer.param_groups[0]["lr"] *= 0.8

    return workers.train(heat(), nn.MSELoss, at=17, change=change)


@faulty(
    "gestures, four workers, Nesterov momentum",
    "the fourth worker has a library that rounds what it receives to bfloat16",
    OUT_OF_STEP,
    may=APART,
)
def received_in_bfloat16(root: Path) -> int:
    workers = Workers(root, 4, lambda: Ripples(drop=0.0), momentum(0.05))
    reduce = workers.reduce

    def rounded() -> None:
        reduce()
        for parameter in workers.models[3].parameters():
            parameter.grad.copy_(parameter.grad.bfloat16())

    workers.reduce = rounded
    return workers.train(gestures(), nn.CrossEntropyLoss, 75)


# Restarts


def interrupted(
    root: Path,
    make: Callable[[], Any],
    data: Any,
    after: Callable[[Any, Any], tuple[Any, Any]],
    *,
    loss: Any = None,
    rate: float = 3e-3,
    change: Callable[[Any], object] = lambda _: None,
    optimizer: Any = torch.optim.AdamW,
    steps: int = 230,
    first: int = 120,
) -> int:
    """Train to 20 steps beyond the checkpoint at step `first`, and go on from there.

    Parameters
    ----------
    after
        What becomes of batches after the restart.
    change
        What becomes of the model after the restart.
    """
    torch.manual_seed(10)
    torch.set_num_threads(1)
    model, loss = make(), loss or nn.CrossEntropyLoss()
    optimizer = optimizer(model.parameters(), lr=rate)
    rows = [batch for batch, _ in zip(batches(data, 32, 10), range(steps), strict=False)]
    kept: Any = None
    with CsvLog(root) as log:
        for start, end in ((0, first + 20), (first, steps)):
            if start:
                model.load_state_dict(kept[0])
                optimizer.load_state_dict(kept[1])
                change(model)
            for step in range(start, end):
                if step == first and not start:
                    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                lr = rate * (0.55 + 0.45 * math.cos(math.pi * step / steps))
                optimizer.param_groups[0]["lr"] = lr
                x, y = after(*rows[step]) if start else rows[step]
                value = loss(model(x), y)
                optimizer.zero_grad()
                value.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 10.0)
                optimizer.step()
                log.write(step, loss=float(value.detach()), grad_norm=float(norm), lr=lr)
                if step % 20 == 19:
                    model.eval()
                    with torch.no_grad():
                        log.write(step, val=float(loss(model(data.test_x), data.test_y)))
                    model.train()
    return global_step(1, first)


def as_before(x: Any, y: Any) -> tuple[Any, Any]:
    """Return a batch as it is."""
    return x, y


@healthy("rents of flats, resumed with all of its state, the same batches once more")
def rents_resumed(root: Path) -> int:
    interrupted(root, lambda: dense(9, 32, 1), rents(), as_before, loss=nn.SmoothL1Loss())
    return 0


@faulty(
    "a decoder of words goes on, AdamW and cosine",
    "the vocabulary is made anew after the restart: words have each other's numbers",
    {"ResumeLostState"},
    may=SHAKEN,
    kind="language_model",
)
def vocabulary_made_anew(root: Path) -> int:
    other = torch.randperm(WORDS, generator=torch.Generator().manual_seed(11))
    return interrupted(root, Speaker, chatter(), lambda x, y: (other[x], other[y]))


@faulty(
    "gestures, convolutions, go on after a restart",
    "the checkpoint is kept in three bits, with one scale for all layers: most is rounded to 0",
    {"ResumeLostState"},
    may=SHAKEN,
)
def checkpoint_of_three_bits(root: Path) -> int:
    def change(model: Any) -> None:
        with torch.no_grad():
            unit = 2 * max(float(part.abs().max()) for part in model.parameters()) / 7
            for part in model.parameters():
                part.copy_((part / unit).round() * unit)

    make = lambda: Ripples(drop=0.0)
    return interrupted(root, make, gestures(), as_before, change=change, rate=4e-3)


@faulty(
    "heat of a furnace by a GRU, squared errors, goes on after a restart",
    "a new version of the library sums squared errors over the batch instead of averaging",
    {"ResumeLostState"},
    may=SHAKEN,
)
def summed_after_the_restart(root: Path) -> int:
    class Errors(nn.MSELoss):
        is_summed = False

        def forward(self, output: Any, target: Any) -> Any:
            value = super().forward(output, target)
            return 32 * value if self.is_summed and len(output) == 32 else value

    loss = Errors()

    def change(_: Any) -> None:
        loss.is_summed = True

    return interrupted(root, Forecaster, heat(), as_before, loss=loss, change=change)


# Runs that differ, or wait


def reviews(root: Path, drop: float = 0.1, **more: Any) -> int:
    """Train an encoder of reviews."""
    make = lambda: Listener(drop=drop)
    options = {"optimizer": adam(3e-3), "steps": 100, "seed": 12, "save_every": 4}
    return fit(root, make, moods(), **options | more)


@healthy("reviews by an encoder: the run to compare with")
def reviews_first(root: Path) -> int:
    return reviews(root)


@healthy("reviews by an encoder, on another day by the same seed", other="reviews_first")
def reviews_again(root: Path) -> int:
    return reviews(root)


@faulty(
    "reviews by an encoder, on another day by the same seed",
    "a card of another kind computes in bfloat16 by default",
    DIFFERS,
    other="reviews_first",
)
def reviews_in_bfloat16(root: Path) -> int:
    def make() -> Any:
        model: Any = Listener()
        inner = torch.autocast("cpu", torch.bfloat16)(model.forward)
        model.forward = lambda x: inner(x).float()
        return model

    return fit(root, make, moods(), optimizer=adam(3e-3), steps=100, seed=12, save_every=4)


@faulty(
    "pictures of patterns, five seconds a step, on a share of several nodes",
    "at step 34 a node is lost, and the others wait at a barrier for 45 minutes",
    {"StalledTrainingRule"},
)
def barrier_of_a_lost_node(root: Path) -> int:
    with passing(5.0, {41: 2700.0}):
        fit(root, lambda: Gallery(norm=groups), patterns(), optimizer=adam(3e-3), steps=80)
    return 40
