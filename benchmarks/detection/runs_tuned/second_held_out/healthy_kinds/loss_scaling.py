"""Healthy trainings whose loss scale falls after an overflow now and then, and grows again."""

import functools
import itertools
from pathlib import Path
from typing import Any

import torch
import training_runs
from sklearn.datasets import load_wine
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, batches, scaled_fit, sgd, watched
from training_runs import healthy

from runs_tuned.first_held_out.beyond_supervised.contrastive import (
    SupervisedContrast,
    corrupted,
    matching_loss,
    table,
)
from runs_tuned.first_held_out.beyond_supervised.generative import (
    copies,
    of_spots,
    spots,
    squares,
)
from runs_tuned.first_held_out.language.networks import Decoder, DilatedConvolutions
from runs_tuned.first_held_out.language.texts import CHARACTERS, WORDS, english, grammar
from runs_tuned.first_held_out.scripts.tasks import (
    Blocks,
    Segmenter,
    beats,
    sensors,
    shapes,
    tags,
    tower,
)
from runs_tuned.second_held_out.healthy_kinds.mixtures_of_experts import split
from runs_tuned.second_held_out.healthy_kinds.shared.experts import JitteredRouter, Routed, balance
from runs_tuned.second_held_out.healthy_kinds.shared.problems import (
    SIGNS,
    additions,
    pulses,
    stripes,
)
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, in_full, learn

healthy_text = functools.partial(training_runs.healthy, kind="language_model")
FLOAT16 = torch.float16


