"""Parameters that stand still, and trainings that are not the same the second time."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from runs_tuned.sixth_held_out.losses_and_optimizers.healthy_pictures_and_texts import (
    pips_by_bricks,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.healthy_tables import (
    books_by_factors,
    breads_by_layers,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.consequences import STUCK
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import Lesson, dealt, told, wave
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import Bidder, Ear, ring
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.signals import dyes, morse
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import auctions

faulty = training_runs.faulty

# Parameters that stand still


class _Reader(Bidder):
    """Looks words up by their numbers, in tables of its own."""

    def forward(self, words: Any, numbers: Any) -> Any:
        first = functional.embedding(words[:, 0], self.words[0].weight.data)
        parts = [embed(words[:, at]) for at, embed in enumerate(self.words) if at]
        return self.layers(torch.cat([first, *parts, numbers], 1))


@faulty(
    "prices of lots by embeddings of words and by numbers, AdamW without decay of embeddings",
    "makers are looked up in the data of their table (.data), which pass no gradient on to it",
    {"StalledParameters"},
    may=STUCK,
)
def looked_up_in_data(root: Path) -> int:
    torch.manual_seed(6360)
    model = _Reader(1, 32)
    return Lesson(
        model,
        told(model, functional.mse_loss),
        dealt(*auctions(1500, 6360), size=32, seed=6360),
        torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.0),
        steps=160,
        save_every=2,
    ).run(root)


@faulty(
    "letters in Morse code by convolutions, two of which get weight norm, Adam",
    "weight norm is added after the optimizer was made, which has the weights from before it, and "
    "neither lengths nor directions",
    {"ParametersWithoutOptimizer", "StalledParameters", "UnchangedTensor"},
    may=STUCK,
)
def weight_norm_after_the_optimizer(root: Path) -> int:
    torch.manual_seed(6362)
    model = Ear(12)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    convolutions = [part for part in model.body if isinstance(part, nn.Conv1d)]
    for each in convolutions[1:]:
        weight_norm(each)
    return Lesson(
        model,
        told(model),
        dealt(*morse(1000, 6362, 0.4)[:2], size=25, seed=6362),
        optimizer,
        steps=160,
        save_every=2,
        clear=model.zero_grad,
    ).run(root)


class _Mirrored(nn.Conv1d):
    """A convolution whose kernel is made even."""

    def forward(self, x: Any) -> Any:
        even = (self.weight + self.weight.flip(2)) / 2
        padded = functional.pad(x, (3, 3), mode="circular")
        return functional.conv1d(padded, even, self.bias)


@faulty(
    "dye a little later by circular convolutions, the second of which is even, NAdam with groups "
    "by the type of a layer",
    "the type is compared with `is`: the even convolution is of a class of its own, and in no "
    "group",
    {"StalledParameters", "UnchangedTensor"},
    may=STUCK,
)
def groups_by_exact_type(root: Path) -> int:
    torch.manual_seed(6364)
    model = ring(16, 3)
    model[2] = _Mirrored(16, 16, 7)
    kernels = [layer for layer in model if type(layer) is nn.Conv1d]
    groups = [
        {"params": [layer.weight for layer in kernels], "lr": 2e-3},
        {"params": [layer.bias for layer in kernels], "lr": 4e-3},
    ]
    return Lesson(
        model,
        told(model, functional.mse_loss),
        dealt(*dyes(900, 6364), size=20, seed=6364),
        torch.optim.NAdam(groups),
        steps=150,
        save_every=2,
        factor=wave(8, 160, 0.1),
        clear=model.zero_grad,
    ).run(root)


# Trainings that are not the same


@faulty(
    "kinds of bread by layers, once more by the same seed, with another version of the optimizer",
    "decay is added to the gradient (Adam), not taken from the weights (AdamW)",
    {"SimilarAcrossRuns"},
    other="kinds_of_bread",
)
def decay_inside_the_gradient(root: Path) -> int:
    return breads_by_layers(root, torch.optim.Adam)


@faulty(
    "pips of dominoes by convolutions, once more by the same seed, with another version of the "
    "library that reads pictures",
    "pictures are softened a little as they are read, which is the new version's default",
    {"SimilarAcrossRuns"},
    other="pips_of_dominoes",
)
def pictures_softened_as_read(root: Path) -> int:
    return pips_by_bricks(root, 0.05)


@faulty(
    "which book a reader borrowed of two, by factors, once more by the same seed",
    "books that were not borrowed are drawn in a process of its own, whose seed was not set",
    {"SimilarAcrossRuns"},
    other="books_of_readers",
)
def strangers_drawn_anew(root: Path) -> int:
    return books_by_factors(root, 6052)
