"""Generators whose samples become alike."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.consequences import ALIKE
from runs_held_out.representations.shared.data import blobs, glyphs, households, standardised
from runs_held_out.representations.shared.loop import loader, rivals
from runs_held_out.representations.shared.networks import layers

faulty = functools.partial(training_runs.faulty, kind="adversarial")


def of_critic(real: Any, fake: Any) -> Any:
    """Return the critic's cross entropy."""
    return functional.softplus(-real).mean() + functional.softplus(fake).mean()


def of_generator(fake: Any) -> Any:
    """Return the generator's cross entropy."""
    return functional.softplus(-fake).mean()


def leaky() -> Any:
    """Return a leaky activation."""
    return nn.LeakyReLU(0.2)


@faulty(
    "days of households by a generator and a critic, cross entropy, Adam, rates down from step 150",
    "the L1 term of pix2pix, with its weight of 100, compares samples with days not their own",
    {"ModeCollapse"},
    may=ALIKE,
)
def l1_of_strangers(root: Path) -> int:
    torch.manual_seed(881)
    generator, critic = layers(8, 96, 96, 24), layers(24, 96, 96, 1, act=leaky)
    optimizers = (
        torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.999)),
        torch.optim.Adam(critic.parameters(), 5e-4, betas=(0.5, 0.999)),
    )

    def extra(step: int, drawn: Any, real: Any) -> Any:
        return 100 * functional.l1_loss(drawn, real) if step >= 150 else 0.0

    def lower(step: int) -> None:
        for optimizer, rate in zip(optimizers, (1e-3, 5e-4), strict=True):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, (601 - step) / 450)

    return rivals(
        root,
        generator,
        critic,
        loader(standardised(households()[0]), size=64, seed=881),
        optimizers,
        critic_loss=of_critic,
        generator_loss=of_generator,
        extra=extra,
        after=lower,
        steps=600,
        save_every=4,
        fault_at=150,
    )


@faulty(
    "glyphs by a generator with tanh and a critic, hinge losses, Adam, rates change by epochs",
    "the generator's rate is multiplied by 1.03, and not by 0.97, at each turn from step 100 on",
    {"ModeCollapse"},
    may=ALIKE | {"LearningRate": "the rate grows without end"},
)
def rate_multiplied_the_wrong_way(root: Path) -> int:
    torch.manual_seed(882)
    x = glyphs()[0].flatten(1) * 2 - 1
    generator = nn.Sequential(layers(12, 96, 144), nn.Tanh())
    critic = layers(144, 96, 1, act=leaky)
    optimizer = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.0, 0.9))

    def change(step: int) -> None:
        if step >= 100:
            optimizer.param_groups[0]["lr"] *= 1.03

    return rivals(
        root,
        generator,
        critic,
        loader(x, size=48, seed=882),
        (optimizer, torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.0, 0.9))),
        critic_loss=lambda real, fake: (1 - real).relu().mean() + (1 + fake).relu().mean(),
        generator_loss=lambda fake: -fake.mean(),
        noise=12,
        steps=400,
        after=change,
        fault_at=100,
    )


@faulty(
    "points of six groups by a generator and a critic, cross entropy, Adam, in two stages",
    "in the second stage the generator's decay is 0.5, and not 0.0005, inside of Adam",
    {"ModeCollapse"},
    may=ALIKE,
)
def decay_of_one_half(root: Path) -> int:
    torch.manual_seed(883)
    generator, critic = layers(4, 64, 64, 2), layers(2, 64, 64, 1, act=leaky)
    optimizer = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.999))

    def second_stage(step: int) -> None:
        if step == 199:
            optimizer.param_groups[0]["weight_decay"] = 0.5

    return rivals(
        root,
        generator,
        critic,
        loader(blobs(), size=64, seed=883),
        (optimizer, torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.999))),
        critic_loss=of_critic,
        generator_loss=of_generator,
        noise=4,
        steps=600,
        save_every=4,
        after=second_stage,
        fault_at=200,
    )
