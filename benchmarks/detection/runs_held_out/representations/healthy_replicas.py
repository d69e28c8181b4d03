"""Healthy replicas: they begin alike, and learn from the mean of their gradients."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.data import (
    LETTERS,
    glyphs,
    names,
    standardised,
    table,
)
from runs_held_out.representations.shared.loop import cosine, linear, replicas
from runs_held_out.representations.shared.networks import (
    Decoder,
    Layer,
    SelfAttention,
    layers,
)


@training_runs.healthy("tumours by two replicas, dropout of their own, Adam, a level rate")
def tumours_by_two(root: Path) -> int:
    torch.manual_seed(931)
    x, kind = table("breast_cancer")
    return replicas(
        root,
        layers(30, 48, 24, 2, drop=0.2),
        (standardised(x), kind),
        lambda each, batch: functional.cross_entropy(each(batch[0]), batch[1]),
        lambda each: torch.optim.Adam(each.parameters(), 1e-3),
    )


@training_runs.healthy(
    "names by two replicas of a decoder, two batches to an update, AdamW, a cosine, clipped",
    kind="language_model",
)
def names_by_two(root: Path) -> int:
    torch.manual_seed(932)
    model = Decoder(LETTERS, 32, [Layer(32, SelfAttention(32, 4, causal=True))], std=0.02)
    return replicas(
        root,
        model,
        (names(),),
        lambda each, batch: functional.cross_entropy(
            each(batch[0][:, :-1]).flatten(0, 1), batch[0][:, 1:].flatten(), ignore_index=0
        ),
        lambda each: torch.optim.AdamW(each.parameters(), 4e-3),
        factor=cosine(10, 160, 0.1),
        accumulate=2,
        clip=1.0,
        steps=160,
    )


class Glyphs(nn.Module):
    """Convolutions with batch norms, whose statistics are the worker's own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 12, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(),
            nn.Conv2d(12, 24, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(24),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(24, 4)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


@training_runs.healthy("glyphs by two replicas with batch norms, SGD with momentum, rates down")
def glyphs_by_two(root: Path) -> int:
    torch.manual_seed(933)
    x, kind = glyphs()
    return replicas(
        root,
        Glyphs(),
        ((x - x.mean()) / x.std(), kind),
        lambda each, batch: functional.cross_entropy(each(batch[0]), batch[1]),
        lambda each: torch.optim.SGD(each.parameters(), 0.1, momentum=0.9, weight_decay=5e-4),
        factor=linear(5, 130),
        steps=130,
        size=24,
        save_every=5,
    )
