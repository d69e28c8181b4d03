"""Healthy embeddings: views, kinds and pairs that are brought together, and others held apart."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.representations.shared.figures import (
    BEAT,
    LEAF,
    coarse_digits,
    heartbeats,
    leaves,
    pendulums,
    rosettes,
    wines,
)
from runs_tuned.sixth_held_out.representations.shared.loop import (
    halved,
    rows_of,
    teach,
    up_and_down,
)
from runs_tuned.sixth_held_out.representations.shared.networks import dense

of_views = functools.partial(training_runs.healthy, kind="contrastive")


def loud_and_late(x: Any) -> Any:
    """Return other views of curves: of other loudness, a little later or earlier, and noisy."""
    louder = 0.8 + 0.4 * torch.rand(len(x), 1)
    late = (torch.arange(BEAT) + torch.randint(-2, 3, (len(x), 1))) % BEAT
    return louder * x.gather(1, late) + 0.15 * torch.randn_like(x)


@of_views("two views of heartbeats against the others of the batch (SimCLR), AdamW, warm-up")
def heartbeats_against_others(root: Path) -> int:
    torch.manual_seed(680)
    model = dense(BEAT, 64, 64, 24, norm=True)

    def objective(batch: Any, hook: Any) -> Any:
        rows = torch.cat([loud_and_late(batch[0]), loud_and_late(batch[0])])
        embedded = functional.normalize(model(rows))
        hook.save_tensor("embeddings", embedded, "embeddings")
        count = len(batch[0])
        scores = (embedded @ embedded.T / 0.2).fill_diagonal_(-1e4)
        return functional.cross_entropy(scores, torch.arange(2 * count).roll(count))

    return teach(
        root,
        model,
        rows_of(heartbeats(seed=4)[0], size=64, seed=680),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3),
        rate=up_and_down(15, 150),
        save_every=3,
    )


@of_views("two views of rosettes: alike, varied and uncorrelated (VICReg), convolutions, Adam")
def rosettes_varied(root: Path) -> int:
    torch.manual_seed(681)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        dense(216, 64, 16, norm=True),
    )

    def view(x: Any) -> Any:
        x = x.flip(-1) if torch.rand(()) < 0.5 else x
        return (x.rot90(int(torch.randint(4, ())), (-2, -1)) - 0.4) / 0.4 + torch.randn_like(x) / 10

    def objective(batch: Any, hook: Any) -> Any:
        first, second = model(view(batch[0])), model(view(batch[0]))
        hook.save_tensor("embeddings", first, "embeddings")
        value = 25 * functional.mse_loss(first, second)
        for rows in (first, second):
            apart = rows - rows.mean(0)
            both = apart.T @ apart / (len(rows) - 1)
            value = value + 25 * functional.relu(1 - (both.diag() + 1e-4).sqrt()).mean() / 2
            value = value + (both - both.diag().diag()).pow(2).sum() / 16
        return value

    return teach(
        root,
        model,
        rows_of(rosettes(seed=2)[0], size=64, seed=681),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        save_every=3,
    )


def follower(model: Any, late: Any, share: float) -> Callable[[int], None]:
    """Return what moves a late copy of a model a little nearer to it."""
    late.load_state_dict(model.state_dict())
    late.requires_grad_(requires_grad=False)

    def follow(_: int) -> None:
        with torch.no_grad():
            for slow, fast in zip(late.parameters(), model.parameters(), strict=True):
                slow.lerp_(fast, share)

    return follow


@of_views(
    "leaves, turned and noisy, foreseen by a predictor and a slow copy (BYOL), SGD, batch norm"
)
def turned_leaves_foreseen(root: Path) -> int:
    torch.manual_seed(682)
    sizes = (LEAF, 64, 64, 16)
    model = nn.ModuleDict(
        {"encoder": dense(*sizes, norm=True), "predictor": dense(16, 32, 16, norm=True)}
    )
    late = dense(*sizes, norm=True)

    def view(x: Any) -> Any:
        return x.roll(int(torch.randint(-1, 2, ())), 1) + 0.2 * torch.randn_like(x)

    def objective(batch: Any, hook: Any) -> Any:
        first, second = view(batch[0]), view(batch[0])
        embedded = model["encoder"](first), model["encoder"](second)
        hook.save_tensor("embeddings", embedded[0], "embeddings")
        alike = [
            functional.cosine_similarity(model["predictor"](row), late(other)).mean()
            for row, other in zip(embedded, (second, first), strict=True)
        ]
        return 2 - sum(alike)

    return teach(
        root,
        model,
        rows_of(leaves(seed=4)[0], size=64, seed=682),
        objective,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4),
        steps=180,
        save_every=3,
        finish=follower(model["encoder"], late, 0.03),
    )


@of_views("triplets of wines, half-hard ones are chosen in the batch, a margin, RMSprop, halved")
def wines_by_triplets(root: Path) -> int:
    torch.manual_seed(683)
    x, kind = wines()
    x = (x - x.mean(0)) / x.std(0)
    model = dense(13, 48, 8, act=nn.ELU)

    def objective(batch: Any, hook: Any) -> Any:
        embedded = functional.normalize(model(batch[0] + 0.3 * torch.randn_like(batch[0])))
        hook.save_tensor("embeddings", embedded, "embeddings")
        far = torch.cdist(embedded, embedded)
        same = batch[1][:, None] == batch[1]
        hardest = (far * same).max(1).values
        nearest = far.masked_fill(same, 9.0).topk(5, 1, largest=False).values.mean(1)
        return functional.relu(hardest - nearest + 0.3).mean()

    return teach(
        root,
        model,
        rows_of(x, kind, size=44, seed=683),
        objective,
        torch.optim.RMSprop(model.parameters(), 1e-3),
        rate=halved(60),
        steps=140,
    )


@of_views("upper halves of digits find their lower halves (CLIP), a learnt heat, Adam, clipped")
def halves_of_digits(root: Path) -> int:
    torch.manual_seed(684)
    x = coarse_digits().float() / 1.5 - 1
    x = x[torch.randperm(len(x))]
    model = nn.ModuleDict({"upper": dense(32, 64, 16), "lower": dense(32, 64, 16)})
    heat = nn.Parameter(torch.tensor(2.0))
    model.register_parameter("heat", heat)

    def objective(batch: Any, hook: Any) -> Any:
        upper = functional.normalize(model["upper"](batch[0][:, :32]))
        lower = functional.normalize(model["lower"](batch[0][:, 32:]))
        hook.save_tensor("embeddings", upper, "embeddings")
        scores, own = heat.exp() * upper @ lower.T, torch.arange(len(upper))
        return (functional.cross_entropy(scores, own) + functional.cross_entropy(scores.T, own)) / 2

    return teach(
        root,
        model,
        rows_of(x[:1600], size=64, seed=684),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        limit=1.0,
        steps=180,
        save_every=3,
        test=(x[1600:1664],),
    )


@of_views("petals of rosettes by angles to four learnt directions with a margin (ArcFace), NAdam")
def petals_by_angles(root: Path) -> int:
    torch.manual_seed(685)
    x, petals = rosettes(seed=3)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(288, 16),
        nn.BatchNorm1d(16),
    )
    directions = nn.Parameter(torch.randn(4, 16))
    model.register_parameter("directions", directions)

    def objective(batch: Any, hook: Any) -> Any:
        embedded = model((batch[0] - 0.4) / 0.4)
        hook.save_tensor("embeddings", embedded, "embeddings")
        near = functional.normalize(embedded) @ functional.normalize(directions).T
        margin = 0.2 * functional.one_hot(batch[1], 4)
        return functional.cross_entropy(8 * (near - margin), batch[1])

    return teach(
        root,
        model,
        rows_of(x[:1000], petals[:1000], size=40, seed=685),
        objective,
        torch.optim.NAdam(model.parameters(), 2e-3),
        steps=160,
        save_every=3,
        test=(x[1000:], petals[1000:]),
    )


@of_views("what pendulums do is foreseen in latent numbers of a slow copy, and what is seen, AdamW")
def pendulums_in_latent_numbers(root: Path) -> int:
    torch.manual_seed(686)
    seen, pushes = pendulums(seed=1)
    model = nn.ModuleDict(
        {
            "encoder": dense(10, 48, 12, act=nn.SiLU),
            "steps": dense(15, 64, 12, act=nn.SiLU),
            "shows": dense(12, 48, 10, act=nn.SiLU),
        }
    )
    late = dense(10, 48, 12, act=nn.SiLU)

    def objective(batch: Any, hook: Any) -> Any:
        state = model["encoder"](batch[0][:, 0])
        hook.save_tensor("embeddings", state, "embeddings")
        value = functional.mse_loss(model["shows"](state), batch[0][:, 0])
        for at in range(3):
            pushed = functional.one_hot(batch[1][:, at], 3).float()
            state = state + model["steps"](torch.cat([state, pushed], 1))
            value = value + 0.2 * functional.mse_loss(state, late(batch[0][:, at + 1]))
            value = value + functional.mse_loss(model["shows"](state), batch[0][:, at + 1])
        return value

    return teach(
        root,
        model,
        rows_of(seen, pushes, size=48, seed=686),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3),
        limit=1.0,
        steps=180,
        save_every=3,
        finish=follower(model["encoder"], late, 0.05),
    )
