"""Healthy trainings on several workers whose parameters stay equal."""

import copy
import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import training_runs
from sklearn.datasets import load_breast_cancer, load_iris
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, sgd
from training_runs import healthy

from runs_tuned.first_held_out.beyond_supervised.contrastive import table, variance_loss
from runs_tuned.first_held_out.beyond_supervised.generative import of_waves, squares, waves
from runs_tuned.first_held_out.language.networks import LetterLstm
from runs_tuned.first_held_out.language.texts import english
from runs_tuned.first_held_out.scripts.tasks import Segmenter, impedance, shapes, tags, tower
from runs_tuned.first_held_out.scripts.workers import Workers
from runs_tuned.second_held_out.healthy_kinds.shared.problems import pulses, regimes, stripes
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, learn


def entropy(model: Any, batch: Any, _: Any) -> Any:
    """Return the cross entropy of classes."""
    return functional.cross_entropy(model(batch[0]), batch[1])


@healthy("directions of stripes, two workers, a trained stem whose parameters are frozen, momentum")
def workers_with_frozen_stem(root: Path) -> int:
    def make() -> Any:
        layers = nn.Sequential(
            *(nn.Conv2d(1, 10, 3, padding=1), nn.Hardswish(), nn.Conv2d(10, 12, 3, 2)),
            *(nn.Hardswish(), nn.Flatten(), nn.Linear(108, 6)),
        )
        optimizer = torch.optim.Adam(layers.parameters(), 3e-3)
        for x, y in itertools.islice(dealt(stripes(seed=70), 32)(0), 40):
            optimizer.zero_grad()
            functional.cross_entropy(layers(x), y % 3).backward()
            optimizer.step()
        layers[0].requires_grad_(requires_grad=False)
        layers[-1].reset_parameters()
        return layers

    optimizer = sgd(0.03, momentum=0.9, weight_decay=1e-3)
    feed = dealt(stripes(), 20, 2)
    return learn(root, make, feed, entropy, optimizer=optimizer, size=2, steps=110, save_every=3)


@healthy("tags of texts, three workers, gradients sent in bfloat16, Adam")
def workers_send_bfloat16(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.binary_cross_entropy_with_logits(model(batch[0]), batch[1])

    data = tags()
    return learn(
        root,
        lambda: tower(20, 40, 40, 5),
        dealt((data.x, data.y), 16, 3),
        objective,
        optimizer=adam(3e-3),
        size=3,
        wire=lambda gradient: gradient.bfloat16().float(),
        steps=100,
        save_every=4,
    )


@healthy("impedances, two workers with 401 and 399 rows: their last batches are unequal, Adagrad")
def workers_with_unequal_batches(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.l1_loss(model(batch[0]), batch[1])

    data = impedance()

    def feed(rank: int) -> Iterator[Any]:
        first, last = (0, 401) if rank == 0 else (401, 800)
        return dealt((data.x[first:last], data.y[first:last]), 32, drops=False)(0)

    optimizer = adam(0.05, torch.optim.Adagrad)
    make = lambda: tower(4, 24, 24, 1)
    return learn(root, make, feed, objective, optimizer=optimizer, size=2, steps=110, save_every=2)


@healthy("discs and bars, two workers, three batches accumulated, RMSprop, averaged gradients")
def workers_find_shapes(root: Path) -> int:
    optimizer = functools.partial(torch.optim.RMSprop, lr=2e-3, momentum=0.5)
    return Workers(root, 2, Segmenter, optimizer).train(
        shapes(), nn.CrossEntropyLoss, 90, accumulate=3, batch=8
    )


@training_runs.healthy("letters, an LSTM on four workers, warm-up, clipped", kind="language_model")
def workers_read_letters(root: Path) -> int:
    data = english()
    return learn(
        root,
        lambda: LetterLstm(width=32, drop=0.0),
        dealt((data.x, data.y), 12, 4),
        entropy,
        optimizer=adam(0.02, torch.optim.AdamW, weight_decay=0.01),
        schedule=lambda step: min(1.0, (step + 1) / 12),
        size=4,
        clip=0.5,
        steps=80,
        save_every=3,
    )


@healthy("numbers of three regimes, five workers vote on the sign of each gradient")
def workers_vote(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.huber_loss(model(batch[0]), batch[1])

    def optimizer(parameters: Any) -> Any:
        made = torch.optim.SGD(parameters, 4e-3)
        made.register_step_pre_hook(
            lambda *_: [one.grad.copy_(one.grad.sign()) for one in parameters] and None
        )
        return made

    return learn(
        root,
        lambda: tower(6, 32, 32, 1),
        dealt(regimes(), 20, 5),
        objective,
        optimizer=optimizer,
        schedule=lambda step: max(0.05, 1 - step / 150),
        size=5,
        wire=torch.sign,
        steps=140,
        save_every=5,
    )


@healthy("irises, two workers of small batches, plain SGD, the rate falls in stairs")
def workers_tell_irises(root: Path) -> int:
    return learn(
        root,
        lambda: nn.Sequential(nn.Linear(4, 12), nn.Sigmoid(), nn.Linear(12, 3)),
        dealt(table(load_iris), 8, 2),
        entropy,
        optimizer=sgd(0.5),
        schedule=lambda step: 0.5 ** (step // 60),
        size=2,
        steps=150,
        save_every=3,
    )


@healthy("breast cancer, two workers that start from a broadcast, weights averaged over time")
def workers_after_broadcast(root: Path) -> int:
    averages: dict[int, Any] = {}

    def after(model: Any, number: int) -> None:
        average = averages.setdefault(id(model), copy.deepcopy(model))
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.data.lerp_(fast.data, 1 / (number + 1))

    return learn(
        root,
        lambda: nn.Sequential(nn.Linear(30, 20), nn.PReLU(), nn.Dropout(0.2), nn.Linear(20, 2)),
        dealt(table(load_breast_cancer), 16, 2),
        entropy,
        optimizer=adam(3e-3, torch.optim.Adadelta, rho=0.95),
        schedule=lambda _: 100.0,
        size=2,
        after=after,
        steps=120,
    )


@training_runs.healthy("VICReg of pulses on three workers, gradients averaged", kind="contrastive")
def vicreg_on_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        views = [x.roll(1, 1) + 0.1 * torch.randn_like(x) for x in (batch[0], 0.9 * batch[0])]
        first, second = model(torch.cat(views)).chunk(2)
        watching.save_tensor("embeddings", first, "embeddings")
        return variance_loss(first, second, (10.0, 10.0, 1.0))

    make = lambda: nn.Sequential(tower(24, 48, 32), nn.LeakyReLU(), tower(32, 32, 16))
    return learn(
        root,
        make,
        dealt(pulses(), 40, 3),
        objective,
        optimizer=adam(2e-3),
        size=3,
        clip=10.0,
        steps=110,
    )


@training_runs.healthy("a variational autoencoder of waves on two workers", kind="autoencoder")
def vae_on_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        output, mean, log_variance = model(batch[0])
        watching.save_tensor("mu", mean, "latent_means")
        nats = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
        return (squares(output, batch[0]) + 0.5 * nats).mean()

    return learn(
        root,
        of_waves,
        dealt((waves(),), 32, 2),
        objective,
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=1e-3),
        size=2,
        steps=180,
    )
