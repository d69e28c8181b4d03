"""Healthy pairs of generator and critic, diffusions and flows."""

import functools
import itertools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.representations.shared.figures import (
    BEAT,
    LEAF,
    heartbeats,
    leaves,
    lorenz,
    pinwheel,
)
from runs_tuned.sixth_held_out.representations.shared.loop import (
    duel,
    halved,
    rows_of,
    teach,
    up_and_down,
)
from runs_tuned.sixth_held_out.representations.shared.networks import dense

of_pairs = functools.partial(training_runs.healthy, kind="adversarial")
of_flows = functools.partial(training_runs.healthy, kind="diffusion")

# Pairs


@of_pairs("a pair draws a pinwheel, cross entropy, rows blurred a little, Adam, two rates")
def pair_draws_a_pinwheel(root: Path) -> int:
    torch.manual_seed(670)
    generator, critic = dense(6, 64, 64, 2), dense(2, 64, 64, 1, act=nn.SiLU)
    return duel(
        root,
        generator,
        critic,
        rows_of(pinwheel(seed=1)[0], size=64, seed=670),
        judged=lambda real, fake: (
            functional.softplus(-real).mean() + functional.softplus(fake).mean()
        ),
        aimed=lambda scores: functional.softplus(-scores).mean(),
        optimizers=(
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.99)),
            torch.optim.Adam(critic.parameters(), 2e-3, betas=(0.5, 0.99)),
        ),
        size=64,
        steps=300,
    )


@of_pairs("a pair draws leaves by a distance, slopes of the critic near 1 (WGAN-GP), three turns")
def leaves_by_a_distance(root: Path) -> int:
    torch.manual_seed(671)
    generator, critic = dense(8, 64, LEAF, act=nn.SiLU), dense(LEAF, 64, 64, 1, act=nn.SiLU)

    def slopes(real: Any, fake: Any) -> Any:
        between = fake.lerp(real, torch.rand(len(real), 1)).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        return 5 * (slope.pow(2).sum(1).add(1e-8).sqrt() - 1).pow(2).mean()

    return duel(
        root,
        generator,
        critic,
        rows_of(leaves(seed=3)[0], size=48, seed=671),
        judged=lambda real, fake: fake.mean() - real.mean(),
        aimed=lambda scores: -scores.mean(),
        optimizers=(
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.0, 0.9)),
            torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.0, 0.9)),
        ),
        penalty=slopes,
        noise=8,
        turns=3,
        steps=180,
    )


