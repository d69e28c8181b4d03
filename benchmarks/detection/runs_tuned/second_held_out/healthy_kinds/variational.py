"""Healthy variational autoencoders; of some, a part of the latent units is never used."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam

from runs_tuned.first_held_out.beyond_supervised.generative import (
    OfMelodies,
    melodies,
    spots,
    waves,
)
from runs_tuned.second_held_out.healthy_kinds.shared.codes import Coder, apart, drawn, elbo, nats
from runs_tuned.second_held_out.healthy_kinds.shared.experts import (
    NoisyRouter,
    Routed,
    balance,
    units,
)
from runs_tuned.second_held_out.healthy_kinds.shared.problems import (
    baskets,
    pulses,
    stripes,
    topics,
)
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, learn

healthy = functools.partial(training_runs.healthy, kind="autoencoder")


def binary(logits: Any, x: Any) -> Any:
    """Return the cross entropy of ones and zeros."""
    return functional.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(1)


def poisson(logs: Any, counts: Any) -> Any:
    """Return the negative log-likelihood of counts."""
    return functional.poisson_nll_loss(logs.clamp(max=6), counts, reduction="none").sum(1)


@healthy("baskets of goods, twelve latent units for five habits, KL warm-up over 80 steps")
def vae_of_baskets(root: Path) -> int:
    make = lambda: Coder(units(30, 48, 32), 32, 12, units(12, 48, 30))
    objective = elbo(binary, lambda step: min(1.0, step / 80))
    return learn(root, make, dealt((baskets(),), 64), objective, optimizer=adam(5e-3), steps=240)


def of_stripes(latent: int) -> Any:
    """Make convolutions to latent units and back."""
    encoder = nn.Sequential(
        *(nn.Conv2d(1, 12, 3, 2, 1), nn.GELU(), nn.Conv2d(12, 16, 3, 2, 1), nn.GELU()),
        nn.Flatten(),
    )
    decoder = nn.Sequential(
        *(
            nn.Linear(latent, 64),
            nn.GELU(),
            nn.Unflatten(1, (16, 2, 2)),
            nn.Upsample(scale_factor=2),
        ),
        *(nn.Conv2d(16, 12, 3, 1, 1), nn.GELU(), nn.ConvTranspose2d(12, 1, 4, 2, 1)),
    )
    return Coder(encoder, 64, latent, decoder)


@healthy("images of stripes, half a nat free for each of ten units, half precision with a scaler")
def scaled_free_bits_of_stripes(root: Path) -> int:
    return learn(
        root,
        lambda: of_stripes(10),
        dealt(stripes(), 32),
        elbo(lambda output, x: 2 * apart(output.float(), x), free=0.5, name="z_mean"),
        optimizer=adam(4e-3, torch.optim.NAdam),
        half=torch.float16,
        scaler={"init_scale": 2.0**14, "growth_interval": 20},
        clip=50.0,
        steps=180,
        save_every=1,
    )


@healthy("pulses on two workers, the weight of the divergence in four cycles, samples of the prior")
def cyclic_vae_on_workers(root: Path) -> int:
    return learn(
        root,
        lambda: Coder(units(24, 40, 32), 32, 6, units(6, 48, 24)),
        dealt(pulses(), 32, 2),
        elbo(
            lambda output, x: 3 * apart(output, x),
            lambda step: min(1.0, (step % 60) / 30),
            samples=32,
        ),
        optimizer=adam(4e-3),
        size=2,
        steps=240,
        save_every=3,
    )


@healthy("spots, a weight of 14 from the first step on, ten units of which few are used, AdamW")
def high_beta_of_spots(root: Path) -> int:
    def make() -> Any:
        return Coder(
            nn.Sequential(nn.Flatten(), units(64, 64, 48), nn.SiLU()),
            48,
            10,
            nn.Sequential(units(10, 64, 64), nn.Unflatten(1, (1, 8, 8))),
        )

    objective = elbo(lambda output, x: 4 * apart(output, x), lambda _: 14.0)
    optimizer = adam(8e-3, torch.optim.AdamW, weight_decay=0.01)
    return learn(root, make, dealt((spots(),), 50), objective, optimizer=optimizer, steps=320)


@healthy("counts of words in documents, a linear decoder, means that batch norm keeps apart")
def topics_with_normalised_means(root: Path) -> int:
    make = lambda: Coder(units(40, 48, 32), 32, 6, nn.Linear(6, 40), normalises=True)
    feed = dealt((topics(),), 48)
    objective = elbo(poisson, change=lambda counts: counts.log1p())
    return learn(root, make, feed, objective, optimizer=adam(6e-3), steps=200, clip=20.0)


class Forgetful(OfMelodies):
    """A writer of melodies that is told every other note before, so that it needs the code."""

    def encode(self, x: Any) -> tuple[Any, Any]:
        _, state = self.reader(self.notes(x))
        return self.mean_head(state[0]), self.spread_head(state[0]).clamp(-8, 8)

    def write(self, code: Any, x: Any) -> Any:
        before = functional.pad(x[:, :-1], (1, 0), value=12)
        before = torch.where(torch.rand(before.shape) < 0.7, 12, before)
        written, _ = self.writer(self.notes(before), self.begin(code).tanh()[None])
        return self.decoder(written).transpose(1, 2)


@healthy("melodies, most of the notes before are hidden from the writer, warm-up to 0.5")
def vae_of_hidden_notes(root: Path) -> int:
    numbers = iter(range(1000))

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        mean, log_variance = model.encode(batch[0])
        watching.save_tensor("posterior_mean", mean, "latent_means")
        logits = model.write(drawn(mean, log_variance), batch[0])
        error = functional.cross_entropy(logits, batch[0], reduction="none").sum(1)
        weight = min(0.5, next(numbers) / 200)
        return (error + weight * nats(mean, log_variance).sum(1)).mean()

    return learn(
        root,
        Forgetful,
        dealt((melodies(),), 64),
        objective,
        optimizer=adam(8e-3),
        clip=5.0,
        steps=190,
    )


@healthy("waves, a decoder of four experts, two a code by noisy scores, samples of the prior")
def vae_of_experts(root: Path) -> int:
    inner = elbo(apart, lambda step: min(0.3, step / 300), samples=40)
    objective = lambda model, batch, watching: (
        inner(model, batch, watching) + 0.5 * balance(model.decoder)
    )

    def make() -> Any:
        decoder = nn.Sequential(
            nn.Linear(6, 40), nn.LayerNorm(40), Routed(40, 4, 2, outs=32, router=NoisyRouter)
        )
        return Coder(units(32, 48, 32), 32, 6, decoder)

    return learn(root, make, dealt((waves(),), 64), objective, optimizer=adam(5e-3), steps=240)
