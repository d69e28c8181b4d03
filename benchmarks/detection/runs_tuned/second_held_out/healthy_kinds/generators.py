"""Healthy generators: adversarial pairs with several losses, and others whose samples are saved."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import spectral_norm
from training.torch_loop import adam

from runs_tuned.first_held_out.beyond_supervised.densities import Flow
from runs_tuned.first_held_out.beyond_supervised.generative import spots, waves
from runs_tuned.second_held_out.healthy_kinds.shared.duels import Duel, duel, layers
from runs_tuned.second_held_out.healthy_kinds.shared.experts import Routed, balance
from runs_tuned.second_held_out.healthy_kinds.shared.problems import (
    baskets,
    pulses,
    spirals,
    stripes,
)
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, in_full, learn

healthy = functools.partial(training_runs.healthy, kind="adversarial")
softplus = functional.softplus


HINGE = (
    lambda real, fake: (1 - real).relu().mean() + (1 + fake).relu().mean(),
    lambda fake, _: -fake.mean(),
)
LOGISTIC = (
    lambda real, fake: softplus(-real).mean() + softplus(fake).mean(),
    lambda fake, _: softplus(-fake).mean(),
)
EARTH = (lambda real, fake: fake.mean() - real.mean(), lambda fake, _: -fake.mean())
SQUARES = (
    lambda real, fake: (real - 1).pow(2).mean() + (fake + 1).pow(2).mean(),
    lambda fake, _: fake.pow(2).mean(),
)
RELATIVE = (
    lambda real, fake: softplus(fake.mean() - real).mean() + softplus(fake - real.mean()).mean(),
    lambda fake, real: softplus(real.mean() - fake).mean() + softplus(real - fake.mean()).mean(),
)
BETAS = {"betas": (0.5, 0.95)}


@healthy("arms of a spiral, hinge losses, a critic that learns four times as fast")
def hinge_pair_of_spirals(root: Path) -> int:
    make = lambda: Duel(layers(8, 64, 64, 2, act=nn.ReLU), layers(2, 64, 64, 1), *HINGE)
    optimizers = adam(5e-4, **BETAS), adam(2e-3, **BETAS)
    return duel(root, make, dealt((spirals()[0],), 80), optimizers, rounds=220, follows=0.02)


@healthy("pulses on two workers, a Wasserstein pair whose weights are clipped, RMSprop")
def wasserstein_on_workers(root: Path) -> int:
    make = lambda: Duel(layers(8, 48, 48, 24), layers(24, 64, 48, 1), *EARTH)
    rate = adam(1e-3, torch.optim.RMSprop)
    return duel(
        root,
        make,
        dealt((pulses()[0],), 40, 2),
        (rate, rate),
        rounds=120,
        turns=3,
        clamp=0.06,
        size=2,
    )


class Pictures(nn.Module):
    """Pictures by upsampling and convolutions."""

    def __init__(self, noise: int = 8) -> None:
        super().__init__()
        self.main = nn.Sequential(
            *(nn.Linear(noise, 128), nn.Unflatten(1, (32, 2, 2)), nn.Upsample(scale_factor=2)),
            *(nn.Conv2d(32, 16, 3, 1, 1), nn.GroupNorm(4, 16), nn.SiLU()),
            *(nn.Upsample(scale_factor=2), nn.Conv2d(16, 1, 3, 1, 1)),
        )

    def forward(self, z: Any) -> Any:
        return self.main(z)


def judge(norm: Callable[[Any], Any] = lambda layer: layer) -> Any:
    """Return what scores pictures."""
    return nn.Sequential(
        *(norm(nn.Conv2d(1, 16, 4, 2, 1)), nn.LeakyReLU(0.2), norm(nn.Conv2d(16, 32, 4, 2, 1))),
        *(nn.LeakyReLU(0.2), nn.Flatten(), norm(nn.Linear(128, 1))),
    )


@healthy("stripes, least squares of -1, 0 and 1, half precision with a scaler")
def scaled_least_squares_of_stripes(root: Path) -> int:
    return duel(
        root,
        lambda: Duel(Pictures(), judge(), *SQUARES),
        dealt((stripes()[0],), 20),
        (adam(1e-3, **BETAS), adam(5e-4, **BETAS)),
        rounds=80,
        half=True,
        scaler={"init_scale": 2.0**14, "growth_interval": 30},
        save_every=1,
    )


class OfClasses(Duel):
    """A pair that is given the class of each row."""

    def __init__(self, *losses: Any) -> None:
        super().__init__(layers(14, 64, 64, 64), layers(70, 64, 48, 1), *losses)

    def sample(self, x: Any, *given: Any) -> Any:
        kind = functional.one_hot(given[0], 6).float()
        made = self.generator(torch.cat([torch.randn(len(x), 8), kind], 1))
        return made.view(-1, 1, 8, 8)

    def scores(self, x: Any, *given: Any) -> Any:
        return self.critic(torch.cat([x.flatten(1), functional.one_hot(given[0], 6)], 1))


@healthy("stripes of a given direction, cross entropy, dense layers, AdamW")
def pair_of_given_directions(root: Path) -> int:
    rates = [adam(rate, torch.optim.AdamW, weight_decay=1e-3, **BETAS) for rate in (3e-3, 5e-4)]
    make = lambda: OfClasses(*LOGISTIC)
    return duel(root, make, dealt(stripes(), 48), (rates[0], rates[1]), rounds=240, save_every=3)


class Sloped(Duel):
    """A pair whose critic is to be level at real rows, or to have slope 1 between both kinds."""

    between, weight = False, 0.5

    def penalty(self, x: Any, fake: Any) -> Any:
        share = torch.rand(len(x), *[1] * (x.ndim - 1)) if self.between else 1.0
        at = (share * x + (1 - share) * fake).detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.critic(at).sum(), at, create_graph=True)
        norm = slope.flatten(1).norm(dim=1)
        return self.weight * ((norm - 1) if self.between else norm).pow(2).mean()


@healthy("spots, cross entropy, a penalty of slopes at real rows, a slow copy of the generator")
def pair_with_level_critic(root: Path) -> int:
    make = lambda: Sloped(Pictures(), judge(), *LOGISTIC)
    optimizers = adam(1.5e-3, betas=(0.0, 0.99)), adam(1.5e-3, betas=(0.0, 0.99))
    feed = dealt((spots(),), 32)
    return duel(root, make, feed, optimizers, rounds=150, follows=0.05)


@healthy("baskets of goods as chances, a Wasserstein pair with a penalty, two turns of the critic")
def wasserstein_of_baskets(root: Path) -> int:
    def make() -> Any:
        generator = nn.Sequential(layers(8, 48, 48, 30, act=nn.ELU), nn.Sigmoid())
        pair = Sloped(generator, layers(30, 64, 64, 1, act=nn.SiLU), *EARTH)
        pair.between, pair.weight = True, 1.0
        return pair

    rates = adam(5e-3, betas=(0.0, 0.9)), adam(2e-3, betas=(0.0, 0.9))
    return duel(root, make, dealt((baskets(),), 48), rates, rounds=150, turns=2)


@healthy("waves, relativistic scores, spectral norm, Adamax")
def relativistic_pair_of_waves(root: Path) -> int:
    def make() -> Any:
        critic = nn.Sequential(
            *(spectral_norm(nn.Linear(32, 64)), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(64, 1))),
        )
        return Duel(layers(8, 64, 64, 32, act=nn.GELU), critic, *RELATIVE)

    rate = functools.partial(torch.optim.Adamax, lr=2e-3, betas=(0.5, 0.95))
    return duel(root, make, dealt((waves(),), 64), (rate, rate), rounds=200)


class Compared(nn.Module):
    """Scores points, told how far the rows of the batch differ."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = layers(2, 48, 48), layers(49, 32, 1)

    def forward(self, x: Any) -> Any:
        hidden = functional.leaky_relu(self.body(x), 0.2)
        spread = hidden.std(0).mean().expand(len(x), 1)
        return self.head(torch.cat([hidden, spread], 1))


