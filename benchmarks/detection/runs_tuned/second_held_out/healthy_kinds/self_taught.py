"""Healthy encoders that learn from themselves: by targets, averages and decorrelation."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, sgd

from runs_tuned.first_held_out.beyond_supervised.contrastive import (
    Embedder,
    brightened,
    shifted,
    variance_loss,
)
from runs_tuned.first_held_out.beyond_supervised.generative import spots, waves
from runs_tuned.second_held_out.healthy_kinds.encoders import noisy
from runs_tuned.second_held_out.healthy_kinds.shared.problems import baskets, pulses
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, in_full, learn

healthy = functools.partial(training_runs.healthy, kind="contrastive")


class Predicting(Embedder):
    """An embedder with a predictor."""

    def __init__(self, ins: int, outs: int = 24) -> None:
        super().__init__(ins, outs)
        self.predictor = nn.Sequential(
            *(nn.Linear(outs, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Linear(12, outs))
        )


@healthy("SimSiam of spots: a predictor, a stopped gradient, SGD with weight decay and a cosine")
def simsiam_of_spots(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        first, second = model(brightened(batch[0])), model(brightened(batch[0]))
        watching.save_tensor("projections", first, "embeddings")
        pairs = ((first, second), (second, first))
        return -sum(
            functional.cosine_similarity(model.predictor(one), other.detach()).mean() / 2
            for one, other in pairs
        )

    return learn(
        root,
        lambda: Predicting(64),
        dealt((spots(),), 64),
        objective,
        optimizer=sgd(0.05, momentum=0.9, weight_decay=5e-4),
        schedule=lambda step: 1 - 0.9 * step / 160,
        steps=160,
    )


@healthy("VICReg of baskets, goods left out, half precision with a scaler")
def scaled_vicreg_of_baskets(root: Path) -> int:
    loss = in_full(functools.partial(variance_loss, weights=(15.0, 15.0, 1.0)))

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        drop = functools.partial(functional.dropout, batch[0], 0.25)
        first, second = model(torch.cat([drop(), drop()])).float().chunk(2)
        watching.save_tensor("embeddings", first, "embeddings")
        return loss(first, second)

    return learn(
        root,
        lambda: Embedder(30, 20, act=nn.SiLU),
        dealt((baskets(),), 64),
        objective,
        optimizer=adam(3e-3),
        half=torch.float16,
        scaler={"init_scale": 2.0**13, "growth_interval": 12},
        steps=140,
        save_every=1,
    )


class Queued(nn.Module):
    """An encoder, another that follows it, and a queue of the latter's keys."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Embedder(32, 16, act=nn.ELU)
        self.slow = copy.deepcopy(self.encoder).requires_grad_(requires_grad=False)
        self.register_buffer("queue", functional.normalize(torch.randn(256, 16)))

    def follow(self, _: int) -> None:
        for slow, fast in zip(self.slow.parameters(), self.encoder.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.03)


@healthy("MoCo of waves: a queue of 256 keys, an encoder that follows slowly")
def moco_of_waves(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        query = model.encoder(noisy(batch[0]))
        watching.save_tensor("embeddings", query, "embeddings")
        with torch.no_grad():
            key = functional.normalize(model.slow(noisy(batch[0])))
        unit = functional.normalize(query)
        scores = torch.cat([(unit * key).sum(1, keepdim=True), unit @ model.queue.T], 1)
        model.queue = torch.cat([key, model.queue])[:256]
        return functional.cross_entropy(scores / 0.15, torch.zeros(len(key), dtype=torch.int64))

    return learn(
        root,
        Queued,
        dealt((waves(),), 32),
        objective,
        optimizer=sgd(0.06, momentum=0.9),
        after=Queued.follow,
        steps=200,
    )


class Taught(nn.Module):
    """A student and a teacher that follows it, and the teacher's mean output."""

    def __init__(self) -> None:
        super().__init__()
        self.student = nn.Sequential(Embedder(24, 24, act=nn.GELU), nn.Linear(24, 32, bias=False))
        self.teacher = copy.deepcopy(self.student).requires_grad_(requires_grad=False)
        self.register_buffer("centre", torch.zeros(32))

    def follow(self, _: int) -> None:
        for slow, fast in zip(self.teacher.parameters(), self.student.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.02)


@healthy("DINO of pulses: a teacher that is centred and sharpened, 32 prototypes, AdamW")
def dino_of_pulses(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        first, second = (noisy(batch[0], 0.2) for _ in range(2))
        embedded = model.student[0](torch.cat([first, second]))
        watching.save_tensor("embeddings", embedded, "embeddings")
        with torch.no_grad():
            teacher = model.teacher(torch.cat([second, first]))
            target = ((teacher - model.centre) / 0.06).softmax(-1)
            model.centre = 0.9 * model.centre + 0.1 * teacher.mean(0)
        logs = (model.student[1](embedded) / 0.15).log_softmax(-1)
        return -(target * logs).sum(1).mean()

    return learn(
        root,
        Taught,
        dealt(pulses(), 48),
        objective,
        optimizer=adam(2e-3, torch.optim.AdamW, weight_decay=0.04),
        after=Taught.follow,
        clip=3.0,
        steps=200,
    )


@healthy("waves of another phase, whitened: the distance of views of decorrelated embeddings")
def whitened_waves(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        first, second = model(torch.cat([shifted(batch[0]), noisy(batch[0])])).chunk(2)
        watching.save_tensor("embeddings", first, "embeddings")
        whitened = []
        for z in (first, second):
            centred = z - z.mean(0)
            covariance = centred.T @ centred / len(z) + 0.05 * torch.eye(z.shape[1])
            whitened.append(
                torch.linalg.solve_triangular(
                    torch.linalg.cholesky(covariance), centred.T, upper=False
                )
            )
        return functional.mse_loss(*whitened)

    feed = dealt((waves(),), 96)
    make = lambda: nn.Sequential(
        Embedder(32, 10, act=nn.LeakyReLU), nn.BatchNorm1d(10, affine=False)
    )
    return learn(root, make, feed, objective, optimizer=adam(2e-3), steps=140)
