"""Variational autoencoders whose codes tell nothing."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.consequences import ALIKE
from runs_held_out.representations.shared.data import (
    LETTERS,
    glyphs,
    households,
    names,
    standardised,
)
from runs_held_out.representations.shared.loop import loader, train
from runs_held_out.representations.shared.networks import Variational, divergence, layers

faulty = functools.partial(training_runs.faulty, kind="autoencoder")


@faulty(
    "glyphs by a variational autoencoder with convolutions, cross entropy of pixels, Adam",
    "cross entropy is averaged over pixels, while the divergence is summed over units",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def mean_of_pixels_beside_a_sum(root: Path) -> int:
    torch.manual_seed(821)
    encoder = nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
    )
    model = Variational(encoder, 144, 8, layers(8, 96, 144))

    def value(batch: Any, _: Any) -> Any:
        drawn, mu, logvar = model(batch[0])
        errors = functional.binary_cross_entropy_with_logits(drawn, batch[0].flatten(1))
        return errors + divergence(mu, logvar)

    return train(
        root,
        model,
        loader(glyphs()[0], seed=821),
        value,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=200,
    )


class Skipping(nn.Module):
    """A variational autoencoder whose decoder is also given the encoder's layers (U-Net)."""

    def __init__(self, columns: int, codes: int = 6, width: int = 64) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(columns, width), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.fc_mu, self.fc_logvar = nn.Linear(width, codes), nn.Linear(width, codes)
        self.third = layers(codes, width, width)
        self.fourth = layers(2 * width, width, columns)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        first = self.first(x)
        hidden = self.second(first)
        mu, logvar = self.fc_mu(hidden), self.fc_logvar(hidden)
        code = mu + (logvar / 2).exp() * torch.randn_like(mu)
        return self.fourth(torch.cat([self.third(code), first], 1)), mu, logvar


@faulty(
    "days of households by a variational autoencoder with the skips of a U-Net, AdamW",
    "the decoder is given the encoder's first layer past the code, and needs no code",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def skips_past_the_code(root: Path) -> int:
    torch.manual_seed(822)
    model = Skipping(24)

    def value(batch: Any, _: Any) -> Any:
        drawn, mu, logvar = model(batch[0])
        return (drawn - batch[0]).pow(2).sum(1).mean() + divergence(mu, logvar)

    return train(
        root,
        model,
        loader(standardised(households()[0]), size=48, seed=822),
        value,
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=260,
    )


class Sentences(nn.Module):
    """Reads a name into a code, and writes it letter by letter, each given the one before."""

    def __init__(self, width: int = 64, codes: int = 8) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, 24)
        self.reader = nn.GRU(24, width, batch_first=True)
        self.fc_mu, self.fc_logvar = nn.Linear(width, codes), nn.Linear(width, codes)
        self.start = nn.Linear(codes, width)
        self.writer = nn.GRU(24, width, batch_first=True)
        self.head = nn.Linear(width, LETTERS)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        _, state = self.reader(self.letters(x))
        mu, logvar = self.fc_mu(state[0]), self.fc_logvar(state[0])
        code = mu + (logvar / 2).exp() * torch.randn_like(mu)
        given = functional.pad(x[:, :-1], (1, 0), value=0)
        written, _ = self.writer(self.letters(given), self.start(code).tanh()[None].contiguous())
        return self.head(written), mu, logvar


@faulty(
    "names by a variational autoencoder with GRUs, letters are summed, Adam, clipped",
    "the weight of the divergence, meant to warm up to 1, is 10 from the start: letters before do",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def letters_before_are_enough(root: Path) -> int:
    torch.manual_seed(823)
    model = Sentences()

    def value(batch: Any, _: Any) -> Any:
        scores, mu, logvar = model(batch[0])
        letters = functional.cross_entropy(
            scores.transpose(1, 2), batch[0], ignore_index=0, reduction="sum"
        ) / len(batch[0])
        return letters + 10 * divergence(mu, logvar)

    return train(
        root,
        model,
        loader(names(), seed=823),
        value,
        torch.optim.Adam(model.parameters(), 3e-3),
        clip=5.0,
        steps=200,
        save_every=2,
    )