@healthy("arms of a spiral by four experts, two a point; the critic sees how far points differ")
def experts_generate_spirals(root: Path) -> int:
    class Mixed(Duel):
        def sample(self, x: Any, *_: Any) -> Any:
            made = super().sample(x)
            self.balance = balance(self.generator)
            return made

    def make() -> Any:
        body = nn.Sequential(
            nn.Linear(8, 48), nn.LayerNorm(48), nn.SiLU(), Routed(48, 4, 2, outs=2)
        )
        pair = Mixed(body, Compared(), *LOGISTIC)
        plain = pair.of_generator
        pair.of_generator = lambda fake, real: plain(fake, real) + 0.05 * balance(pair.generator)
        return pair

    rate = adam(1.5e-3, **BETAS)
    return duel(root, make, dealt((spirals()[0],), 64), (rate, rate), rounds=180)


def kernels(first: Any, second: Any) -> Any:
    """Return the mean of kernels of four widths."""
    distance = torch.cdist(first, second).pow(2)
    return sum((-distance / (2 * width)).exp().mean() for width in (0.5, 2.0, 8.0, 32.0))


@training_runs.healthy("pulses, a generator that matches moments by kernels", kind="adversarial")
def moments_of_pulses(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        fake = model(torch.randn(96, 6))
        watching.save_tensor("generated", fake, "samples")
        return kernels(fake, fake) - 2 * kernels(fake, batch[0]) + kernels(batch[0], batch[0])

    make = lambda: layers(6, 48, 64, 24, act=nn.GELU)
    return learn(
        root,
        make,
        dealt((pulses()[0],), 96),
        objective,
        optimizer=adam(2e-3, torch.optim.NAdam),
        schedule=lambda step: 1 - 0.9 * step / 200,
        steps=200,
    )


class Inverted(Flow):
    """A flow that can be walked backwards to make samples."""

    def sample(self, count: int) -> Any:
        x = torch.randn(count, 2)
        with torch.no_grad():
            for part in reversed(self.couplings):
                hidden = part.inner(x * part.mask)
                scale = 2 * (part.scale(hidden) / 2).tanh() * (1 - part.mask)
                x = (x - part.shift(hidden) * (1 - part.mask)) * (-scale).exp()
        return x


@training_runs.healthy("arms of a spiral by a flow on two workers, samples saved", kind="diffusion")
def flow_on_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        watching.save_tensor("samples", model.sample(64), "samples")
        return -model(batch[0]).mean()

    return learn(
        root,
        lambda: Inverted(2, 6),
        dealt((spirals()[0],), 64, 2),
        objective,
        optimizer=adam(4e-3),
        size=2,
        clip=2.0,
        steps=110,
    )


@training_runs.healthy(
    "waves by straight paths from noise (flow matching), half precision", kind="diffusion"
)
def scaled_flow_matching_of_waves(root: Path) -> int:
    def walked(model: Any) -> Any:
        with torch.no_grad():
            x = torch.randn(32, 32)
            for step in range(6):
                x = x + model(torch.cat([x, torch.full((32, 1), step / 6)], 1)) / 6
        return x

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        watching.save_tensor("samples", in_full(walked)(model), "samples")
        time, noise = torch.rand(len(batch[0]), 1), torch.randn_like(batch[0])
        between = (1 - time) * noise + time * batch[0]
        return functional.mse_loss(model(torch.cat([between, time], 1)).float(), batch[0] - noise)

    return learn(
        root,
        lambda: layers(33, 96, 96, 32, act=nn.SiLU),
        dealt((waves(),), 64),
        objective,
        optimizer=adam(3e-3),
        half=torch.float16,
        scaler={"init_scale": 2.0**17, "growth_interval": 25},
        steps=130,
        save_every=1,
    )
