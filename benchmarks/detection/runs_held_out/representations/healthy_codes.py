"""Healthy autoencoders: variational, told the class, denoising and masked."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.data import (
    glyphs,
    handwriting,
    households,
    standardised,
    table,
)
from runs_held_out.representations.shared.loop import cosine, loader, train
from runs_held_out.representations.shared.networks import Variational, divergence, layers

healthy = functools.partial(training_runs.healthy, kind="autoencoder")


def summed(model: Any, weight: Any = lambda: 1.0) -> Any:
    """Return what sums cross entropy over pixels and the divergence over units."""

    def value(batch: Any, _: Any) -> Any:
        x = batch[0]
        drawn, mu, logvar = model(x)
        errors = functional.binary_cross_entropy_with_logits(drawn, x.flatten(1), reduction="sum")
        return errors / len(x) + weight() * divergence(mu, logvar)

    return value


@healthy("digits by the variational autoencoder of PyTorch's examples, sums of both terms, Adam")
def digits_by_the_usual_codes(root: Path) -> int:
    torch.manual_seed(851)
    x, _ = handwriting()
    encoder = nn.Sequential(nn.Linear(64, 128), nn.ReLU())
    model = Variational(encoder, 128, 10, layers(10, 128, 64))
    return train(
        root,
        model,
        loader(x[:1500], size=64, seed=851),
        summed(model),
        torch.optim.Adam(model.parameters(), 1e-3),
        steps=240,
        save_every=4,
        validation=(x[1500:],),
        validate_every=60,
    )


@healthy("glyphs by convolutions and codes, the divergence warms up for 60 steps, AdamW, a cosine")
def glyphs_by_warmed_codes(root: Path) -> int:
    torch.manual_seed(852)
    encoder = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.BatchNorm2d(12),
        nn.LeakyReLU(0.2),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.BatchNorm2d(24),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
    )
    decoder = nn.Sequential(
        nn.Linear(8, 216),
        nn.LeakyReLU(0.2),
        nn.Unflatten(1, (24, 3, 3)),
        nn.ConvTranspose2d(24, 12, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.ConvTranspose2d(12, 1, 4, stride=2, padding=1),
        nn.Flatten(),
    )
    model, done = Variational(encoder, 216, 8, decoder), [0]
    return train(
        root,
        model,
        loader(glyphs()[0], seed=852),
        summed(model, lambda: min(1.0, done[0] / 60)),
        torch.optim.AdamW(model.parameters(), 3e-3),
        factor=cosine(5, 200, 0.05),
        steps=200,
        save_every=3,
        after=lambda step: done.__setitem__(0, step + 1),
    )


@healthy("days of households by codes with free bits, Gaussian errors, Adam, clipped")
def households_with_free_bits(root: Path) -> int:
    torch.manual_seed(853)
    x, _ = households()
    x = (x - x[:1000].mean(0)) / x[:1000].std(0)
    model = Variational(layers(24, 64, 64, act=nn.SiLU), 64, 6, layers(6, 64, 24, act=nn.SiLU))

    def value(batch: Any, _: Any) -> Any:
        drawn, mu, logvar = model(batch[0])
        nats = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).mean(0)
        errors = (drawn - batch[0]).pow(2).sum(1).mean() / (2 * 0.3**2)
        return errors + nats.clamp(min=0.1).sum()

    return train(
        root,
        model,
        loader(x[:1000], seed=853),
        value,
        torch.optim.Adam(model.parameters(), 2e-3),
        clip=20.0,
        steps=200,
        save_every=3,
        validation=(x[1000:],),
    )


@healthy("tumours with noise and gaps by a denoising autoencoder, Adam, a level rate")
def tumours_denoised(root: Path) -> int:
    torch.manual_seed(854)
    x = standardised(table("breast_cancer")[0])
    model, loss = layers(30, 64, 16, 64, 30, act=nn.GELU), nn.MSELoss()

    def value(batch: Any, _: Any) -> Any:
        noisy = batch[0] + 0.2 * torch.randn_like(batch[0])
        return loss(model(functional.dropout(noisy, 0.1)), batch[0])

    return train(
        root,
        model,
        loader(x, size=64, seed=854),
        value,
        torch.optim.Adam(model.parameters(), 2e-3),
        losses=(loss,),
        steps=160,
        save_every=3,
    )
