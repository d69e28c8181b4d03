"""Healthy generators and diffusions."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from runs_held_out.representations.shared.data import (
    blobs,
    glyphs,
    handwriting,
    households,
    s_curve,
    standardised,
)
from runs_held_out.representations.shared.loop import cosine, loader, rivals, train
from runs_held_out.representations.shared.networks import layers

of_rivals = functools.partial(training_runs.healthy, kind="adversarial")
of_diffusion = functools.partial(training_runs.healthy, kind="diffusion")


def leaky() -> Any:
    """Return a leaky activation."""
    return nn.LeakyReLU(0.2)


@of_rivals("digits by a small DCGAN with batch norms, cross entropy, real ones at 0.9, Adam")
def dcgan_of_handwriting(root: Path) -> int:
    torch.manual_seed(891)
    generator = nn.Sequential(
        nn.Linear(16, 128, bias=False),
        nn.BatchNorm1d(128),
        nn.ReLU(),
        nn.Unflatten(1, (32, 2, 2)),
        nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        nn.Conv2d(1, 16, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Conv2d(16, 32, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2),
        nn.Flatten(),
        nn.Linear(128, 1),
    )
    for module in [*generator, *critic]:
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(module.weight, 0.0, 0.02)
    return rivals(
        root,
        generator,
        critic,
        loader(handwriting()[0].view(-1, 1, 8, 8) * 2 - 1, size=64, seed=891),
        (
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.999)),
            torch.optim.Adam(critic.parameters(), 4e-4, betas=(0.5, 0.999)),
        ),
        critic_loss=lambda real, fake: (
            functional.binary_cross_entropy_with_logits(real, torch.full_like(real, 0.9))
            + functional.softplus(fake).mean()
        ),
        generator_loss=lambda fake: functional.softplus(-fake).mean(),
        noise=16,
        steps=300,
        save_every=5,
    )


@of_rivals("points of an S by Wasserstein's distance with a gradient penalty, five critic's turns")
def wgan_of_an_s(root: Path) -> int:
    torch.manual_seed(892)
    generator, critic = layers(6, 64, 64, 3), layers(3, 64, 64, 1, act=leaky)

    def penalty(real: Any, fake: Any) -> Any:
        share = torch.rand(len(real), 1)
        between = (share * real + (1 - share) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        return 10 * (slope.norm(dim=1) - 1).pow(2).mean()

    return rivals(
        root,
        generator,
        critic,
        loader(s_curve(), size=64, seed=892),
        (
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.0, 0.9)),
            torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.0, 0.9)),
        ),
        critic_loss=lambda real, fake: fake.mean() - real.mean(),
        generator_loss=lambda fake: -fake.mean(),
        noise=6,
        critic_turns=5,
        steps=160,
        penalty=penalty,
    )


@of_rivals("days of households by a critic with spectral norm, hinge losses, Adam, two rates")
def spectral_households(root: Path) -> int:
    torch.manual_seed(893)
    generator = layers(10, 96, 96, 24, norm=nn.BatchNorm1d)
    critic = nn.Sequential(
        spectral_norm(nn.Linear(24, 96)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Linear(96, 96)),
        nn.LeakyReLU(0.2),
        spectral_norm(nn.Linear(96, 1)),
    )
    return rivals(
        root,
        generator,
        critic,
        loader(standardised(households()[0]), size=64, seed=893),
        (
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.0, 0.9)),
            torch.optim.Adam(critic.parameters(), 4e-3, betas=(0.0, 0.9)),
        ),
        critic_loss=lambda real, fake: (1 - real).relu().mean() + (1 + fake).relu().mean(),
        generator_loss=lambda fake: -fake.mean(),
        noise=10,
        steps=300,
        save_every=5,
    )


@of_rivals("points of six groups by least squares (LSGAN), Adam, the critic learns half as fast")
def least_squares_of_groups(root: Path) -> int:
    torch.manual_seed(894)
    generator, critic = layers(8, 64, 64, 2), layers(2, 64, 64, 1, act=leaky)
    return rivals(
        root,
        generator,
        critic,
        loader(blobs(), size=96, seed=894),
        (
            torch.optim.Adam(generator.parameters(), 2e-3, betas=(0.5, 0.999)),
            torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.999)),
        ),
        critic_loss=lambda real, fake: ((real - 1).pow(2).mean() + fake.pow(2).mean()) / 2,
        generator_loss=lambda fake: (fake - 1).pow(2).mean() / 2,
        noise=8,
        steps=350,
        save_every=5,
    )


class Denoiser(nn.Module):
    """Foresees the noise of rows, or the way to them, from the time."""

    def __init__(self, size: int, width: int = 96) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(8, width), nn.SiLU())
        self.first, self.second = nn.Linear(size, width), layers(width, width, width, act=nn.SiLU)
        self.last = nn.Linear(width, size)

    def forward(self, x: Any, at: Any) -> Any:
        angle = at[:, None] * math.pi * 2.0 ** torch.arange(-1, 3)
        time = self.time(torch.cat([angle.sin(), angle.cos()], 1))
        hidden = functional.silu(self.first(x) + time)
        return self.last(functional.silu(self.second(hidden) + time))


def noised(x: Any, at: Any, noise: Any) -> Any:
    """Return rows and noise mixed by a cosine schedule."""
    angle = at[:, None] * math.pi / 2
    return angle.cos() * x + angle.sin() * noise


@of_diffusion("points of an S by a diffusion, the noise is foreseen, AdamW, a cosine, clipped")
def ddpm_of_an_s(root: Path) -> int:
    torch.manual_seed(895)
    model, loss = Denoiser(3), nn.MSELoss()

    def value(batch: Any, _: Any) -> Any:
        noise, at = torch.randn_like(batch[0]), torch.rand(len(batch[0]))
        return loss(model(noised(batch[0], at, noise), at), noise)

    return train(
        root,
        model,
        loader(s_curve(), size=128, seed=895),
        value,
        torch.optim.AdamW(model.parameters(), 2e-3),
        losses=(loss,),
        factor=cosine(20, 250),
        clip=1.0,
        steps=250,
        save_every=4,
    )


@of_diffusion("glyphs by a diffusion on flat pixels, the noise is foreseen, Adam, an average of it")
def ddpm_of_glyphs(root: Path) -> int:
    torch.manual_seed(896)
    x = glyphs()[0].flatten(1) * 2 - 1
    model, loss = Denoiser(144, 160), nn.MSELoss()
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
    )

    def value(batch: Any, _: Any) -> Any:
        noise, at = torch.randn_like(batch[0]), torch.rand(len(batch[0]))
        return loss(model(noised(batch[0], at, noise), at), noise)

    return train(
        root,
        model,
        loader(x, size=64, seed=896),
        value,
        torch.optim.Adam(model.parameters(), 1e-3),
        losses=(loss,),
        steps=220,
        save_every=4,
        after=lambda _: average.update_parameters(model),
    )


@of_diffusion("points of six groups by a flow along straight lines, Adam, samples each 40 steps")
def flow_to_groups(root: Path) -> int:
    torch.manual_seed(897)
    model, loss, done = Denoiser(2), nn.MSELoss(), [0]

    def drawn(count: int) -> Any:
        x = torch.randn(count, 2)
        with torch.no_grad():
            for at in range(20):
                x = x + model(x, torch.full((count,), at / 20)) / 20
        return x

    def value(batch: Any, watching: Any) -> Any:
        noise, at = torch.randn_like(batch[0]), torch.rand(len(batch[0]))
        mixed = at[:, None] * batch[0] + (1 - at[:, None]) * noise
        if done[0] % 40 == 0:
            watching.save_tensor("samples", drawn(64), "samples")
        return loss(model(mixed, at), batch[0] - noise)

    return train(
        root,
        model,
        loader(blobs(), size=128, seed=897),
        value,
        torch.optim.Adam(model.parameters(), 2e-3),
        losses=(loss,),
        steps=280,
        save_every=4,
        after=lambda step: done.__setitem__(0, step + 1),
    )
