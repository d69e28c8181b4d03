"""Pairs: a generator, a critic, their losses, and the loop in which they are trained."""

import copy
import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import watched


@dataclass
class Pair:
    """Two models that train against each other, and the losses that they minimise.

    Attributes
    ----------
    of_critic, of_generator
        Loss of the critic by its scores of real and generated rows; that of the generator by
        scores, samples and real rows.
    noise
        Number of random numbers that a sample is made from.
    """

    generator: Any
    critic: Any
    of_critic: Callable[[Any, Any], Any]
    of_generator: Callable[[Any, Any, Any], Any]
    noise: int = 6
    penalty: float = 0.0

    def sample(self, count: int) -> Any:
        return self.generator(torch.randn(count, self.noise))

    def gradient_penalty(self, real: Any, fake: Any) -> Any:
        """Return how far the critic's slope between real and generated rows is from 1."""
        share = torch.rand(len(real), *[1] * (real.ndim - 1))
        between = (share * real + (1 - share) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(between).sum(), between, create_graph=True)
        return (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()


def play(
    root: Path,
    make: Callable[[], Pair],
    real: Iterator[Any],
    *,
    optimizers: tuple[Any, Any],
    rounds: int = 160,
    critic_steps: int = 1,
    generator_steps: int = 1,
    names: tuple[str, str] = ("d_loss", "g_loss"),
    averages: bool = False,
    save_every: int = 2,
) -> int:
    """Train a pair in turns; each update of the generator begins a step of the hook."""
    torch.manual_seed(6)
    pair = make()
    optimizer_g, optimizer_d = (
        optimizer(model.parameters())
        for optimizer, model in zip(optimizers, (pair.generator, pair.critic), strict=True)
    )
    average = copy.deepcopy(pair.generator) if averages else None
    with watched(root, save_every=save_every) as watching:
        watching.register_module(pair.generator, counts_steps=False)
        watching.register_module(pair.critic)
        for turn in range(rounds * generator_steps):
            watching.begin_step()
            for x in itertools.islice(real, 0 if turn % generator_steps else critic_steps):
                fake = pair.sample(len(x)).detach()
                loss = pair.of_critic(pair.critic(x), pair.critic(fake))
                watching.record_tensor_value(names[0], loss)
                if pair.penalty:
                    penalty = pair.gradient_penalty(x, fake)
                    watching.record_tensor_value("gradient_penalty", penalty)
                    loss = loss + pair.penalty * penalty
                optimizer_d.zero_grad()
                loss.backward()
                optimizer_d.step()
            x = next(real)
            fake = pair.sample(len(x))
            loss = pair.of_generator(pair.critic(fake), fake, x)
            watching.record_tensor_value(names[1], loss)
            watching.save_tensor("fake", fake, "samples")
            optimizer_g.zero_grad()
            loss.backward()
            optimizer_g.step()
            if average is not None:
                for slow, fast in zip(
                    average.parameters(), pair.generator.parameters(), strict=True
                ):
                    slow.data.lerp_(fast.data, 0.02)
    return 0


def adam(rate: float, *betas: float, kind: Any = torch.optim.Adam, **more: Any) -> Any:
    """Return what makes an optimizer of parameters."""
    return functools.partial(kind, lr=rate, betas=betas or (0.5, 0.99), **more)


class Generator(nn.Module):
    """Makes images of spots by transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.begin = nn.Linear(6, 96)
        self.main = nn.Sequential(
            *(nn.BatchNorm1d(96), nn.ReLU(), nn.Unflatten(1, (24, 2, 2))),
            *(nn.ConvTranspose2d(24, 12, 4, 2, 1), nn.BatchNorm2d(12), nn.ReLU()),
            nn.ConvTranspose2d(12, 1, 4, 2, 1),
        )

    def forward(self, z: Any) -> Any:
        return self.main(self.begin(z))


class Discriminator(nn.Module):
    """Scores images; its layers may be divided by their largest singular value."""

    def __init__(self, norm: Callable[[Any], Any] = lambda layer: layer) -> None:
        super().__init__()
        self.main = nn.Sequential(
            *(norm(nn.Conv2d(1, 16, 3, 2, 1)), nn.LeakyReLU(0.1)),
            *(norm(nn.Conv2d(16, 24, 3, 2, 1)), nn.LeakyReLU(0.1), nn.Flatten()),
            norm(nn.Linear(96, 1)),
        )

    def forward(self, x: Any) -> Any:
        return self.main(x)


def layers(*widths: int, act: Callable[[], Any] = nn.Softplus) -> Any:
    """Return linear layers with activations between them."""
    pairs = itertools.pairwise(widths[:-1])
    inner = [part for ins, outs in pairs for part in (nn.Linear(ins, outs), act())]
    return nn.Sequential(*inner, nn.Linear(*widths[-2:]))


class WaveGenerator(nn.Module):
    """Makes waves."""

    def __init__(self, act: Callable[[], Any] = nn.GELU) -> None:
        super().__init__()
        self.main = layers(6, 48, 64, 32, act=act)

    def forward(self, z: Any) -> Any:
        return self.main(z)


class Critic(nn.Module):
    """Scores points or waves."""

    def __init__(self, ins: int, act: Callable[[], Any] = nn.SiLU) -> None:
        super().__init__()
        self.main = layers(ins, 48, 48, 1, act=act)

    def forward(self, x: Any) -> Any:
        return self.main(x)


class WaveDiscriminator(Critic):
    """Tells waves from generated ones."""


class PointGenerator(nn.Module):
    """Makes points of a plane."""

    def __init__(self) -> None:
        super().__init__()
        self.main = layers(6, 40, 40, 2, act=nn.ELU)

    def forward(self, z: Any) -> Any:
        return self.main(z)


@functools.cache
def grid(count: int = 2048) -> Any:
    """Return points around nine places."""
    random = torch.Generator().manual_seed(14)
    places = torch.randint(-1, 2, (count, 2), generator=random).float()
    return 1.2 * places + 0.08 * torch.randn(count, 2, generator=random)


def hinge(real: Any, fake: Any) -> Any:
    """Return the hinge loss of scores."""
    return (1 - real).relu().mean() + (1 + fake).relu().mean()


def entropy(real: Any, fake: Any) -> Any:
    """Return the cross entropy of scores as logits, real ones smoothed to 0.9."""
    score = functional.binary_cross_entropy_with_logits
    return score(real, torch.full_like(real, 0.9)) + score(fake, torch.zeros_like(fake))


def earth(real: Any, fake: Any) -> Any:
    """Return the difference of the mean scores."""
    return fake.mean() - real.mean()


def squares(real: Any, fake: Any) -> Any:
    """Return the squared distance from 1 and 0."""
    return (real - 1).pow(2).mean() + fake.pow(2).mean()


def higher(scores: Any, *_: Any) -> Any:
    """Return the negative mean score."""
    return -scores.mean()


def real_alike(scores: Any, *_: Any) -> Any:
    """Return the cross entropy of scores as logits of what should look real."""
    return functional.softplus(-scores).mean()
