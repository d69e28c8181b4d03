"""Replicas that no longer have the same parameters."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.consequences import APART
from runs_held_out.representations.shared.data import (
    LETTERS,
    glyphs,
    handwriting,
    households,
    names,
    standardised,
)
from runs_held_out.representations.shared.loop import averaged, replicas
from runs_held_out.representations.shared.networks import (
    Decoder,
    Layer,
    SelfAttention,
    layers,
)


@training_runs.faulty(
    "digits by two replicas, a body that was trained before and a new head, SGD, momentum",
    "the head is put on after the model was wrapped: its gradients are not averaged",
    {"ReplicaDivergence"},
    may=APART,
)
def head_put_on_after_wrapping(root: Path) -> int:
    torch.manual_seed(921)
    x, digit = handwriting()
    model = nn.ModuleDict({"body": layers(64, 96, 48), "head": nn.Linear(48, 10)})

    def reduce(name: str, parts: list[Any]) -> None:
        if not name.startswith("head"):
            averaged(name, parts)

    return replicas(
        root,
        model,
        ((x - 0.305) / 0.376, digit),
        lambda each, batch: functional.cross_entropy(
            each["head"](each["body"](batch[0]).relu()), batch[1]
        ),
        lambda each: torch.optim.SGD(each.parameters(), 0.05, momentum=0.9),
        reduce=reduce,
    )


@training_runs.faulty(
    "days of households by two replicas, rates are lowered where the loss is level, Adam",
    "each worker lowers its rate by the mean loss of its own shard (ReduceLROnPlateau)",
    {"ReplicaDivergence"},
    may=APART,
)
def each_has_its_own_plateau(root: Path) -> int:
    torch.manual_seed(922)
    x, kind = households()
    model = layers(18, 64, 64, 6)
    losses: list[list[float]] = [[], []]
    schedules: list[Any] = []

    def step_loss(each: Any, batch: Any) -> Any:
        value = functional.mse_loss(each(batch[0][:, :18]), batch[0][:, 18:])
        losses[batch[1][0]].append(float(value.detach()))
        return value

    def lower(step: int, _: Any, optimizers: list[Any]) -> None:
        if not schedules:
            schedules.extend(
                torch.optim.lr_scheduler.ReduceLROnPlateau(each, factor=0.5, patience=1)
                for each in optimizers
            )
        if (step + 1) % 10 == 0:
            for rank, schedule in enumerate(schedules):
                schedule.step(sum(losses[rank][-10:]) / 10)

    return replicas(
        root,
        model,
        (standardised(x), torch.arange(len(kind)) % 2),
        step_loss,
        lambda each: torch.optim.Adam(each.parameters(), 5e-3),
        steps=240,
        save_every=5,
        after=lower,
    )


@training_runs.faulty(
    "names by two replicas of a decoder, updates with an unusual loss are left out, AdamW",
    "each worker asks its own loss whether to leave the update out: one takes it, the other not",
    {"ReplicaDivergence"},
    may=APART,
    kind="language_model",
)
def one_leaves_an_update_out(root: Path) -> int:
    torch.manual_seed(923)
    model = Decoder(LETTERS, 32, [Layer(32, SelfAttention(32, 4, causal=True))], std=0.02)
    recent: list[list[float]] = [[], []]

    def leaves_out(_: int, rank: int, value: float) -> bool:
        recent[rank].append(value)
        usual = torch.tensor(recent[rank][-21:-1])
        return len(usual) > 10 and value > float(usual.mean() + 1.5 * usual.std())

    return replicas(
        root,
        model,
        (names(),),
        lambda each, batch: functional.cross_entropy(
            each(batch[0][:, :-1]).flatten(0, 1), batch[0][:, 1:].flatten(), ignore_index=0
        ),
        lambda each: torch.optim.AdamW(each.parameters(), 2e-3),
        clip=1.0,
        skips=leaves_out,
        steps=140,
    )


class Prototypes(nn.Module):
    """A network of convolutions and a vector for each kind of glyph."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(216, 16),
        )
        self.vectors = nn.Parameter(torch.randn(4, 16))

    def forward(self, x: Any) -> Any:
        return -torch.cdist(self.body(x), self.vectors).pow(2)


@training_runs.faulty(
    "glyphs by two replicas with a vector for each kind, which starts anew every 30 steps, Adam",
    "vectors start anew at means of the worker's own rows, and are not sent to the other one",
    {"ReplicaDivergence"},
    may=APART,
)
def vectors_of_own_rows(root: Path) -> int:
    torch.manual_seed(924)
    x, kind = glyphs()
    x = (x - 0.3) / 0.4

    def start_anew(step: int, models: list[Any], _: Any) -> None:
        if step % 30 == 29 and step < 100:
            for rank, each in enumerate(models):
                own, kinds = x[rank::2][:200], kind[rank::2][:200]
                with torch.no_grad():
                    found = each.body(own)
                    for number in range(4):
                        each.vectors[number] = found[kinds == number].mean(0)

    return replicas(
        root,
        Prototypes(),
        (x, kind),
        lambda each, batch: functional.cross_entropy(each(batch[0]), batch[1]),
        lambda each: torch.optim.Adam(each.parameters(), 2e-3),
        after=start_anew,
        steps=130,
        fault_at=29,
    )
