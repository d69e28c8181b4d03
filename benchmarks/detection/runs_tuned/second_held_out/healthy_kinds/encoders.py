"""Healthy encoders that learn from views, pairs and neighbours, and whose embeddings differ."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam

from runs_tuned.first_held_out.beyond_supervised.contrastive import (
    VisionEmbedder,
    brightened,
    matching_loss,
    speakers,
)
from runs_tuned.first_held_out.beyond_supervised.generative import melodies, spots, waves
from runs_tuned.first_held_out.language.texts import WORDS, grammar
from runs_tuned.second_held_out.healthy_kinds.shared.experts import Routed, balance, units
from runs_tuned.second_held_out.healthy_kinds.shared.problems import baskets, stripes
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, in_full, learn

healthy = functools.partial(training_runs.healthy, kind="contrastive")


def noisy(x: Any, strength: float = 0.3) -> Any:
    """Return rows with noise."""
    return x + strength * torch.randn_like(x)


def crossed(first: Any, second: Any, temperature: float) -> Any:
    """Return the cross entropy of finding each row's other view among all other rows."""
    unit = functional.normalize(torch.cat([first, second]))
    scores = (unit @ unit.T / temperature).fill_diagonal_(-1e4)
    return functional.cross_entropy(scores, torch.arange(len(unit)).roll(len(first)))


@healthy("SimCLR of stripes on two workers, negatives of each worker's own, temperature 0.2")
def simclr_on_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        first, second = model(torch.cat([brightened(batch[0]), brightened(batch[0])])).chunk(2)
        watching.save_tensor("embeddings", first, "embeddings")
        return crossed(first, second, 0.2)

    return learn(
        root,
        VisionEmbedder,
        dealt(stripes(), 40, 2),
        objective,
        optimizer=adam(2e-3),
        schedule=lambda step: min(1.0, (step + 1) / 10, (130 - step) / 60),
        size=2,
        steps=110,
    )


class TwoTowers(nn.Module):
    """A tower of images, one of words that describe them, and a learnt temperature."""

    def __init__(self) -> None:
        super().__init__()
        self.images = VisionEmbedder(16)
        self.words = nn.Sequential(nn.Embedding(20, 24), nn.Flatten(), units(48, 32, 16))
        self.logit_scale = nn.Parameter(torch.tensor(2.0))


