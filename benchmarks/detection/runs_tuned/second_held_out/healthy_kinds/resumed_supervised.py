"""Healthy resumed trainings: classes, numbers, words, codes and pairs."""

import copy
import functools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import training_runs
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, sgd
from training_runs import healthy

from runs_tuned.first_held_out.beyond_supervised.contrastive import table
from runs_tuned.first_held_out.beyond_supervised.generative import of_waves, waves
from runs_tuned.first_held_out.language.networks import Decoder, LetterLstm
from runs_tuned.first_held_out.language.texts import CHARACTERS, english
from runs_tuned.first_held_out.scripts.tasks import (
    Blocks,
    Segmenter,
    impedance,
    sensors,
    shapes,
    tags,
    tower,
)
from runs_tuned.second_held_out.healthy_kinds.mixtures_of_experts import split
from runs_tuned.second_held_out.healthy_kinds.shared.jobs import Job, Objective, go_on
from runs_tuned.second_held_out.healthy_kinds.shared.problems import (
    SIGNS,
    additions,
    baskets,
    pulses,
    regimes,
    stripes,
)
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt


def of(loss: Callable[[Any, Any], Any]) -> Objective:
    """Return an objective of pairs."""
    return lambda model, batch: {"loss": loss(model(batch[0]).float(), batch[1])}


def fed(data: Any, *sizes: int) -> Callable[[int], Iterator[Any]]:
    """Return batches of a data set, of another size in each part, shuffled anew in each."""

    def feed(number: int) -> Iterator[Any]:
        size = sizes[min(number, len(sizes) - 1)]
        order = torch.randperm(len(data.x), generator=torch.Generator().manual_seed(number))
        return dealt((data.x[order], data.y[order]), size)(0)

    return feed


