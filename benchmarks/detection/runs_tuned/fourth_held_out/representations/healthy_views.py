"""Healthy trainings of embeddings: of views, of pairs, of neighbours and of classes."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fourth_held_out.representations.shared.loop import (
    Follower,
    draws,
    learn,
    rises_and_falls,
)
from runs_tuned.fourth_held_out.representations.shared.shapes import (
    BINS,
    acquaintances,
    bars,
    layers,
    spectra,
)

healthy = functools.partial(training_runs.healthy, kind="contrastive")


def seen(x: Any) -> Any:
    """Return spectra as another device sees them: louder or softer, moved a little, noisy."""
    louder = (0.8 + 0.4 * torch.rand(len(x), 1)) * x
    moved = torch.where(torch.rand(len(x), 1) < 0.5, louder.roll(1, 1), louder)
    return moved + 0.05 * torch.randn_like(x)


@healthy("two devices' views of spectra against the batch's others, batch norm, AdamW, warm-up")
def devices_against_others(root: Path) -> int:
    torch.manual_seed(780)
    model = layers(BINS, 64, 64, 16, norm=nn.BatchNorm1d)

    def objective(batch: Any, hook: Any) -> Any:
        first, second = (functional.normalize(model(seen(batch[0])), dim=1) for _ in range(2))
        hook.save_tensor("embeddings", first, "embeddings")
        scores, same = first @ second.T / 0.2, torch.arange(len(first))
        return (
            functional.cross_entropy(scores, same) + functional.cross_entropy(scores.T, same)
        ) / 2

    return learn(
        root,
        model,
        draws(spectra()[0], size=64, seed=780),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01),
        rate=rises_and_falls(10, 150),
    )


@healthy(
    "views of spectra by a predictor and a slow teacher (BYOL), batch norm, SGD, cosine losses"
)
def predictor_and_slow_teacher(root: Path) -> int:
    torch.manual_seed(781)
    body = layers(BINS, 96, 32, norm=nn.BatchNorm1d)
    teacher = copy.deepcopy(body)
    guess = layers(32, 48, 32, norm=nn.BatchNorm1d)
    model = nn.ModuleDict({"body": body, "guess": guess})

    def objective(batch: Any, hook: Any) -> Any:
        views = [seen(batch[0]) for _ in range(2)]
        known = [body(view) for view in views]
        hook.save_tensor("embeddings", known[0], "embeddings")
        with torch.no_grad():
            wanted = [teacher(view) for view in views[::-1]]
        pairs = zip(known, wanted, strict=True)
        return sum(1 - functional.cosine_similarity(guess(a), b).mean() for a, b in pairs)

    return learn(
        root,
        model,
        draws(spectra()[0], size=64, seed=781),
        objective,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4),
        after=Follower(body, teacher, 0.03),
        save_every=3,
        steps=180,
    )


@healthy("bars with noise: embeddings' units are kept apart and alike in size (VICReg), RAdam")
def units_of_bars_apart(root: Path) -> int:
    torch.manual_seed(782)
    model = layers(144, 96, 64, 12, act=nn.GELU)

    def objective(batch: Any, hook: Any) -> Any:
        views = [model(batch[0] + 0.2 * torch.randn_like(batch[0])) for _ in range(2)]
        hook.save_tensor("embeddings", views[0], "embeddings")
        value = 10 * functional.mse_loss(*views)
        for view in views:
            rows = view - view.mean(0)
            spread = (rows.var(0) + 1e-4).sqrt()
            shared = rows.T @ rows / (len(rows) - 1)
            value = value + 10 * (1 - spread).relu().mean()
            value = value + (shared - shared.diag().diag()).pow(2).sum() / 12
        return value

    optimizer = torch.optim.RAdam(model.parameters(), 4e-3)
    read = draws(bars()[0].flatten(1), size=64, seed=782)
    return learn(root, model, read, objective, optimizer, clip=5.0)


@healthy("a student follows a slow, centred and sharp teacher of 24 prototypes (DINO), AdamW")
def centred_teacher_of_spectra(root: Path) -> int:
    torch.manual_seed(783)
    model = layers(BINS, 96, 64, 24, act=nn.GELU)
    teacher, centre = copy.deepcopy(model), torch.zeros(24)

    def objective(batch: Any, hook: Any) -> Any:
        z = model(seen(batch[0]))
        hook.save_tensor("embeddings", z, "embeddings")
        with torch.no_grad():
            scores = teacher(seen(batch[0]))
            wanted = ((scores - centre) / 0.05).softmax(1)
            centre.lerp_(scores.mean(0), 0.1)
        return functional.cross_entropy(z / 0.1, wanted)

    return learn(
        root,
        model,
        draws(spectra()[0], size=64, seed=783),
        objective,
        torch.optim.AdamW(model.parameters(), 1e-3),
        after=Follower(model, teacher, 0.02),
        steps=180,
        save_every=3,
    )


@healthy("acquaintances by a graph network of two layers: who knows whom against strangers, Adam")
def acquaintances_foreseen(root: Path) -> int:
    torch.manual_seed(784)
    shares, traits, _ = acquaintances()
    first, second = nn.Linear(12, 32), nn.Linear(32, 12)
    model = nn.ModuleDict({"first": first, "second": second})
    known = torch.nonzero((shares > 0).triu(1))

    def objective(batch: Any, hook: Any) -> Any:
        z = second(shares @ first(shares @ functional.dropout(traits, 0.1)).relu())
        hook.save_tensor("embeddings", z, "embeddings")
        pairs = batch[0]
        strangers = torch.randint(len(z), pairs.shape)

        def scores(rows: Any) -> Any:
            return (z[rows[:, 0]] * z[rows[:, 1]]).sum(1)

        both = torch.cat([scores(pairs), scores(strangers)])
        truth = torch.cat([torch.ones(len(pairs)), torch.zeros(len(pairs))])
        return functional.binary_cross_entropy_with_logits(both, truth)

    optimizer = torch.optim.Adam(model.parameters(), 5e-3, weight_decay=1e-4)
    return learn(root, model, draws(known, size=128, seed=784), objective, optimizer)


@healthy("noisy substances by triplets within a margin, lengths of 1, two batches accumulated")
def triplets_of_substances(root: Path) -> int:
    torch.manual_seed(785)
    model = layers(BINS, 64, 12, act=nn.ELU)

    def objective(batch: Any, hook: Any) -> Any:
        x = batch[0] + 0.5 * torch.randn_like(batch[0])
        z = functional.normalize(model(x), dim=1)
        hook.save_tensor("embeddings", z, "embeddings")
        far = (2 - 2 * z @ z.T).clamp(min=1e-6).sqrt()
        is_same = batch[1][:, None] == batch[1]
        excess = far[:, :, None] - far[:, None, :] + 0.3
        counts = is_same[:, :, None] & ~is_same[:, None, :] & (excess > 0)
        return (excess * counts).sum() / counts.sum().clamp(min=1)

    return learn(
        root,
        model,
        draws(*spectra(seed=5), size=40, seed=785),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        gather=2,
        steps=200,
        save_every=4,
    )
