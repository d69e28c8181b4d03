"""Embeddings that become the same for all rows."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.consequences import ALIKE
from runs_held_out.representations.shared.data import (
    glyphs,
    handwriting,
    households,
    standardised,
)
from runs_held_out.representations.shared.loop import cosine, loader, train
from runs_held_out.representations.shared.networks import layers

faulty = functools.partial(training_runs.faulty, kind="contrastive")


@faulty(
    "two views of households' days by an online and a target network (BYOL) without norms, Adam",
    "the target is the online network itself, not a slow copy, and its gradient is not stopped",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def target_is_the_online_network(root: Path) -> int:
    torch.manual_seed(861)
    x = standardised(households()[0])
    model = nn.ModuleDict({"net": layers(24, 64, 64, 16), "predictor": layers(16, 32, 16)})
    model["target"] = model["net"]  # meant to be copy.deepcopy(model["net"])

    def view(rows: Any) -> Any:
        rows = rows * (0.8 + 0.4 * torch.rand(len(rows), 1)) + 0.4 * torch.randn_like(rows)
        return rows * (torch.rand_like(rows) > 0.3)

    def value(batch: Any, watching: Any) -> Any:
        first, second = view(batch[0]), view(batch[0])
        one, two = model["net"](first), model["net"](second)
        watching.save_tensor("embeddings", one, "embeddings")
        agree = functional.cosine_similarity(model["predictor"](one), model["target"](second))
        other = functional.cosine_similarity(model["predictor"](two), model["target"](first))
        return 2 - (agree + other).mean()

    return train(
        root,
        model,
        loader(x, size=64, seed=861),
        value,
        torch.optim.Adam(model.parameters(), 5e-3),
        steps=320,
    )


@faulty(
    "pairs of digits are equal or not, contrastive loss with a margin (Siamese), AdamW, a cosine",
    "whether digits are equal is asked of the labels' shape, not of labels: all pairs are equal",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def all_pairs_are_equal(root: Path) -> int:
    torch.manual_seed(862)
    x, digit = handwriting()
    model = layers(64, 64, 64, 16)

    def value(batch: Any, watching: Any) -> Any:
        z = functional.normalize(model((batch[0] - 0.305) / 0.376), dim=1)
        watching.save_tensor("embeddings", z, "embeddings")
        one, two = z.chunk(2)
        labels = batch[1].chunk(2)
        is_equal = torch.full((len(one),), float(labels[0].shape == labels[1].shape))
        far = (one - two).pow(2).sum(1).add(1e-6).sqrt()
        apart = (1 - far).clamp(min=0).pow(2)
        return (is_equal * far.pow(2) + (1 - is_equal) * apart).mean()

    return train(
        root,
        model,
        loader(x, digit, size=64, seed=862),
        value,
        torch.optim.AdamW(model.parameters(), 2e-3),
        factor=cosine(10, 250, 0.1),
        steps=250,
        save_every=3,
    )


@faulty(
    "two views of glyphs by convolutions, variances kept and covariances pushed (VICReg), Adam",
    "the hinge of variances is turned round: those above 1 are punished, and those below are not",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def hinge_of_variances_turned(root: Path) -> int:
    torch.manual_seed(863)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        layers(216, 64, 32),
    )

    def view(rows: Any) -> Any:
        rows = rows.roll(int(torch.randint(-1, 2, ())), 3)
        return (rows + 0.1 * torch.randn_like(rows) - 0.3) / 0.4

    def value(batch: Any, watching: Any) -> Any:
        one, two = model(view(batch[0])), model(view(batch[0]))
        watching.save_tensor("embeddings", one, "embeddings")
        total = 25 * functional.mse_loss(one, two)
        for z in (one, two):
            total = total + 25 * functional.relu((z.var(0) + 1e-4).sqrt() - 1).mean()
            part = z - z.mean(0)
            covariance = part.T @ part / (len(z) - 1)
            total = total + (covariance - covariance.diag().diag()).pow(2).sum() / 32
        return total

    return train(
        root,
        model,
        loader(glyphs()[0], size=48, seed=863),
        value,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
    )