def tested(data: Any, loss: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """Return what validates a model."""
    return lambda model: loss(model(data.test_x), data.test_y)


@healthy("discs and bars, the rate falls in stairs, goes on from the end of an epoch, in stairs")
def pixels_from_an_epoch(root: Path) -> int:
    data, loss = shapes(), nn.CrossEntropyLoss()
    schedule = lambda step: 0.3 ** (step // 75)
    job = Job(Segmenter, of(loss), sgd(0.1, momentum=0.9), schedule=schedule)
    feed = fed(data, 16)
    return go_on(root, job, feed, [(0, 110), (100, 200)], validates=tested(data, loss))


@healthy("machines, goes on in batches of 64 instead of 16 on a larger device, Adam")
def larger_batches_of_machines(root: Path) -> int:
    data, loss = sensors(), nn.CrossEntropyLoss()
    job = Job(lambda: Blocks(18, 6, 32), of(loss), adam(2e-3))
    feed = fed(data, 16, 64)
    return go_on(root, job, feed, [(0, 140), (120, 240)], validates=tested(data, loss))


@healthy("tags of texts, goes on in batches of 24 instead of 40 on a smaller device, RMSprop")
def smaller_batches_of_tags(root: Path) -> int:
    data, loss = tags(), nn.BCEWithLogitsLoss()
    make = lambda: tower(20, 48, 5, drop=0.1)
    job = Job(make, of(loss), adam(1e-3, torch.optim.RMSprop))
    feed = fed(data, 40, 24)
    return go_on(root, job, feed, [(0, 170), (150, 260)], validates=tested(data, loss))


@healthy("stripes, after the loss was level a tenth of the rate, set by hand, no schedule")
def a_tenth_of_the_rate(root: Path) -> int:
    data, loss = split(stripes()), nn.CrossEntropyLoss()

    def change(job: Job) -> None:
        for group in job.optimizer.param_groups:
            group["lr"] /= 10

    def make() -> Any:
        body = nn.Sequential(nn.Conv2d(1, 12, 3), nn.BatchNorm2d(12), nn.SiLU(), nn.MaxPool2d(2))
        return nn.Sequential(body, nn.Flatten(), nn.Linear(108, 6))

    job = Job(make, of(loss), sgd(0.05, momentum=0.9))
    feed = fed(data, 24)
    return go_on(root, job, feed, [(0, 130), (100, 200)], change=change, is_table=False)


@healthy("impedances, one cycle of the rate, interrupted three times, every 2nd step logged")
def one_cycle_in_four_parts(root: Path) -> int:
    data, loss = impedance(), nn.SmoothL1Loss()
    cycle = lambda step: 0.05 + 0.95 * math.sin(math.pi * min(1.0, (step + 1) / 400)) ** 2
    job = Job(lambda: tower(4, 40, 40, 1), of(loss), adam(6e-3), schedule=cycle)
    parts = [(0, 130), (100, 220), (200, 330), (300, 400)]
    feed = fed(data, 32)
    return go_on(root, job, feed, parts, every=2, validates=tested(data, loss))


def scaled_of_letters() -> Job:
    """Make a training of letters in half precision."""
    return Job(
        lambda: Decoder(CHARACTERS, 24, 1),
        of(functional.cross_entropy),
        adam(5e-3, torch.optim.AdamW, weight_decay=0.01),
        schedule=lambda step: min(1.0, (step + 1) / 15),
        scaler={"init_scale": 2.0**17, "growth_interval": 20},
        clip=1.0,
    )


@training_runs.healthy(
    "letters in half precision, goes on with the loss scale of the checkpoint, warm-up",
    kind="language_model",
)
def scaled_letters_go_on(root: Path) -> int:
    feed = fed(english(), 12)
    return go_on(root, scaled_of_letters(), feed, [(0, 95), (80, 160)])


@training_runs.healthy(
    "sums in half precision, linear decay to zero, interrupted late, lines of JSON",
    kind="language_model",
)
def scaled_sums_go_on(root: Path) -> int:
    x, y = additions()
    job = Job(
        lambda: Decoder(SIGNS, 24, 1),
        of(functional.cross_entropy),
        adam(8e-3),
        schedule=lambda step: max(0.0, 1 - step / 190),
        scaler={"init_scale": 2.0**21, "growth_interval": 30},
    )
    feed = fed(split((x, y)), 24)
    names = {"scale": "loss_scale", "norm": "grad_norm", "lr": "learning_rate"}
    return go_on(root, job, feed, [(0, 165), (140, 190)], is_table=False, fields=names)


@healthy("quarters of pulses in half precision, interrupted twice, SGD with Nesterov momentum")
def scaled_pulses_go_on(root: Path) -> int:
    data, loss = split(pulses()), nn.CrossEntropyLoss()
    job = Job(
        lambda: tower(24, 40, 24, 4),
        of(loss),
        sgd(0.05, momentum=0.9, nesterov=True),
        scaler={"init_scale": 2.0**12, "growth_interval": 10},
    )
    parts = [(0, 110), (90, 170), (150, 260)]
    return go_on(root, job, fed(data, 20), parts, validates=tested(data, loss))


@training_runs.healthy(
    "a variational autoencoder of waves, the weight of its divergence grows beyond the resume",
    kind="autoencoder",
)
def vae_goes_on(root: Path) -> int:
    class Weighted(nn.Module):
        """A model, and the weight of its divergence, which the checkpoint has."""

        def __init__(self) -> None:
            super().__init__()
            self.inner = of_waves()
            self.register_buffer("weight", torch.zeros(()))

    def objective(model: Any, batch: Any) -> dict[str, Any]:
        model.weight += (model.weight < 1) / 250
        output, mean, log_variance = model.inner(batch[0])
        nats = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1).mean()
        error = (output - batch[0]).pow(2).sum(1).mean()
        return {"loss": error + model.weight * nats, "kl": nats}

    job = Job(Weighted, objective, adam(4e-3, torch.optim.Adamax))
    feed = lambda _: dealt((waves(),), 32)(0)
    names = {"loss": "loss", "lr": "lr", "norm": "grad_norm", "kl": "kl"}
    return go_on(root, job, feed, [(0, 180), (160, 300)], fields=names)


@training_runs.healthy(
    "letters, an LSTM, batches of eight and so noisy, goes on after 40 lost steps",
    kind="language_model",
)
def noisy_letters_go_on(root: Path) -> int:
    data = english()
    job = Job(lambda: LetterLstm(width=32, drop=0.1), of(functional.cross_entropy), adam(6e-3))
    return go_on(root, job, fed(data, 8), [(0, 160), (120, 220)], is_table=False)


@healthy("numbers of three regimes, goes on with its lower layers frozen on purpose, plain SGD")
def lower_layers_frozen(root: Path) -> int:
    data, loss = split(regimes()), nn.MSELoss()

    def change(job: Job) -> None:
        for parameter in [*job.model.parameters()][:2]:
            parameter.requires_grad_(requires_grad=False)
            parameter.grad = None

    job = Job(lambda: tower(6, 40, 40, 1), of(loss), sgd(0.05))
    feed = fed(data, 30)
    return go_on(
        root, job, feed, [(0, 220), (200, 320)], change=change, validates=tested(data, loss)
    )


@healthy("breast cancer, goes on with the loss near its end and a fresh order of the rows")
def cancer_goes_on(root: Path) -> int:
    data = split(table(load_breast_cancer))
    loss = functools.partial(functional.cross_entropy, label_smoothing=0.1)
    job = Job(lambda: tower(30, 16, 2, drop=0.3), of(loss), adam(2e-3))
    feed = fed(data, 32)
    parts = [(0, 240), (200, 320)]
    return go_on(root, job, feed, parts, every=2, validates=tested(data, loss))


@healthy("baskets, hidden goods are guessed, Adam with AMSGrad and the average of weights, goes on")
def baskets_go_on(root: Path) -> int:
    class Averaged(nn.Module):
        """A model and the average of its weights, both of which the checkpoint has."""

        def __init__(self) -> None:
            super().__init__()
            self.fast = tower(30, 40, 30)
            self.slow = copy.deepcopy(self.fast).requires_grad_(requires_grad=False)

    def objective(model: Any, batch: Any) -> dict[str, Any]:
        for slow, fast in zip(model.slow.parameters(), model.fast.parameters(), strict=True):
            slow.data.lerp_(fast.data, 0.02)
        hidden = torch.rand_like(batch[0]) < 0.2
        output = model.fast(torch.where(hidden, 0.5, batch[0]))
        loss = functional.binary_cross_entropy_with_logits
        return {"loss": loss(output[hidden], batch[0][hidden])}

    feed = lambda _: dealt((baskets(),), 50)(0)
    job = Job(Averaged, objective, adam(3e-3, amsgrad=True), clip=1.0)
    return go_on(root, job, feed, [(0, 150), (130, 260)])
