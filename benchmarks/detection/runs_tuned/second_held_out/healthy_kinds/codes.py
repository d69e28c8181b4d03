"""Healthy latent codes of other kinds: conditional, weighted, of classes, of two levels."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.nn import functional
from training.torch_loop import adam

from runs_tuned.first_held_out.beyond_supervised.contrastive import table
from runs_tuned.first_held_out.beyond_supervised.generative import waves
from runs_tuned.second_held_out.healthy_kinds.shared.codes import Coder, apart, drawn, nats
from runs_tuned.second_held_out.healthy_kinds.shared.experts import units
from runs_tuned.second_held_out.healthy_kinds.shared.problems import pulses, spirals, stripes
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, learn
from runs_tuned.second_held_out.healthy_kinds.variational import of_stripes

healthy = functools.partial(training_runs.healthy, kind="autoencoder")


@healthy("pulses of a given quarter, conditional, samples of all quarters saved, RMSprop")
def conditional_vae_of_pulses(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        x, quarter = batch
        given = functional.one_hot(quarter, 4).float()
        mean, log_variance = model.encode(torch.cat([x, given], 1))
        watching.save_tensor("mu", mean, "latent_means")
        watching.save_tensor("samples", model.sample(len(x), given), "samples")
        output = model.decoder(torch.cat([drawn(mean, log_variance), given], 1))
        return (3 * apart(output, x) + nats(mean, log_variance).sum(1)).mean()

    make = lambda: Coder(units(28, 48, 32), 32, 4, units(8, 48, 24), given=4)
    optimizer = adam(2e-3, torch.optim.RMSprop)
    return learn(root, make, dealt(pulses(), 40), objective, optimizer=optimizer, steps=200)


@healthy("stripes, a distance of kernels in place of the divergence, samples saved")
def mmd_vae_of_stripes(root: Path) -> int:
    def kernel(first: Any, second: Any) -> Any:
        return (-torch.cdist(first, second).pow(2) / (2 * first.shape[1])).exp().mean()

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        mean, log_variance = model.encode(batch[0])
        watching.save_tensor("mu", mean, "latent_means")
        watching.save_tensor("samples", model.sample(48), "samples")
        code, prior = drawn(mean, log_variance), torch.randn_like(mean)
        distance = kernel(code, code) + kernel(prior, prior) - 2 * kernel(code, prior)
        return apart(model.decoder(code), batch[0]).mean() + 30 * distance

    make = lambda: of_stripes(6)
    return learn(
        root, make, dealt(stripes(), 48), objective, optimizer=adam(4e-3), steps=200, save_every=4
    )


@healthy("points on arms of a spiral, two units, the mean of eight weighted samples (IWAE)")
def weighted_samples_of_spirals(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        x = batch[0]
        mean, log_variance = model.encode(x)
        watching.save_tensor("z_mu", mean, "latent_means")
        watching.save_tensor("samples", model.sample(64), "samples")
        noise = torch.randn(8, *mean.shape)
        code = mean + noise * (log_variance / 2).exp()
        logs = -0.5 * (code**2 - noise**2 - log_variance).sum(2)
        logs = logs - 20 * (model.decoder(code) - x).pow(2).sum(2)
        return -(logs.logsumexp(0) - 2.0794).mean()

    make = lambda: Coder(units(2, 48, 48), 48, 2, units(2, 64, 2))
    feed = dealt(spirals(), 100)
    return learn(root, make, feed, objective, optimizer=adam(5e-3, torch.optim.Adamax), steps=260)


@healthy("directions of stripes through a variational bottleneck of eight numbers, a low weight")
def bottleneck_of_directions(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        mean, log_variance = model.encode(batch[0])
        watching.save_tensor("mu", mean, "latent_means")
        loss = functional.cross_entropy(model.decoder(drawn(mean, log_variance)), batch[1])
        return loss + 0.01 * nats(mean, log_variance).sum(1).mean()

    def make() -> Any:
        body = nn.Sequential(nn.Conv2d(1, 16, 3, 2), nn.ReLU6(), nn.Flatten(), nn.Linear(144, 40))
        return Coder(nn.Sequential(body, nn.ReLU()), 40, 8, nn.Linear(8, 6))

    return learn(root, make, dealt(stripes(), 40), objective, optimizer=adam(4e-3), steps=200)


@healthy("points of a spiral and their squares, the divergence is held at a capacity that grows")
def capacity_of_spirals(root: Path) -> int:
    numbers = iter(range(1000))

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        points = batch[0]
        x = torch.cat([points, points.pow(2), points.prod(1, keepdim=True)], 1)
        mean, log_variance = model.encode(x)
        watching.save_tensor("latent_mu", mean, "latent_means")
        spent = nats(mean, log_variance).sum(1).mean()
        capacity = min(4.0, next(numbers) / 40)
        error = 10 * apart(model.decoder(drawn(mean, log_variance)), x).mean()
        return error + 3 * (spent - capacity).abs()

    make = lambda: Coder(units(5, 40, 32), 32, 5, units(5, 40, 5))
    return learn(root, make, dealt(spirals(), 80), objective, optimizer=adam(4e-3), steps=240)


class Sigma(Coder):
    """A coder with a learnt noise of each output."""

    def __init__(self) -> None:
        super().__init__(units(30, 48, 32), 32, 4, units(4, 48, 30))
        self.log_noise = nn.Parameter(torch.zeros(30))


@healthy("features of breast cancer, the noise of each is learnt, samples of the prior")
def learnt_noise_of_cancer(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        x = batch[0].clamp(-4, 4)
        mean, log_variance = model.encode(x)
        watching.save_tensor("latent_mean", mean, "latent_means")
        watching.save_tensor("samples", model.sample(32), "samples")
        error = (model.decoder(drawn(mean, log_variance)) - x) / model.log_noise.exp()
        density = (0.5 * error.pow(2) + model.log_noise).sum(1)
        return (density + nats(mean, log_variance).sum(1)).mean()

    feed = dealt(table(load_breast_cancer), 32)
    return learn(root, Sigma, feed, objective, optimizer=adam(4e-3), steps=220, clip=20.0)


class TwoLevels(nn.Module):
    """Latent units whose prior is told by others."""

    def __init__(self) -> None:
        super().__init__()
        self.lower, self.upper = units(32, 48, 16), units(8, 24, 6)
        self.prior, self.decoder = units(3, 24, 16), units(8, 48, 32)


@healthy("waves by two levels of latent units, the upper tells the prior of the lower, warm-up")
def two_levels_of_waves(root: Path) -> int:
    numbers = iter(range(1000))

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        mean, log_variance = model.lower(batch[0]).clamp(-6, 6).chunk(2, 1)
        code = drawn(mean, log_variance)
        above, log_above = model.upper(code).clamp(-6, 6).chunk(2, 1)
        watching.save_tensor("mu", mean, "latent_means")
        told, log_told = model.prior(drawn(above, log_above)).clamp(-6, 6).chunk(2, 1)
        lower = (mean - told).pow(2) / log_told.exp() + (log_variance - log_told).exp()
        lower = 0.5 * (lower - 1 - log_variance + log_told).sum(1)
        weight = min(0.3, next(numbers) / 300)
        divergence = lower + nats(above, log_above).sum(1)
        return (apart(model.decoder(code), batch[0]) + weight * divergence).mean()

    return learn(
        root,
        TwoLevels,
        dealt((waves(),), 64),
        objective,
        optimizer=adam(4e-3),
        steps=240,
        clip=30.0,
    )