@of_pairs("a pair draws hearts' curves, least squares, convolutions, batch norm, RMSprop")
def hearts_by_least_squares(root: Path) -> int:
    torch.manual_seed(672)
    generator = nn.Sequential(
        nn.Linear(10, 160),
        nn.BatchNorm1d(160),
        nn.ReLU(),
        nn.Unflatten(1, (16, 10)),
        nn.ConvTranspose1d(16, 12, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose1d(12, 1, 4, stride=2, padding=1),
        nn.Flatten(),
    )
    critic = nn.Sequential(
        nn.Unflatten(1, (1, BEAT)),
        nn.Conv1d(1, 12, 5, stride=2, padding=2),
        nn.LeakyReLU(0.2),
        nn.Conv1d(12, 16, 5, stride=2, padding=2),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(160, 1),
    )
    return duel(
        root,
        generator,
        critic,
        rows_of(heartbeats(seed=2)[0], size=48, seed=672),
        judged=lambda real, fake: (real - 1).pow(2).mean() + fake.pow(2).mean(),
        aimed=lambda scores: (scores - 1).pow(2).mean(),
        optimizers=(
            torch.optim.RMSprop(generator.parameters(), 5e-4),
            torch.optim.RMSprop(critic.parameters(), 3e-4),
        ),
        noise=10,
        steps=240,
        save_every=4,
    )


# Diffusions and flows


class Guess(nn.Module):
    """Foresees something of a noisy row, from the row and the time."""

    def __init__(self, size: int, width: int = 96, act: Any = nn.SiLU) -> None:
        super().__init__()
        self.layers = dense(size + 4, width, width, size, act=act)

    def forward(self, x: Any, at: Any) -> Any:
        angle = math.pi * at
        times = torch.cat([at, angle.sin(), angle.cos(), (2 * angle).sin()], 1)
        return self.layers(torch.cat([x, times], 1))


@of_flows("a pinwheel from noise: the noise is foreseen, cosine schedule, Adam, samples saved")
def pinwheel_from_noise(root: Path) -> int:
    torch.manual_seed(673)
    model, count = Guess(2), [0]

    def draw(number: int) -> Any:
        x = torch.randn(number, 2)
        times = torch.linspace(0.98, 0, 21)
        with torch.no_grad():
            for at, after in itertools.pairwise(times):
                noise = model(x, at.expand(number, 1))
                signal = (math.pi / 2 * at).cos()
                first = ((x - (math.pi / 2 * at).sin() * noise) / signal).clamp(-4, 4)
                x = (math.pi / 2 * after).cos() * first + (math.pi / 2 * after).sin() * noise
        return x

    def objective(batch: Any, hook: Any) -> Any:
        count[0] += 1
        at, noise = torch.rand(len(batch[0]), 1), torch.randn_like(batch[0])
        mixed = (math.pi / 2 * at).cos() * batch[0] + (math.pi / 2 * at).sin() * noise
        if count[0] % 10 == 1:
            hook.save_tensor("samples", draw(64), "samples")
        return functional.mse_loss(model(mixed, at), noise)

    return teach(
        root,
        model,
        rows_of(pinwheel(seed=2)[0], size=128, seed=673),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=250,
    )


@of_flows("points of Lorenz's attractor by a flow along straight lines, AdamW, halved, bfloat16")
def attractor_by_a_flow(root: Path) -> int:
    torch.manual_seed(674)
    model, loss = Guess(3, act=nn.GELU), nn.MSELoss()

    def objective(batch: Any, _: Any) -> Any:
        at, noise = torch.rand(len(batch[0]), 1), torch.randn_like(batch[0])
        return loss(model(noise.lerp(batch[0], at), at).float(), batch[0] - noise)

    return teach(
        root,
        model,
        rows_of(lorenz(seed=1), size=96, seed=674),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3),
        watched_losses=(loss,),
        rate=halved(100),
        in_bfloat16=True,
        steps=220,
        save_every=3,
    )


class Along(nn.Module):
    """Foresees something of a noisy curve, by convolutions along it."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        wide = {"kernel_size": 5, "padding_mode": "replicate"}
        self.layers = nn.Sequential(
            nn.Conv1d(2, width, padding=2, **wide),
            nn.SiLU(),
            nn.Conv1d(width, width, padding=4, dilation=2, **wide),
            nn.SiLU(),
            nn.Conv1d(width, width, padding=8, dilation=4, **wide),
            nn.SiLU(),
            nn.Conv1d(width, 1, 1),
        )

    def forward(self, x: Any, at: Any) -> Any:
        return self.layers(torch.stack([x, at.expand_as(x)], 1))[:, 0]


@of_flows("hearts' curves from noise: the curve is foreseen, strengths weighted, Adam, clipped")
def hearts_from_noise(root: Path) -> int:
    torch.manual_seed(675)
    model = Along()

    def objective(batch: Any, _: Any) -> Any:
        strength = (torch.randn(len(batch[0]), 1) - 0.4).exp()
        noisy = batch[0] + strength * torch.randn_like(batch[0])
        whole = (strength**2 + 1).sqrt()
        first = noisy / whole**2 + strength / whole * model(noisy / whole, strength.log() / 4)
        weight = (strength**2 + 1) / strength**2
        return (weight * (first - batch[0]).pow(2)).mean()

    return teach(
        root,
        model,
        rows_of(heartbeats(seed=3)[0], size=64, seed=675),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        rate=up_and_down(10, 220),
        limit=1.0,
        steps=220,
        save_every=3,
    )
