"""Healthy autoencoders, variational and plain, and healthy embeddings of views."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.blocks import layers
from runs_tuned.fifth_held_out.representations.shared.codes import Coder, code, divergence
from runs_tuned.fifth_held_out.representations.shared.loop import cosine, epochs, learn
from runs_tuned.fifth_held_out.representations.shared.shapes import (
    GAIT,
    blood,
    clocks,
    gaits,
    photographs,
)
from runs_tuned.fifth_held_out.representations.shared.texts import STITCHES, knitting

of_codes = functools.partial(training_runs.healthy, kind="autoencoder")
of_views = functools.partial(training_runs.healthy, kind="contrastive")

# Codes


@of_codes("a variational autoencoder of clocks, chances of pixels, the divergence warms up, Adam")
def codes_of_clocks(root: Path) -> int:
    torch.manual_seed(960)
    model, count = Coder(144, 10, act=nn.ELU), [0]

    def objective(batch: Any, hook: Any) -> Any:
        drawn, mean, spread = code(model, 4 * (batch[0] - 0.2), hook)
        count[0] += model.training
        errors = functional.binary_cross_entropy_with_logits(drawn, batch[0], reduction="none")
        weight = min(1.0, count[0] / 200)
        return errors.sum(1).mean() + 0.2 * weight * divergence(mean, spread).sum(1).mean()

    x, _ = clocks()
    return learn(
        root,
        model,
        epochs(x[:740], seed=960),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=220,
        save_every=3,
        held_out=(x[740:],),
    )


@of_codes(
    "a variational autoencoder of gaits with 16 codes, of which it needs a few, AdamW, clipped"
)
def codes_of_gaits(root: Path) -> int:
    torch.manual_seed(961)
    model = Coder(GAIT, 16, act=nn.SiLU)

    def objective(batch: Any, hook: Any) -> Any:
        drawn, mean, spread = code(model, batch[0], hook)
        errors = (drawn - batch[0]).pow(2).sum(1).mean() / 0.08
        return errors + divergence(mean, spread).sum(1).mean()

    return learn(
        root,
        model,
        epochs(gaits()[0], size=48, seed=961),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3),
        steps=200,
        save_every=3,
        rate=cosine(15, 200),
        clip=50.0,
    )


@of_codes("a variational autoencoder of blood values, absolute errors, free bits of 0.1, RMSprop")
def codes_of_blood(root: Path) -> int:
    torch.manual_seed(962)
    model = Coder(30, 4, width=48, act=nn.Tanh)

    def objective(batch: Any, hook: Any) -> Any:
        drawn, mean, spread = code(model, batch[0], hook)
        errors = (drawn - batch[0]).abs().sum(1).mean() / 0.4
        return errors + divergence(mean, spread).mean(0).clamp(min=0.1).sum()

    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
    return learn(root, model, epochs(blood()[0], seed=962), objective, optimizer, steps=180)


@of_codes("a sparse autoencoder of a photograph's pieces: of 128 units the strongest 12 stay, Adam")
def strongest_units_stay(root: Path) -> int:
    torch.manual_seed(963)
    model = nn.Sequential(nn.Linear(64, 128), nn.Linear(128, 64))

    def objective(batch: Any, hook: Any) -> Any:
        strong, which = model[0](batch[0]).topk(12, 1)
        units = torch.zeros(len(strong), 128).scatter(1, which, strong.relu())
        hook.save_scalar("used_units", (units > 0).any(0).float().mean())
        return functional.mse_loss(model[1](units), batch[0])

    return learn(
        root,
        model,
        epochs(photographs(), size=64, seed=963),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=180,
        save_every=3,
    )


@of_codes("an autoencoder fills in a photograph's pieces of which half are hidden, momentum, steps")
def pieces_filled_in(root: Path) -> int:
    torch.manual_seed(964)
    model = layers(128, 96, 24, 96, 64, act=nn.GELU)

    def objective(batch: Any, _: Any) -> Any:
        is_seen = (torch.rand(batch[0].shape) < 0.5).float()
        return functional.mse_loss(model(torch.cat([batch[0] * is_seen, is_seen], 1)), batch[0])

    return learn(
        root,
        model,
        epochs(photographs(seed=1), seed=964),
        objective,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        steps=200,
        rate=lambda step: 0.3 ** (step // 80),
    )


# Views


def shaken(x: Any) -> Any:
    """Return gaits that are a little slower or faster, and noisy."""
    return x * (0.9 + 0.2 * torch.rand(len(x), 1)) + 0.1 * torch.randn_like(x)


@of_views("gaits of a person are alike, those of others not (SupCon), a small head, AdamW")
def gaits_of_a_person_alike(root: Path) -> int:
    torch.manual_seed(965)
    model = layers(GAIT, 64, 32, 16)
    x, person = gaits()

    def objective(batch: Any, hook: Any) -> Any:
        rows = functional.normalize(model(shaken(batch[0])))
        hook.save_tensor("embeddings", rows, "embeddings")
        scores = (rows @ rows.T / 0.2).masked_fill(torch.eye(len(rows)).bool(), -1e9)
        same = (batch[1][:, None] == batch[1]).float() * (1 - torch.eye(len(rows)))
        chances = scores.log_softmax(1)
        return -((same * chances).sum(1) / same.sum(1).clamp(min=1)).mean()

    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    return learn(root, model, epochs(x, person, size=64, seed=965), objective, optimizer)


@of_views("clocks and their times as words, each pair tells by itself if it matches (SigLIP), Adam")
def clocks_and_times(root: Path) -> int:
    torch.manual_seed(966)
    x, told = clocks()
    parts = nn.ModuleDict(
        {
            "clocks": layers(144, 96, 24, act=nn.GELU),
            "hours": nn.Embedding(12, 24),
            "quarters": nn.Embedding(4, 24),
            "scores": nn.Linear(1, 1),
        }
    )
    nn.init.constant_(parts["scores"].weight, 8.0)
    nn.init.constant_(parts["scores"].bias, -6.0)

    def objective(batch: Any, hook: Any) -> Any:
        rows = functional.normalize(parts["clocks"](batch[0]))
        words = parts["hours"](batch[1][:, 0]) + parts["quarters"](batch[1][:, 1])
        hook.save_tensor("embeddings", rows, "embeddings")
        scores = parts["scores"]((rows @ functional.normalize(words).T)[..., None])[..., 0]
        same = (batch[1][:, None] == batch[1]).all(-1).float()
        signs = 2 * same - 1
        return -functional.logsigmoid(signs * scores).sum(1).mean()

    optimizer = torch.optim.Adam(parts.parameters(), 2e-3)
    read = epochs(x, told, size=48, seed=966)
    return learn(root, parts, read, objective, optimizer, steps=200, save_every=3)


@of_views("two views of gaits foresee each other's prototypes, evened out in three rounds, SGD")
def prototypes_evened_out(root: Path) -> int:
    torch.manual_seed(967)
    model = nn.ModuleDict(
        {
            "encoder": layers(GAIT, 64, 64, 24, norm=nn.BatchNorm1d),
            "prototypes": nn.Linear(24, 12, bias=False),
        }
    )

    def objective(batch: Any, hook: Any) -> Any:
        rows = [functional.normalize(model["encoder"](shaken(batch[0]))) for _ in range(2)]
        hook.save_tensor("embeddings", rows[0], "embeddings")
        prototypes = functional.normalize(model["prototypes"].weight)
        scores = [row @ prototypes.T for row in rows]
        aims = []
        for score in scores:
            logs = (score / 0.1).detach()
            for _ in range(3):
                logs = (logs - logs.logsumexp(0)).log_softmax(1)
            aims.append(logs.exp())
        first, second = (
            -(aim * (score / 0.2).log_softmax(1)).sum(1).mean()
            for aim, score in zip(aims, scores[::-1], strict=True)
        )
        return (first + second) / 2

    optimizer = torch.optim.SGD(model.parameters(), 0.2, momentum=0.9)
    read = epochs(gaits()[0], size=64, seed=967)
    return learn(root, model, read, objective, optimizer, steps=180, rate=cosine(10, 180))


@of_views("stitches that are near to each other are alike, others are sampled (skip-gram), Adagrad")
def stitches_near_each_other(root: Path) -> int:
    torch.manual_seed(968)
    words = nn.ModuleDict(
        {"inner": nn.Embedding(STITCHES, 12), "outer": nn.Embedding(STITCHES, 12)}
    )
    rows, _ = knitting(seed=7)
    inner = rows[:, 1:-1].flatten()
    outer = torch.stack([rows[:, :-2], rows[:, 2:]], -1).flatten(0, 1)

    def objective(batch: Any, hook: Any) -> Any:
        vectors = words["inner"](batch[0])
        hook.save_tensor("embeddings", vectors, "embeddings")
        others = words["outer"](inner[torch.randint(len(inner), (len(vectors), 6))])
        likely = (vectors[:, None] * words["outer"](batch[1])).sum(-1)
        unlikely = (vectors[:, None] * others).sum(-1)
        near, far = functional.logsigmoid(likely), functional.logsigmoid(-unlikely)
        return -near.sum(1).mean() - far.sum(1).mean()

    optimizer = torch.optim.Adagrad(words.parameters(), 0.1)
    return learn(root, words, epochs(inner, outer, size=128, seed=968), objective, optimizer)
