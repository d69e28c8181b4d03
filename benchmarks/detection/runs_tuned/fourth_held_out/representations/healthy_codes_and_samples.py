"""Healthy trainings of codes, of pairs that draw and judge, and of diffusion and flows."""

import copy
import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fourth_held_out.representations.shared.codes import Codes, learn_to_code
from runs_tuned.fourth_held_out.representations.shared.duels import duel
from runs_tuned.fourth_held_out.representations.shared.loop import draws, learn, rises_and_falls
from runs_tuned.fourth_held_out.representations.shared.shapes import (
    BINS,
    bars,
    bent,
    layers,
    roll,
    spectra,
)

of_codes = functools.partial(training_runs.healthy, kind="autoencoder")
of_samples = functools.partial(training_runs.healthy, kind="adversarial")
of_diffusion = functools.partial(training_runs.healthy, kind="diffusion")

# Codes


@of_codes("a variational autoencoder of spectra, Adam, the divergence in full, 150 steps")
def codes_of_spectra(root: Path) -> int:
    torch.manual_seed(760)
    x = spectra()[0]
    model = Codes(BINS, 6)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return learn_to_code(root, model, x[100:], optimizer, seed=760, held_out=(x[:100],))


@of_codes("a variational autoencoder of bars, the divergence warms up for 60 steps, AdamW, clipped")
def codes_of_bars(root: Path) -> int:
    torch.manual_seed(761)
    model = Codes(144, 8, 96, nn.GELU)
    return learn_to_code(
        root,
        model,
        bars()[0].flatten(1),
        torch.optim.AdamW(model.parameters(), 2e-3),
        seed=761,
        term=lambda divergences, step: min(1.0, step / 60) * divergences.sum(),
        clip=50.0,
        steps=180,
    )


@of_codes("a variational autoencoder of a rolled sheet, half a nat of each unit is free, NAdam")
def free_half_nats(root: Path) -> int:
    torch.manual_seed(762)
    model = Codes(3, 4, 48, nn.SiLU)
    return learn_to_code(
        root,
        model,
        roll(),
        torch.optim.NAdam(model.parameters(), 3e-3),
        seed=762,
        term=lambda divergences, _: divergences.clamp(min=0.5).sum(),
        size=64,
        steps=200,
        save_every=3,
    )


@of_codes("spectra by a book of 24 vectors, twice each, moved as averages of what chooses them")
def book_moved_by_averages(root: Path) -> int:
    torch.manual_seed(763)
    model = nn.ModuleDict(
        {"encoder": layers(BINS, 64, 16, act=nn.ELU), "decoder": layers(16, 64, BINS, act=nn.ELU)}
    )
    x = spectra()[0]
    book = model["encoder"](x[:12]).detach().view(24, 8).clone()
    counts, sums = torch.ones(24), book.clone()

    def objective(batch: Any, hook: Any) -> Any:
        rows = model["encoder"](batch[0])
        hook.save_tensor("embeddings", rows, "embeddings")
        parts = rows.view(-1, 8)
        which = functional.one_hot(torch.cdist(parts, book).argmin(1), 24).float()
        chosen = (which @ book).view_as(rows)
        if model.training:
            with torch.no_grad():
                counts.lerp_(which.sum(0), 0.05)
                sums.lerp_(which.T @ parts, 0.05)
                book.copy_(sums / (counts[:, None] + 1e-3))
        found = model["decoder"](rows + (chosen - rows).detach())
        return functional.mse_loss(found, batch[0]) + 0.1 * (rows - chosen).pow(2).mean()

    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return learn(root, model, draws(x, size=48, seed=763), objective, optimizer, steps=180)


# Pairs


@of_samples("a pair draws a rolled sheet, a penalty of slopes at real points, Adam")
def pair_draws_a_roll(root: Path) -> int:
    torch.manual_seed(764)
    generator = layers(8, 64, 64, 3)
    critic = layers(3, 64, 64, 1, act=lambda: nn.LeakyReLU(0.2))
    return duel(root, generator, critic, roll(), seed=764, penalty=0.1, steps=260)


@of_samples(
    "a pair draws spectra by a distance (WGAN), weights bounded, RMSprop, three turns to one"
)
def pair_of_bounded_weights(root: Path) -> int:
    torch.manual_seed(765)
    generator, critic = layers(8, 64, 64, BINS, act=nn.ELU), layers(BINS, 64, 64, 1)
    losses = (lambda real, fake: fake.mean() - real.mean(), lambda fake: -fake.mean())
    return duel(
        root,
        generator,
        critic,
        spectra()[0],
        seed=765,
        losses=losses,
        penalty=0.0,
        bound=0.1,
        turns=3,
        optimizer=torch.optim.RMSprop,
        steps=160,
        save_every=2,
    )


