"""Healthy contrastive and self-supervised trainings, and metric learning."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.seventh_held_out.representations.shared.data import (
    captions,
    digits,
    signals,
    tumours,
)
from runs_tuned.seventh_held_out.representations.shared.loop import (
    descend,
    loader,
    loop,
    teach,
    warmup_cosine,
)
from runs_tuned.seventh_held_out.representations.shared.networks import convolutions, mlp

of_views = functools.partial(training_runs.healthy, kind="contrastive")


def shifted(x: Any) -> Any:
    """Return pictures moved by up to a pixel, brighter or darker, with noise."""
    across, down = torch.randint(-1, 2, (2,)).tolist()
    moved = x.roll((across, down), (2, 3)) * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1))
    return moved + 0.1 * torch.randn_like(x)


def jittered(x: Any) -> Any:
    """Return signals moved, scaled and with noise."""
    moved = x.roll(int(torch.randint(-4, 5, ())), 1)
    return moved * (0.7 + 0.6 * torch.rand(len(x), 1)) + 0.15 * torch.randn_like(x)


def nt_xent(first: Any, second: Any, temperature: float = 0.5) -> Any:
    """Return the loss of SimCLR."""
    z = functional.normalize(torch.cat([first, second]))
    scores = (z @ z.T / temperature).fill_diagonal_(float("-inf"))
    count = len(first)
    targets = torch.cat([torch.arange(count, 2 * count), torch.arange(count)])
    return functional.cross_entropy(scores, targets)


@of_views("views of digits by a small convolutional net (SimCLR), batch norm, Adam, cosine")
def simclr_on_digits(root: Path) -> int:
    torch.manual_seed(1)
    x = digits()[0]
    model = nn.Sequential(convolutions(16, 64), nn.ReLU(), mlp(64, 64, 32, norm=nn.BatchNorm1d))

    def objective(batch: Any, hook: Any) -> Any:
        first, second = model(shifted(batch[0])), model(shifted(batch[0]))
        hook.save_tensor("embeddings", first, "embeddings")
        return nt_xent(first, second)

    return teach(
        root,
        model,
        loader(x, size=64, seed=1),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3, weight_decay=1e-6),
        factor=warmup_cosine(10, 160),
        steps=160,
    )


@of_views("views of signals with a predictor and a stopped gradient (SimSiam), SGD, cosine")
def simsiam_on_signals(root: Path) -> int:
    torch.manual_seed(2)
    x, _ = signals(seed=2)
    norm = nn.BatchNorm1d
    encoder = nn.Sequential(mlp(48, 96, 96, 32, norm=norm), norm(32, affine=False))
    predictor = mlp(32, 16, 32, norm=norm)
    model = nn.ModuleDict({"encoder": encoder, "predictor": predictor})

    def objective(batch: Any, hook: Any) -> Any:
        first, second = encoder(jittered(batch[0])), encoder(jittered(batch[0]))
        hook.save_tensor("embeddings", first, "embeddings")
        ahead = functional.cosine_similarity(predictor(first), second.detach()).mean()
        back = functional.cosine_similarity(predictor(second), first.detach()).mean()
        return -(ahead + back) / 2

    return teach(
        root,
        model,
        loader(x, size=64, seed=2),
        objective,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4),
        factor=warmup_cosine(1, 200),
        steps=200,
    )


@of_views("views of digits with a slow target network and a predictor (BYOL), AdamW")
def byol_on_digits(root: Path) -> int:
    torch.manual_seed(3)
    x = digits()[0]
    online = nn.Sequential(convolutions(12, 48), nn.ReLU(), mlp(48, 64, 24, norm=nn.BatchNorm1d))
    predictor = mlp(24, 48, 24, norm=nn.BatchNorm1d)
    target = copy.deepcopy(online).requires_grad_(requires_grad=False)
    model = nn.ModuleDict({"online": online, "predictor": predictor})

    def objective(batch: Any, hook: Any) -> Any:
        views = shifted(batch[0]), shifted(batch[0])
        first, second = (online(view) for view in views)
        hook.save_tensor("embeddings", first, "embeddings")
        with torch.no_grad():
            goals = [target(view) for view in views]
        pairs = ((first, goals[1]), (second, goals[0]))
        return sum(
            2 - 2 * functional.cosine_similarity(predictor(z), goal).mean() for z, goal in pairs
        )

    def follow(_: int) -> None:
        with torch.no_grad():
            for late, early in zip(target.parameters(), online.parameters(), strict=True):
                late.lerp_(early, 0.02)

    return teach(
        root,
        model,
        loader(x, size=64, seed=3),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=1e-4),
        factor=warmup_cosine(10, 150),
        after=follow,
    )


@of_views("views of signals by variance, invariance and covariance (VICReg), Adam")
def vicreg_on_signals(root: Path) -> int:
    torch.manual_seed(4)
    x, _ = signals(seed=4)
    encoder = mlp(48, 96, 64, norm=nn.BatchNorm1d)
    projector = mlp(64, 64, 32, norm=nn.BatchNorm1d)
    model = nn.Sequential(encoder, nn.ReLU(), projector)

    def spread(z: Any) -> Any:
        z = z - z.mean(0)
        covariance = (z.T @ z) / (len(z) - 1)
        of_others = covariance - torch.diag(covariance.diagonal())
        hinge = functional.relu(1 - (z.var(0) + 1e-4).sqrt()).mean()
        return 25 * hinge + of_others.pow(2).sum() / z.shape[1]

    def objective(batch: Any, hook: Any) -> Any:
        first, second = model(jittered(batch[0])), model(jittered(batch[0]))
        hook.save_tensor("embeddings", first, "embeddings")
        return 25 * functional.mse_loss(first, second) + spread(first) + spread(second)

    return teach(
        root,
        model,
        loader(x, size=96, seed=4),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=180,
        save_every=3,
    )


@of_views("pictures and their captions by two towers with a learnt temperature (CLIP), AdamW")
def clip_on_captions(root: Path) -> int:
    torch.manual_seed(5)
    pictures, texts = captions(seed=5)
    model = nn.ModuleDict(
        {
            "picture": convolutions(12, 32, side=16),
            "words": nn.EmbeddingBag(13, 48, mode="sum"),
            "text": mlp(48, 64, 32, act=nn.GELU),
        }
    )
    model.logit_scale = nn.Parameter(torch.tensor(1 / 0.07).log())

    def objective(batch: Any, hook: Any) -> Any:
        seen = functional.normalize(model["picture"]((batch[0] - 0.3) / 0.4))
        read = functional.normalize(model["text"](model["words"](batch[1])))
        hook.save_tensor("embeddings", seen, "embeddings")
        scores = model.logit_scale.exp().clamp(max=100) * seen @ read.T
        targets = torch.arange(len(scores))
        cross_entropy = functional.cross_entropy
        return (cross_entropy(scores, targets) + cross_entropy(scores.T, targets)) / 2

    return teach(
        root,
        model,
        loader(pictures, texts, size=48, seed=5),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01),
        factor=warmup_cosine(15, 150),
        clip=1.0,
    )


@of_views("digits by triplets: any other row of the same digit, any of another one, margin 0.5")
def triplets_of_digits(root: Path) -> int:
    torch.manual_seed(6)
    x, y, test_x, test_y = digits()
    model = convolutions(16, 24)
    loss = nn.TripletMarginWithDistanceLoss(
        distance_function=lambda a, b: (a - b).pow(2).sum(1), margin=0.5
    )
    rows = [(y == kind).nonzero()[:, 0] for kind in range(10)]
    read = loader(x, y, size=64, seed=6)

    def drawn(kinds: Any) -> Any:
        return x[[int(rows[kind][torch.randint(len(rows[kind]), ())]) for kind in kinds.tolist()]]

    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def update(number: int, hook: Any) -> None:
        anchors, kinds = next(read)
        others = (kinds + torch.randint(1, 10, kinds.shape)) % 10
        embedded = model(torch.cat([anchors, drawn(kinds), drawn(others)]))
        anchor, positive, negative = functional.normalize(embedded).chunk(3)
        hook.save_tensor("embeddings", anchor, "embeddings")
        value = loss(anchor, positive, negative)
        descend(value, optimizer)
        if number % 40 == 0:
            model.eval()
            with torch.no_grad():
                nearest = torch.cdist(model(test_x), model(x)).argmin(1)
            hook.save_scalar("knn_accuracy", (y[nearest] == test_y).float().mean().item())
            model.train()

    return loop(root, [model], update, losses=(loss,), steps=161)


@of_views("rows of a table, of which parts are replaced by others' (SCARF), InfoNCE, Adam")
def scarf_on_tumours(root: Path) -> int:
    torch.manual_seed(7)
    x, _ = tumours()
    model = nn.Sequential(mlp(30, 64, 64), nn.ReLU(), mlp(64, 32, 32))

    def corrupted(rows: Any) -> Any:
        others = x[torch.randint(len(x), rows.shape), torch.arange(30)]
        return torch.where(torch.rand(rows.shape) < 0.4, others, rows)

    def objective(batch: Any, hook: Any) -> Any:
        anchor = functional.normalize(model(batch[0]))
        view = functional.normalize(model(corrupted(batch[0])))
        hook.save_tensor("embeddings", anchor, "embeddings")
        return functional.cross_entropy(anchor @ view.T / 0.5, torch.arange(len(anchor)))

    return teach(
        root,
        model,
        loader(x, size=64, seed=7),
        objective,
        torch.optim.Adam(model.parameters(), 1e-3),
        steps=200,
        save_every=4,
    )