@healthy_text("letters, four experts in half precision, the scale grows every 25 steps")
def scaled_experts_of_letters(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.cross_entropy(model(batch[0]).float(), batch[1]) + 0.02 * balance(model)

    make = lambda: Decoder(
        CHARACTERS, layers=1, units=lambda width: Routed(width, 4, 1, router=JitteredRouter)
    )
    data = english()
    return learn(
        root,
        make,
        dealt((data.x, data.y), 16),
        objective,
        optimizer=adam(5e-3, torch.optim.AdamW, weight_decay=0.02),
        half=FLOAT16,
        scaler={"init_scale": 2.0**16, "growth_interval": 25},
        steps=90,
        clip=1.0,
        save_every=1,
    )


@healthy("discs and bars, a class for each pixel, a scale that overflows every 12 steps or so")
def scaled_pixels(root: Path) -> int:
    return scaled_fit(
        root,
        Segmenter,
        shapes(),
        optimizer=sgd(0.1, momentum=0.9, nesterov=True),
        scale=2.0**20,
        growth_interval=12,
        steps=110,
        batch=12,
    )


@healthy("machines, two workers that skip the same updates, each with a scaler of its own")
def scaled_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.cross_entropy(model(batch[0]).float(), batch[1])

    data = sensors()
    return learn(
        root,
        lambda: Blocks(18, 6, 32, 0.1),
        dealt((data.x, data.y), 24, 2),
        objective,
        optimizer=adam(3e-3, torch.optim.NAdam),
        half=FLOAT16,
        scaler={"init_scale": 2.0**18, "growth_interval": 20},
        size=2,
        steps=100,
        save_every=1,
    )


class Convolutions(nn.Module):
    """Convolutions over time with group norms."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(2, 16, 3, 2, 1), nn.Conv1d(16, 24, 3, 2, 1)
        self.norms = nn.ModuleList([nn.GroupNorm(4, 16), nn.GroupNorm(4, 24)])
        self.head = nn.Linear(24, 4)

    def forward(self, x: Any) -> Any:
        x = functional.mish(self.norms[0](self.first(x.transpose(1, 2))))
        return self.head(functional.mish(self.norms[1](self.second(x))).mean(2))


@healthy("rhythms, a scale that begins at 2^26 and looks for its place for 12 steps")
def scale_of_rhythms_begins_high(root: Path) -> int:
    return scaled_fit(
        root,
        Convolutions,
        beats(),
        optimizer=adam(4e-3, torch.optim.RAdam),
        scale=2.0**26,
        growth_interval=60,
        steps=130,
        batch=24,
    )


@healthy("tags of texts, a scale that begins at 2^8 and only grows, every 15 steps")
def scale_of_tags_grows(root: Path) -> int:
    return scaled_fit(
        root,
        lambda: tower(20, 48, 24, 5, drop=0.1),
        tags(),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(4e-3),
        scale=2.0**8,
        growth_interval=15,
        steps=140,
        batch=40,
        save_every=2,
    )


@healthy_text("sentences, convolutions, a scale that is grown by a half and lowered to a quarter")
def scale_of_other_factors(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.cross_entropy(model(batch[0]).float(), batch[1])

    data = grammar()
    factors = {"growth_factor": 1.5, "backoff_factor": 0.25, "growth_interval": 8}
    schedule = lambda step: min(1.0, (step + 1) / 15, (110 - step) / 50)
    return learn(
        root,
        lambda: DilatedConvolutions(WORDS),
        dealt((data.x, data.y), 12),
        objective,
        optimizer=adam(5e-3),
        schedule=schedule,
        half=FLOAT16,
        scaler={"init_scale": 2.0**19, **factors},
        steps=100,
        save_every=1,
    )


@healthy("stripes, a constant scale of 1024, three batches accumulated")
def constant_scale_of_stripes(root: Path) -> int:
    torch.manual_seed(3)
    data, loss = split(stripes()), nn.CrossEntropyLoss(label_smoothing=0.05)
    model = nn.Sequential(
        *(nn.Conv2d(1, 12, 3), nn.GroupNorm(4, 12), nn.SiLU()),
        *(nn.Conv2d(12, 16, 3, 2), nn.SiLU(), nn.Flatten(), nn.Linear(64, 6)),
    )
    optimizer = torch.optim.SGD(model.parameters(), 0.08, momentum=0.9)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for number, (x, y) in enumerate(itertools.islice(batches(data, 16), 150)):
            with torch.autocast("cpu", FLOAT16):
                output = model(x)
            (1024 / 3 * loss(output.float(), y)).backward()
            watching.save_scalar("loss_scale", 1024.0, sm_metric=False)
            if number % 3 == 2:
                for parameter in model.parameters():
                    parameter.grad /= 1024
                optimizer.step()
                optimizer.zero_grad()
    return 0


class Embedder(nn.Module):
    """Two layers and a projector, with layer norms."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(ins, 48), nn.LayerNorm(48), nn.GELU())
        self.projector = nn.Sequential(nn.Linear(48, 32), nn.GELU(), nn.Linear(32, outs))

    def forward(self, x: Any) -> Any:
        return self.projector(self.body(x))


@healthy("rows of wines against those of other cultivars, half precision", kind="contrastive")
def scaled_contrast_of_wines(root: Path) -> int:
    contrast = in_full(SupervisedContrast())

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        x, classes = batch
        embedded = model(corrupted(x, 0.15)).float()
        watching.save_tensor("embeddings", embedded, "embeddings")
        return contrast(embedded, classes)

    return learn(
        root,
        lambda: Embedder(13, 12),
        dealt(table(load_wine), 40),
        objective,
        optimizer=adam(2e-3, torch.optim.AdamW, weight_decay=0.01),
        half=FLOAT16,
        scaler={"init_scale": 2.0**14, "growth_interval": 10},
        steps=130,
        save_every=1,
    )


@healthy("pulses and what comes after them, matched at a low temperature", kind="contrastive")
def scaled_halves_of_pulses(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        both = torch.cat([batch[0][:, :18], batch[0][:, 6:]])
        first, second = model(both).float().chunk(2)
        watching.save_tensor("embeddings", first, "embeddings")
        return in_full(matching_loss)(first, second, 0.1)

    return learn(
        root,
        lambda: Embedder(18, 16),
        dealt(pulses(), 48),
        objective,
        optimizer=sgd(0.05, momentum=0.8),
        schedule=lambda step: min(1.0, (step + 1) / 20),
        half=FLOAT16,
        scaler={"init_scale": 2.0**22, "growth_interval": 30},
        steps=140,
        save_every=1,
    )


@healthy("a variational autoencoder of spots in half precision, clipped", kind="autoencoder")
def scaled_vae_of_spots(root: Path) -> int:
    pairs = copies(spots(), 48)

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        output, mean, log_variance = model(batch[0])
        mean, log_variance = mean.float(), log_variance.float()
        watching.save_tensor("latent_mean", mean, "latent_means")
        nats = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
        return (squares(output.float(), batch[1]) + nats).mean()

    return learn(
        root,
        of_spots,
        lambda _: iter(pairs),
        objective,
        optimizer=adam(3e-3),
        half=FLOAT16,
        scaler={"init_scale": 2.0**12, "growth_interval": 10},
        clip=20.0,
        steps=200,
        save_every=1,
    )


@healthy_text("sums, three experts on two workers, half precision, the scale falls now and then")
def scaled_experts_on_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.cross_entropy(model(batch[0]).float(), batch[1]) + 0.02 * balance(model)

    make = lambda: Decoder(SIGNS, 24, 1, units=lambda width: Routed(width, 3, 2, hidden=24))
    return learn(
        root,
        make,
        dealt(additions(), 32, 2),
        objective,
        optimizer=adam(6e-3, torch.optim.Adam),
        half=FLOAT16,
        scaler={"init_scale": 2.0**17, "growth_interval": 15},
        size=2,
        steps=80,
        save_every=1,
    )
