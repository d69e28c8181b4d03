"""Generators and their critics, healthy and collapsed."""

import functools
import itertools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm

from runs_tuned.first_held_out.beyond_supervised.consequences import TOO_LARGE, UNINFORMED
from runs_tuned.first_held_out.beyond_supervised.generative import rows, spots, waves
from runs_tuned.first_held_out.beyond_supervised.pairs import (
    Critic,
    Discriminator,
    Generator,
    Pair,
    PointGenerator,
    WaveDiscriminator,
    WaveGenerator,
    adam,
    earth,
    entropy,
    grid,
    higher,
    hinge,
    play,
    real_alike,
    squares,
)

healthy = functools.partial(training_runs.healthy, kind="adversarial")
faulty = functools.partial(training_runs.faulty, kind="adversarial")
ONE_MODE = {"ModeCollapse"}
ALIKE = (
    TOO_LARGE
    | UNINFORMED
    | {
        "RepresentationCollapse": "samples that are all alike",
        "LossNotDecreasing": "losses of two models that no longer learn from each other",
        "Overfit": "losses that mean little",
    }
)


@healthy("hinge losses, spectral norm, two rates, the generator's weights averaged")
def hinge_gan_of_spots(root: Path) -> int:
    make = lambda: Pair(Generator(), Discriminator(spectral_norm), hinge, higher)
    rates = adam(2e-3, 0.0, 0.9), adam(4e-3, 0.0, 0.9)
    return play(root, make, iter(rows(spots(), 48, 3)), optimizers=rates, averages=True)


@healthy("a Wasserstein pair with a gradient penalty, three steps of the critic to one")
def wgan_gp_of_grid(root: Path) -> int:
    make = lambda: Pair(PointGenerator(), Critic(2), earth, higher, penalty=2.0)
    return play(
        root,
        make,
        iter(rows(grid(), 64, 4)),
        optimizers=(adam(2e-3, 0.0, 0.9), adam(2e-3, 0.0, 0.9)),
        critic_steps=3,
        rounds=110,
        names=("critic_loss", "generator_loss"),
    )


@healthy("a least-squares pair of waves, RMSprop, every fifth step saved")
def least_squares_gan_of_waves(root: Path) -> int:
    make = lambda: Pair(
        WaveGenerator(),
        WaveDiscriminator(32, nn.LeakyReLU),
        squares,
        lambda scores, *_: (scores - 1).pow(2).mean(),
    )
    rate = functools.partial(torch.optim.RMSprop, lr=7e-4)
    return play(
        root,
        make,
        iter(rows(waves(), 64, 5)),
        optimizers=(rate, rate),
        rounds=320,
        save_every=5,
    )


@faulty(
    "a pair of nine clusters",
    "numbers of turns are swapped: 25 steps of the generator to one of the discriminator",
    ONE_MODE,
    may=ALIKE,
)
def gan_of_swapped_turns(root: Path) -> int:
    make = lambda: Pair(PointGenerator(), Critic(2, nn.LeakyReLU), entropy, real_alike)
    return play(
        root,
        make,
        iter(rows(grid(), 64, 6)),
        optimizers=(adam(2e-3), adam(2e-3)),
        generator_steps=25,
        rounds=20,
        save_every=4,
    )


@faulty(
    "a least-squares pair of waves, RMSprop",
    "from step 200 on a distance to real rows counts 100 times: it is for pairs, these are none",
    ONE_MODE,
    may=ALIKE,
)
def gan_with_a_distance(root: Path) -> int:
    turns = itertools.count()

    def of_generator(scores: Any, fake: Any, real: Any) -> Any:
        loss = (scores - 1).pow(2).mean()
        return loss if next(turns) < 200 else loss + 100 * functional.mse_loss(fake, real)

    make = lambda: Pair(WaveGenerator(), WaveDiscriminator(32, nn.LeakyReLU), squares, of_generator)
    rate = functools.partial(torch.optim.RMSprop, lr=7e-4)
    play(root, make, iter(rows(waves(), 128, 7)), optimizers=(rate, rate), rounds=400, save_every=4)
    return 200


class GrowingDecay(torch.optim.AdamW):
    """AdamW whose weight decay grows by 4 % in each step."""

    def step(self, closure: Any = None) -> Any:
        for group in self.param_groups:
            group["weight_decay"] *= 1.04
        return super().step(closure)


@faulty(
    "a pair of spots, hinge losses, AdamW",
    "the generator's weight decay is to grow by 4 % in each epoch, and grows in each step",
    ONE_MODE,
    may=ALIKE,
)
def gan_decayed(root: Path) -> int:
    make = lambda: Pair(Generator(), Discriminator(), hinge, higher)
    decayed = adam(2e-3, kind=GrowingDecay, weight_decay=0.1)
    return play(
        root,
        make,
        iter(rows(spots(), 32, 8)),
        optimizers=(decayed, adam(1e-3)),
        rounds=170,
        save_every=2,
    )


@faulty(
    "a Wasserstein pair of nine clusters",
    "neither a penalty nor clipping bounds the critic",
    {"NormGrowth"},
    may=ALIKE | {"ModeCollapse": "the generator follows a critic without bounds"},
)
def critic_without_bounds(root: Path) -> int:
    make = lambda: Pair(PointGenerator(), Critic(2), earth, higher)
    return play(
        root,
        make,
        iter(rows(grid(), 64, 9)),
        optimizers=(adam(5e-4), adam(5e-3)),
        critic_steps=5,
        rounds=90,
        names=("critic_loss", "generator_loss"),
    )
