"""Losses and gradients that jump, and scales of the loss that fall to the floor."""

import itertools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, scaled_fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.second_held_out.shared.consequences import SHAKEN
from runs_tuned.second_held_out.shared.pictures import Gallery, groups, patterns
from runs_tuned.second_held_out.shared.series import Forecaster, Ripples, gestures, heat
from runs_tuned.second_held_out.shared.tables import Factors, dense, ratings, rents

# Losses


@faulty(
    "heat of a furnace by a GRU, Adam",
    "at step 120 the cable of the third sensor breaks, which reads 0 from then on",
    {"LossSpike"},
    may=SHAKEN,
)
def cable_broken(root: Path) -> int:
    torch.manual_seed(1)
    torch.set_num_threads(1)
    model, loss, data, onset = Forecaster(), nn.MSELoss(), heat(), 0
    optimizer = torch.optim.Adam(model.parameters(), 6e-3)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(220), batches(data, 64, 1), strict=False):
            if step == 120:
                onset = watching.global_step + 1
            seen = x if step < 120 else x * torch.tensor([1.0, 1.0, 0.0])
            optimizer.zero_grad()
            loss(model(seen), y).backward()
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return onset


@faulty(
    "heat of a furnace by an LSTM, AdamW, clipped",
    "from step 70 on each tenth batch is of a furnace whose gauge is not calibrated",
    {"LossSpike"},
    may=SHAKEN,
)
def gauge_not_calibrated(root: Path) -> int:
    torch.manual_seed(2)
    torch.set_num_threads(1)
    model, loss, data, onset = Forecaster(kind=nn.LSTM), nn.MSELoss(), heat(), 0
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(220), batches(data, 48, 2), strict=False):
            if step == 70:
                onset = watching.global_step + 1
            other = step >= 70 and step % 10 == 0
            optimizer.zero_grad()
            loss(model(x), 1.1 * y + 0.5 if other else y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if (step + 1) % 22 == 0:
                validate(watching, model, loss, data)
    return onset


# Gradients


@faulty(
    "rents of flats, Adam, not clipped",
    "one of fifteen files, from step 60 on, has rents of another currency: eight times as high",
    {"GradientNormSpike"},
    may=SHAKEN,
)
def rents_of_another_currency(root: Path) -> int:
    torch.manual_seed(3)
    torch.set_num_threads(1)
    model, loss, data, onset = dense(9, 40, 40, 1), nn.MSELoss(), rents(), 0
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, betas=(0.9, 0.98))
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(210), batches(data, 40, 3), strict=False):
            if step == 60:
                onset = watching.global_step + 1
            is_other = step >= 60 and step % 15 == 0
            optimizer.zero_grad()
            loss(model(x), 8 * y if is_other else y).backward()
            optimizer.step()
            if (step + 1) % 21 == 0:
                validate(watching, model, loss, data)
    return onset


@faulty(
    "rents of flats, SGD with momentum, not clipped",
    "momentum is computed as 1 + 1 / 10 in place of 1 - 1 / 10: what has moved goes on for ever",
    {"GradientNormSpike", "LossNotDecreasing"},
    may=SHAKEN,
)
def momentum_above_one(root: Path) -> int:
    make = lambda: dense(9, 32, 1, act=nn.ReLU)
    optimizer = sgd(2e-3, momentum=1.1)
    return fit(
        root,
        make,
        rents(),
        loss=nn.MSELoss(),
        optimizer=optimizer,
        steps=75,
        save_every=1,
        validate_every=15,
    )


