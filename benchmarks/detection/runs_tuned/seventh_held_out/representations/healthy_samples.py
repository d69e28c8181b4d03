"""Healthy pairs of generator and critic, diffusions and flows."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from runs_tuned.seventh_held_out.representations.shared.data import (
    digits,
    moons,
    ring,
    signals,
    swiss_roll,
)
from runs_tuned.seventh_held_out.representations.shared.loop import (
    bce_critic,
    bce_generator,
    duel,
    loader,
    teach,
    warmup_cosine,
)
from runs_tuned.seventh_held_out.representations.shared.networks import mlp

of_pairs = functools.partial(training_runs.healthy, kind="adversarial")
of_noise = functools.partial(training_runs.healthy, kind="diffusion")


def leaky() -> Any:
    """Return the usual activation of discriminators."""
    return nn.LeakyReLU(0.2)


@of_pairs("a DCGAN of digits: batch norm, tanh, Adam with beta 0.5, two rates")
def dcgan_of_digits(root: Path) -> int:
    torch.manual_seed(20)
    generator = nn.Sequential(
        nn.Unflatten(1, (16, 1, 1)),
        nn.ConvTranspose2d(16, 32, 4, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.ConvTranspose2d(32, 1, 4, stride=2, padding=1),
        nn.Tanh(),
    )
    critic = nn.Sequential(
        nn.Conv2d(1, 24, 4, stride=2, padding=1),
        leaky(),
        nn.Conv2d(24, 48, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(48),
        leaky(),
        nn.Flatten(),
        nn.Linear(192, 1),
    )
    return duel(
        root,
        generator,
        critic,
        loader(2 * digits()[0] - 1, size=64, seed=20),
        noise=16,
        of_critic=bce_critic,
        of_generator=bce_generator,
        optimizers=(
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.999)),
            torch.optim.Adam(critic.parameters(), 2e-4, betas=(0.5, 0.999)),
        ),
        steps=200,
    )


@of_pairs("a pair draws two moons, cross entropy, a penalty of slopes at real rows (R1), Adam")
def r1_of_moons(root: Path) -> int:
    torch.manual_seed(21)
    generator, critic = mlp(4, 64, 64, 2), mlp(2, 64, 64, 1, act=leaky)

    def penalty(real: Any, _: Any) -> Any:
        rows = real.clone().requires_grad_()
        (slope,) = torch.autograd.grad(critic(rows).sum(), rows, create_graph=True)
        return 0.1 * slope.pow(2).sum(1).mean()

    return duel(
        root,
        generator,
        critic,
        loader(moons(), size=64, seed=21),
        noise=4,
        of_critic=bce_critic,
        of_generator=bce_generator,
        optimizers=(
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.99)),
            torch.optim.Adam(critic.parameters(), 2e-3, betas=(0.5, 0.99)),
        ),
        penalty=penalty,
        steps=400,
        save_every=4,
    )


@of_pairs("a pair with hinge losses and spectral norm draws signals, Adam, two rates")
def spectral_norm_of_signals(root: Path) -> int:
    torch.manual_seed(22)
    generator = mlp(8, 64, 64, 48, norm=nn.BatchNorm1d)
    critic = mlp(48, 64, 64, 1, act=leaky)
    for layer in critic:
        if isinstance(layer, nn.Linear):
            spectral_norm(layer)
    return duel(
        root,
        generator,
        critic,
        loader(signals(seed=22)[0], size=64, seed=22),
        noise=8,
        of_critic=lambda real, fake: (
            functional.relu(1 - real).mean() + functional.relu(1 + fake).mean()
        ),
        of_generator=lambda scores: -scores.mean(),
        optimizers=(
            torch.optim.Adam(generator.parameters(), 5e-4, betas=(0.0, 0.9)),
            torch.optim.Adam(critic.parameters(), 2e-3, betas=(0.0, 0.9)),
        ),
        steps=280,
    )


class Denoiser(nn.Module):
    """Foresees noise, or speed, from a noisy row, its time, and its kind."""

    def __init__(self, size: int, kinds: int = 0, width: int = 96) -> None:
        super().__init__()
        self.kinds = nn.Embedding(kinds + 1, 16)
        self.layers = mlp(size + 32, width, width, size, act=nn.SiLU)

    def forward(self, x: Any, time: Any, kind: Any = None) -> Any:
        angles = time[:, None] * torch.arange(1, 9)
        told = self.kinds(torch.zeros(len(x), dtype=torch.long) if kind is None else kind)
        return self.layers(torch.cat([x, angles.sin(), angles.cos(), told], 1))


STEPS = 40
KEPT = (1 - torch.linspace(1e-3, 0.2, STEPS)).cumprod(0)


@torch.no_grad()
def denoised(model: Any, count: int, size: int, kind: Any = None) -> Any:
    """Return samples of a diffusion by all its steps (DDPM)."""
    x = torch.randn(count, size)
    for step in reversed(range(STEPS)):
        kept = KEPT[step] / KEPT[step - 1] if step else KEPT[0]
        noise = model(x, torch.full((count,), step / STEPS), kind)
        x = (x - (1 - kept) / (1 - KEPT[step]).sqrt() * noise) / kept.sqrt()
        if step:
            x = x + (1 - kept).sqrt() * torch.randn_like(x)
    return x


@of_noise("a diffusion of a rolled band: noise is foreseen, 40 steps, Adam, samples saved")
def ddpm_of_a_roll(root: Path) -> int:
    torch.manual_seed(23)
    model, count = Denoiser(2), [0]

    def objective(batch: Any, hook: Any) -> Any:
        count[0] += 1
        if count[0] % 10 == 1:
            hook.save_tensor("samples", denoised(model, 64, 2), "samples")
        step = torch.randint(STEPS, (len(batch[0]),))
        kept, noise = KEPT[step][:, None], torch.randn_like(batch[0])
        noisy = kept.sqrt() * batch[0] + (1 - kept).sqrt() * noise
        return functional.mse_loss(model(noisy, step / STEPS), noise)

    return teach(
        root,
        model,
        loader(swiss_roll(), size=128, seed=23),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=240,
    )


@of_noise("a diffusion of digits told which, in a tenth not told (guidance), AdamW, averaged")
def guided_digits(root: Path) -> int:
    torch.manual_seed(24)
    x, y, _, _ = digits()
    x = 2 * x.flatten(1) - 1
    model = Denoiser(64, 10, 128)
    average = torch.optim.swa_utils.AveragedModel(
        model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95)
    )

    def objective(batch: Any, _: Any) -> Any:
        rows, kind = batch
        step = torch.randint(STEPS, (len(rows),))
        kept, noise = KEPT[step][:, None], torch.randn_like(rows)
        noisy = kept.sqrt() * rows + (1 - kept).sqrt() * noise
        told = torch.where(torch.rand(len(rows)) < 0.1, 10, kind)
        return functional.mse_loss(model(noisy, step / STEPS, told), noise)

    return teach(
        root,
        model,
        loader(x, y, size=64, seed=24),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3),
        factor=warmup_cosine(20, 240),
        after=lambda _: average.update_parameters(model),
        steps=240,
        save_every=4,
    )


@of_noise("a flow along straight lines from noise to a ring of eight spots, Adam, samples saved")
def flow_to_a_ring(root: Path) -> int:
    torch.manual_seed(25)
    model, count = Denoiser(2), [0]

    @torch.no_grad()
    def drawn() -> Any:
        x = torch.randn(64, 2)
        for step in range(20):
            x = x + model(x, torch.full((64,), step / 20)) / 20
        return x

    def objective(batch: Any, hook: Any) -> Any:
        count[0] += 1
        if count[0] % 12 == 1:
            hook.save_tensor("samples", drawn(), "samples")
        time, noise = torch.rand(len(batch[0])), torch.randn_like(batch[0])
        between = noise.lerp(batch[0], time[:, None])
        return functional.mse_loss(model(between, time), batch[0] - noise)

    return teach(
        root,
        model,
        loader(2 * ring(seed=25), size=128, seed=25),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=250,
        save_every=3,
    )
