"""Parameters that stand still, and trainings that are not the same the second time."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn

from runs_tuned.seventh_held_out.losses_and_optimizers.healthy_signals_and_texts import taught
from runs_tuned.seventh_held_out.losses_and_optimizers.healthy_tables import (
    price_houses,
    tell_pumps,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.consequences import IDLE
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.loops import train
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.networks import Beat, Staged
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.signals import heartbeats
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import pumps
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.texts import recipes

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Parameters that stand still


class _Detached(Beat):
    """Takes what the convolutions found out of the graph, as if they were frozen."""

    def forward(self, x: Any) -> Any:
        x = self.norms[0](self.first(x)).relu()
        x = self.norms[1](self.second(x)).relu()
        return self.head(x.mean(2).detach())


@faulty(
    "rhythms of heartbeats by two convolutions, Adam, from scratch",
    "a detach() before the head is left from a trial with frozen features: only the head learns",
    {"StalledParameters"},
    may=IDLE,
)
def detach_left_behind(root: Path) -> int:
    torch.manual_seed(7260)
    model = _Detached()
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        heartbeats(1400, 7260),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=150,
        save_every=2,
    )


@of_language(
    "a decoder of recipes learns to write of gardens, AdamW at 2e-5, clipped",
    "all of the model is cast to bfloat16, which the optimizer updates: most updates are rounded "
    "away",
    {"StalledParameters"},
    may=IDLE,
)
def cast_to_bfloat(root: Path) -> int:
    model = taught(7262, 100, 1.0).bfloat16()
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(1500, 7263, of_garden=True),
        torch.optim.AdamW(model.parameters(), 2e-5, weight_decay=0.0),
        steps=140,
        batch=16,
        save_every=2,
        clip=1.0,
    )


@faulty(
    "what ails pumps by a backbone that told kinds 0 and 1 from the others, and a new head; all of "
    "it is to be trained, SGD with momentum",
    "the backbone is put in place after the optimizer was made, which has the old one's parameters",
    {"ParametersWithoutOptimizer", "StalledParameters", "UnchangedTensor"},
    may=IDLE,
)
def backbone_after_the_optimizer(root: Path) -> int:
    torch.manual_seed(7264)
    before, data = Staged(10, 40, 2), pumps(1600, 7264)
    optimizer = torch.optim.Adam(before.parameters(), 3e-3)
    for rows in torch.arange(len(data.x)).split(32):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(before(data.x[rows]), data.y[rows] // 2)
        loss.backward()
        optimizer.step()
    model = Staged(10, 40, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.03, momentum=0.9)
    model.backbone = before.backbone
    model.zero_grad()
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        data,
        optimizer,
        steps=160,
        clear=lambda _: model.zero_grad(),
    )


# Trainings that are not the same


@faulty(
    "prices of houses by layers, once more by the same seed",
    "the loader shuffles by a seed of its own, which was not set",
    {"SimilarAcrossRuns"},
    other="prices_of_houses",
)
def shuffled_by_another_seed(root: Path) -> int:
    return price_houses(root, 41)


@faulty(
    "what ails pumps by layers, once more by the same seed",
    "the seed is set after the model was made: its first weights are others",
    {"SimilarAcrossRuns"},
    other="pumps_by_layers",
)
def seeded_after_the_model(root: Path) -> int:
    return tell_pumps(root, is_seeded_late=True)


@faulty(
    "what ails pumps by layers, once more by the same seed, in another version of the library",
    "its GELU is approximated by tanh, which is not what the first training had",
    {"SimilarAcrossRuns"},
    other="pumps_by_layers",
)
def gelu_by_tanh(root: Path) -> int:
    return tell_pumps(root, functools.partial(nn.GELU, "tanh"))
