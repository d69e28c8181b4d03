"""Workers that no longer train the same model."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.consequences import UPSET
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import Bidder, Writer, ring
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.signals import dyes
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import auctions
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.texts import buses
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.workers import (
    mean_for_all,
    side_by_side,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")


@of_language(
    "timetables of a bus by a decoder on two workers, AdamW, gradients are averaged in buckets",
    "from step 32 on the last bucket, that of the scores, is not waited for in each fourth step: "
    "each worker takes its own",
    {"ReplicaDivergence"},
    may=UPSET,
)
def bucket_not_waited_for(root: Path) -> int:
    torch.manual_seed(6400)

    def average(step: int, name: str, parameters: list[Any]) -> None:
        if not (step >= 32 and step % 4 == 0 and name.startswith("scores.")):
            mean_for_all(step, name, parameters)

    return side_by_side(
        root,
        Writer(24, 3, 1),
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        buses(1200, 6400),
        lambda model, _: torch.optim.AdamW(model.parameters(), 5e-3),
        steps=100,
        save_every=2,
        clip=1.0,
        average=average,
        fault_at=32,
    )


@faulty(
    "prices of lots on three workers, AdamW, weights in a group with decay, biases in one without",
    "groups are made from a set of names, whose order is another one in each process: the third "
    "worker's decay is that of the other group",
    {"ReplicaDivergence"},
    may=UPSET,
)
def order_of_a_set(root: Path) -> int:
    torch.manual_seed(6402)

    def optimizer(model: Any, rank: int) -> Any:
        groups = [
            [each for each in model.parameters() if each.ndim > 1],
            [each for each in model.parameters() if each.ndim < 2],
        ]
        decays = (0.0, 0.1) if rank == 2 else (0.1, 0.0)
        pairs = zip(groups, decays, strict=True)
        return torch.optim.AdamW(
            [{"params": group, "weight_decay": decay} for group, decay in pairs], 3e-3
        )

    return side_by_side(
        root,
        Bidder(1, 32),
        lambda model, batch: functional.mse_loss(model(*batch[:2]), batch[2]),
        auctions(1500, 6402),
        optimizer,
        workers=3,
        steps=110,
        save_every=3,
    )


class _Watch:
    """Rates that fall where a worker's own losses are level, by rank."""

    def __init__(self, workers: int) -> None:
        self.seen: list[list[float]] = [[] for _ in range(workers)]
        self.factors, self.turn = [1.0] * workers, 0

    def loss(self, model: Any, batch: Any) -> Any:
        """Return the loss of a batch, and remember it."""
        value = functional.mse_loss(model(batch[0]), batch[1])
        self.seen[self.turn % len(self.seen)].append(float(value.detach()))
        self.turn += 1
        return value

    def factor(self, step: int, rank: int) -> float:
        """Return the factor of a worker's rate, which falls by 0.6 if 8 losses are level."""
        losses = self.seen[rank]
        if step >= 30 and step % 8 == 0 and sum(losses[-8:]) > 0.85 * sum(losses[-16:-8]):
            self.factors[rank] *= 0.6
        return self.factors[rank]


@faulty(
    "dye a little later on two workers, momentum, a rate that falls once the loss is level",
    "each worker judges by the loss of its own rows when to lower its rate",
    {"ReplicaDivergence"},
    may=UPSET,
)
def level_judged_by_each(root: Path) -> int:
    torch.manual_seed(6404)
    watch = _Watch(2)
    return side_by_side(
        root,
        ring(12, 2, 5),
        watch.loss,
        dyes(800, 6404),
        lambda model, _: torch.optim.SGD(model.parameters(), 0.05, momentum=0.9),
        steps=130,
        save_every=3,
        size=10,
        factor=watch.factor,
    )