@of_samples("a pair draws bars by hinge losses, the critic learns four times as fast, AdamW")
def pair_of_two_rates(root: Path) -> int:
    torch.manual_seed(766)
    generator = layers(8, 96, 96, 144, act=nn.SiLU)
    critic = layers(144, 96, 1, act=lambda: nn.LeakyReLU(0.1))
    losses = (
        lambda real, fake: (1 - real).relu().mean() + (1 + fake).relu().mean(),
        lambda fake: -fake.mean(),
    )
    return duel(
        root,
        generator,
        critic,
        bars()[0].flatten(1),
        seed=766,
        losses=losses,
        rates=(5e-4, 2e-3),
        optimizer=lambda part, rate: torch.optim.AdamW(part, rate, betas=(0.0, 0.95)),
        penalty=0.05,
    )


@of_samples("points of a bent sheet are drawn by moments (MMD) alone, RMSprop, large batches")
def moments_of_a_bent_sheet(root: Path) -> int:
    torch.manual_seed(767)
    model = layers(4, 64, 64, 3, act=nn.SiLU)

    def alike(first: Any, second: Any) -> Any:
        far = (first[:, None] - second).pow(2).sum(-1)
        return sum((1 / (1 + far / scale)).mean() for scale in (0.05, 0.3, 1.0))

    def objective(batch: Any, hook: Any) -> Any:
        samples = model(torch.randn(128, 4))
        hook.save_tensor("samples", samples, "samples")
        real = batch[0]
        return alike(samples, samples) - 2 * alike(samples, real) + alike(real, real)

    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)
    read = draws(bent(), size=128, seed=767)
    return learn(root, model, read, objective, optimizer, steps=220, save_every=3)


# Diffusion and flows


@of_diffusion("a bent sheet from noise along straight ways (flow matching), samples of eight steps")
def straight_ways_to_a_sheet(root: Path) -> int:
    torch.manual_seed(768)
    model = layers(4, 96, 96, 3, act=nn.SiLU)
    slow = copy.deepcopy(model).requires_grad_(requires_grad=False)

    def objective(batch: Any, hook: Any) -> Any:
        time, noise = torch.rand(len(batch[0]), 1), torch.randn_like(batch[0])
        at = time * batch[0] + (1 - time) * noise
        with torch.no_grad():
            samples = torch.randn(64, 3)
            for number in range(8):
                samples = (
                    samples + slow(torch.cat([samples, torch.full((64, 1), number / 8)], 1)) / 8
                )
            hook.save_tensor("samples", samples, "samples")
        return functional.mse_loss(model(torch.cat([at, time], 1)), batch[0] - noise)

    def follow(_: int) -> None:
        with torch.no_grad():
            for kept, fast in zip(slow.parameters(), model.parameters(), strict=True):
                kept.lerp_(fast, 0.05)

    return learn(
        root,
        model,
        draws(bent(), size=128, seed=768),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=220,
        save_every=3,
        rate=rises_and_falls(10, 220),
        after=follow,
        clip=1.0,
    )


@of_diffusion("spectra from noise, the noise is foreseen at one of 40 strengths, bfloat16, Adam")
def noise_of_spectra(root: Path) -> int:
    torch.manual_seed(769)
    model = layers(BINS + 2, 128, 128, BINS, act=nn.GELU)
    left = (torch.arange(1, 41) / 41 * math.pi / 2).cos().pow(2)
    x = spectra()[0]
    x = (x - x.mean(0)) / x.std(0)

    def objective(batch: Any, hook: Any) -> Any:
        kept = left[torch.randint(40, (len(batch[0]),))][:, None]
        noise = torch.randn_like(batch[0])
        spoiled = kept.sqrt() * batch[0] + (1 - kept).sqrt() * noise
        found = model(torch.cat([spoiled, kept, kept.sqrt()], 1))
        clean = (spoiled - (1 - kept).sqrt() * found) / kept.sqrt().clamp(min=0.1)
        hook.save_tensor("samples", clean.float(), "samples")
        return functional.mse_loss(found.float(), noise)

    return learn(
        root,
        model,
        draws(x, size=64, seed=769),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
        save_every=3,
        half=True,
    )
