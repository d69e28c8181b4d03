"""Faulty trainings of activations: silent ReLU units, and units at their bounds."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from training.learnt_data import Split
from training_runs import faulty

from runs_held_out.units.shared.consequences import CUT_OFF, OVERSIZED
from runs_held_out.units.shared.data import (
    BEATS,
    GLYPHS,
    LONGEST,
    SOILS,
    TOPICS,
    WORDS,
    beat_rows,
    glyphs,
    loan_rows,
    parted,
    soils,
    tickets,
)
from runs_held_out.units.shared.loop import train
from runs_held_out.units.shared.networks import ConvNet, layers


@faulty(
    "glyphs by convolutions with ReLU, SGD with momentum, the rate is warmed up for 200 steps",
    "the factor of the warm-up is upside down, 200 / step: it begins at 200 times the rate",
    {"DeadRelu"},
    may=OVERSIZED | CUT_OFF,
)
def warm_up_upside_down(root: Path) -> int:
    torch.manual_seed(851)
    model = ConvNet(1, 14, GLYPHS)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    factor = rates.LambdaLR(optimizer, lambda step: max(1.0, 200 / (step + 1)))
    data, loss = glyphs(1300, 55.0, 8501), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, scheduler=factor, epochs=6, seed=851)


class Near(nn.Module):
    """How near rows are to learnt centres: minus the squared distance, and then an activation."""

    def __init__(self, ins: int, centres: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(centres, ins))
        self.relu = nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.relu(-((x[:, None] - self.centres) ** 2).mean(2))


@faulty(
    "kinds of soil by nearness to sixty centres and a linear layer, Adam",
    "minus the distance goes through ReLU and not through exp: all units answer 0 for all soils",
    {"AllZero", "DeadRelu"},
    may=CUT_OFF,
)
def nearness_through_relu(root: Path) -> int:
    torch.manual_seed(852)
    model = nn.Sequential(Near(14, 60), nn.Linear(60, SOILS))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    data, loss = soils(1900, 8502), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=5, seed=852)


@faulty(
    "kinds of soil by two ReLU layers whose outputs are to be sparse, Adam",
    "the penalty sums all outputs and its factor is 0.1, not 1e-5 of their mean: units fall silent",
    {"DeadRelu"},
    may=CUT_OFF | {"GradientNormSpike": "the penalty has large gradients until units are silent"},
)
def penalty_silences_units(root: Path) -> int:
    torch.manual_seed(853)
    model = layers(14, 64, 48, SOILS)
    seen: list[Any] = []
    for part in model:
        if isinstance(part, nn.ReLU):
            part.register_forward_hook(lambda _part, _ins, out: seen.append(out))

    def backward(value: Any) -> None:
        (value + 0.1 * sum(out.sum() for out in seen)).backward()

    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return train(
        root,
        model,
        soils(1900, 8503),
        nn.CrossEntropyLoss(),
        optimizer,
        before=lambda _number: seen.clear(),
        backward=backward,
        epochs=6,
        seed=853,
    )


@faulty(
    "brain waves of some microvolts, in volts, by two convolutions with tanh, Adam",
    "values are divided by their variance, 1e-13, and not by their deviation: tanh is at bounds",
    {"SaturatedActivation"},
    may=OVERSIZED | CUT_OFF,
)
def volts_divided_by_the_variance(root: Path) -> int:
    torch.manual_seed(854)
    data = parted(*beat_rows(1400, 8504, 0.2)).of(lambda x: x / 1e6)
    mean, variance = data.x.mean(), data.x.var()
    data = data.of(lambda x: (x - mean) / variance)
    model = nn.Sequential(
        *(nn.Conv1d(1, 12, 5, padding=2), nn.Tanh(), nn.MaxPool1d(2)),
        *(nn.Conv1d(12, 16, 5, padding=2), nn.Tanh(), nn.MaxPool1d(2), nn.Flatten()),
        nn.Linear(128, BEATS),
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return train(root, model, data, nn.CrossEntropyLoss(), optimizer, epochs=5, seed=854)


def hashed_loans(count: int, seed: int) -> Split:
    """Return scaled facts of a loan beside the hash of its branch, and is it paid back late?"""
    x, y = loan_rows(count, seed)
    x = (x - x.mean(0)) / x.std(0)
    hashes = np.random.default_rng(94).integers(2**28, 2**31, 12)
    branch = np.random.default_rng(seed).integers(12, size=count)
    return parted(np.column_stack([hashes[branch].astype(float), x]), y)


@faulty(
    "late loans by two layers with tanh, momentum; the branch is hashed to a number",
    "the hash is a column of its own and not the row of an embedding: numbers up to 2 ** 31",
    {"SaturatedActivation"},
    may=OVERSIZED | CUT_OFF,
)
def hash_as_a_number(root: Path) -> int:
    torch.manual_seed(855)
    model = layers(10, 40, 20, 1, act=nn.Tanh)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    data, loss = hashed_loans(1800, 8505), nn.BCEWithLogitsLoss()
    return train(root, model, data, loss, optimizer, epochs=5, save_every=2, seed=855)


class GatedPool(nn.Module):
    """Words, each let through by a gate that is to be shut at padding, summed; and a head."""

    def __init__(self, outs: int, width: int = 24) -> None:
        super().__init__()
        self.embedding, self.gate = nn.Embedding(WORDS, width), nn.Linear(width, 1)
        self.sigmoid, self.head = nn.Sigmoid(), layers(width, 24, outs)

    def forward(self, x: Any) -> Any:
        words, mask = self.embedding(x), (x != 0).float()[..., None]
        gates = self.sigmoid(self.gate(words) - 1e4 * mask)
        return self.head((gates * words).sum(1) / LONGEST)


@faulty(
    "teams of tickets by words behind sigmoid gates, Adam",
    "gates are shut where the mask is 1, which are the words: only padding is let through",
    {"SaturatedActivation"},
    may=CUT_OFF,
)
def gates_shut_at_words(root: Path) -> int:
    torch.manual_seed(856)
    model = GatedPool(TOPICS)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    data, loss = tickets(1700, 12, 0.4, 8506), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=5, seed=856)