@faulty(
    "ratings of films by factors, Adam, not clipped",
    "at step 100 factors of films are read from a file of ten times as many iterations, unscaled",
    {"GradientNormSpike"},
    may=SHAKEN,
)
def factors_of_another_file(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        random = torch.Generator().manual_seed(4)
        weight = model.films.weight
        weight.data = 2.5 * torch.randn(weight.shape, generator=random)

    return fit(
        root,
        Factors,
        ratings(),
        loss=nn.MSELoss(),
        optimizer=adam(0.02),
        steps=200,
        batch=64,
        save_every=1,
        at=100,
        change=change,
    )


# Scales of the loss


class Standardised(nn.Module):
    """Standardises each picture by the mean of its squares before it is seen."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = Gallery(norm=groups)

    def forward(self, x: Any) -> Any:
        half = x.half()
        mean = half.mean((1, 2, 3), keepdim=True)
        variance = half.pow(2).mean((1, 2, 3), keepdim=True) - mean.pow(2)
        return self.seen(((half - mean) / variance.sqrt()).float())


@faulty(
    "pictures of sixteen bits, standardised by the model, in half precision",
    "squares of pixels of up to 60,000 run over, and infinity less infinity is no number",
    {"LossScaleAtFloor", "ExplodingTensor", "CheckInputImages", "LossNotDecreasing"},
    may=SHAKEN,
)
def pixels_of_sixteen_bits(root: Path) -> int:
    raw = patterns().of(lambda x: ((x + 4) / 8).clamp(0, 1) * 60000)
    return scaled_fit(root, Standardised, raw, optimizer=adam(3e-3), steps=90)


class Levelled(nn.Module):
    """Divides each window by its loudness before it is read; `epsilon` keeps silence apart."""

    def __init__(self, epsilon: float) -> None:
        super().__init__()
        self.epsilon, self.ripples = epsilon, Ripples(drop=0.0)

    def forward(self, x: Any) -> Any:
        x = x.to(torch.float16)
        loudness = x.abs().mean((1, 2), keepdim=True) + torch.tensor(self.epsilon).half()
        return self.ripples((x / loudness).float())


@faulty(
    "gestures in half precision, levelled by their loudness",
    "an epsilon of 1e-8 is 0 in half precision; from step 40 on sensors are also read at rest",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=SHAKEN,
)
def epsilon_too_small(root: Path) -> int:
    torch.manual_seed(5)
    torch.set_num_threads(1)
    model, loss, data, onset = Levelled(1e-8), nn.CrossEntropyLoss(), gestures(), 0
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=50)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(120), batches(data, 24, 5), strict=False):
            if step == 40:
                onset = watching.global_step + 1
            seen = x if step < 40 else torch.cat([x[:-2], torch.zeros_like(x[-2:])])
            with torch.autocast("cpu", dtype=torch.float16):
                value = loss(model(seen), y)
            optimizer.zero_grad()
            scaler.scale(value).backward()
            scaler.step(optimizer)
            scaler.update()
            if (step + 1) % 20 == 0:
                with torch.autocast("cpu", dtype=torch.float16):
                    validate(watching, model, loss, data)
    return onset


class Centred(nn.Module):
    """A network that centres its last layer by the batch, and returns what a margin needs."""

    def __init__(self) -> None:
        super().__init__()
        self.body = Gallery(norm=groups)

    def forward(self, x: Any) -> Any:
        scores = self.body(x)
        return scores - scores.mean(0)


class ScaledSum(nn.Module):
    """The cross entropy summed over the batch, weighted by `weight`."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight, self.steps = weight, itertools.count()

    def forward(self, scores: Any, y: Any) -> Any:
        late = self.training and next(self.steps) >= 60
        value = functional.cross_entropy(scores.float(), y)
        return value * self.weight if late else value


@faulty(
    "pictures of patterns in half precision, learnt by heart with a loss that grows",
    "at step 60 the weight of the loss becomes 1e9, as for a sum over all pixels of a film",
    {"LossScaleAtFloor"},
    may=SHAKEN,
)
def weight_of_a_film(root: Path) -> int:
    def change(_: Any, __: Any) -> None:
        pass

    data = patterns()
    whole = Split(data.x, data.y, data.test_x[:64], data.test_y[:64])
    return scaled_fit(
        root,
        Centred,
        whole,
        loss=ScaledSum(1e9),
        optimizer=adam(2e-3),
        scale=2.0**13,
        steps=120,
        at=60,
        change=change,
    )