@healthy("CLIP of spots and two words that tell their places, a learnt temperature, a scaler")
def scaled_clip_of_spots(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        x, words = batch
        pictures, texts = model.images(x).float(), model.words(words).float()
        watching.save_tensor("z1", pictures, "embeddings")
        watching.save_tensor("z2", texts, "embeddings")
        return in_full(matching_loss)(pictures, texts, (-model.logit_scale).exp())

    images = spots()
    rows, columns = images[:, 0].clamp(min=0).sum(2), images[:, 0].clamp(min=0).sum(1)
    words = torch.stack([rows.argmax(1), 10 + columns.argmax(1)], 1)
    return learn(
        root,
        TwoTowers,
        dealt((images, words), 40),
        objective,
        optimizer=adam(4e-3, torch.optim.AdamW, weight_decay=0.1),
        half=torch.float16,
        scaler={"init_scale": 2.0**15, "growth_interval": 15},
        steps=110,
        save_every=1,
    )


class Foreseeing(nn.Module):
    """Summaries of series, and what they say of the embeddings that follow."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = units(6, 24, 12)
        self.summary = nn.GRU(12, 20, batch_first=True)
        self.foresee = nn.Linear(20, 12)


@healthy("contrastive prediction of waves: the next piece among those of all other waves")
def predictive_coding_of_waves(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        pieces = model.embed(batch[0][:, :30].unflatten(1, (5, 6)))
        states, _ = model.summary(pieces[:, :4])
        watching.save_tensor("embeddings", pieces[:, 4], "embeddings")
        scores = model.foresee(states[:, -1]) @ pieces[:, 4].T
        return functional.cross_entropy(scores, torch.arange(len(scores)))

    optimizer = adam(3e-3, torch.optim.RMSprop)
    feed = dealt((waves(),), 64)
    return learn(root, Foreseeing, feed, objective, optimizer=optimizer, steps=180, clip=1.0)


@healthy("triplets of speakers, all rows of the batch as negatives, a margin, layer norms")
def triplets_of_speakers(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        embedded = functional.normalize(model(batch[0]))
        watching.save_tensor("embeddings", embedded, "embeddings")
        distances = torch.cdist(embedded, embedded)
        same = batch[1][:, None] == batch[1]
        positive = same & ~torch.eye(len(same), dtype=torch.bool)
        excess = (0.3 + distances[:, :, None] - distances[:, None, :]).relu()
        valid = positive[:, :, None] & ~same[:, None, :]
        return (excess * valid).sum() / ((excess > 0) & valid).sum().clamp(min=1)

    make = lambda: nn.Sequential(nn.Linear(24, 48), nn.LayerNorm(48), nn.SiLU(), nn.Linear(48, 16))
    return learn(root, make, dealt(speakers(), 64), objective, optimizer=adam(1.5e-3), steps=160)


class Narrow(nn.Module):
    """Embeddings by experts."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Sequential(nn.Linear(30, 32), nn.BatchNorm1d(32), nn.ReLU())
        self.mixture = Routed(32, 4, 2, hidden=24)
        self.projector = nn.Linear(32, 16)

    def forward(self, x: Any) -> Any:
        x = self.begin(x)
        return self.projector(x + self.mixture(x))


@healthy("baskets with goods left out, matched by four experts, two a basket, balanced")
def experts_match_baskets(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        drop = functools.partial(functional.dropout, batch[0], 0.3)
        first, second = model(torch.cat([drop(), drop()])).chunk(2)
        watching.save_tensor("embeddings", first, "embeddings")
        return crossed(first, second, 0.3) + 0.02 * balance(model)

    feed = dealt((baskets(),), 48)
    return learn(root, Narrow, feed, objective, optimizer=adam(4e-3, torch.optim.NAdam), steps=160)


class Sentences(nn.Module):
    """Mean states of a recurrent reader with dropout."""

    def __init__(self, words: int, width: int = 24) -> None:
        super().__init__()
        self.words, self.drop = nn.Embedding(words, width), nn.Dropout(0.15)
        self.reader = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.projector = nn.Linear(2 * width, 20)

    def forward(self, x: Any) -> Any:
        states, _ = self.reader(self.drop(self.words(x)))
        return self.projector(self.drop(states.mean(1)))


@healthy("SimCSE of sentences on two workers: two masks of dropout are the views")
def simcse_on_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        first, second = model(batch[0]), model(batch[0])
        watching.save_tensor("embeddings", first, "embeddings")
        return matching_loss(first, second, 0.1)

    return learn(
        root,
        lambda: Sentences(WORDS),
        dealt((grammar().x,), 32, 2),
        objective,
        optimizer=adam(2e-3),
        size=2,
        steps=70,
        clip=1.0,
    )


class Pairwise(Sentences):
    """Sentences, and the scale and the bias of the scores of pairs."""

    def __init__(self) -> None:
        super().__init__(12)
        self.log_scale = nn.Parameter(torch.tensor(2.0))
        self.bias = nn.Parameter(torch.tensor(-4.0))


@healthy("SigLIP of the first and the second half of melodies: a sigmoid for each pair, Adam")
def halves_of_melodies(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        first, second = (functional.normalize(model(half)) for half in batch[0].split(7, 1))
        watching.save_tensor("representations", first, "embeddings")
        scores = first @ second.T * model.log_scale.exp() + model.bias
        signs = 2 * torch.eye(len(scores)) - 1
        return functional.softplus(-signs * scores).sum(1).mean()

    return learn(
        root,
        Pairwise,
        dealt((melodies(),), 40),
        objective,
        optimizer=adam(5e-3),
        steps=160,
        save_every=4,
        clip=2.0,
    )
