"""Densities of points: flows, scores and energies."""

import functools
import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
import training_runs
from sklearn.datasets import make_circles, make_moons, make_swiss_roll
from torch import nn
from training.torch_loop import watched

from runs_tuned.first_held_out.beyond_supervised.consequences import TOO_LARGE
from runs_tuned.first_held_out.beyond_supervised.generative import rows

healthy = functools.partial(training_runs.healthy, kind="diffusion")
faulty = functools.partial(training_runs.faulty, kind="diffusion")


def points(values: Any) -> Any:
    """Return standardised rows."""
    values = torch.tensor(np.asarray(values), dtype=torch.float32)
    return (values - values.mean(0)) / values.std(0)


class Coupling(nn.Module):
    """Scales and shifts some columns by what the others say."""

    def __init__(self, mask: Any, width: int = 40) -> None:
        super().__init__()
        self.register_buffer("mask", mask)
        self.inner = nn.Sequential(nn.Linear(len(mask), width), nn.LeakyReLU())
        self.scale, self.shift = (nn.Linear(width, len(mask)) for _ in range(2))

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.inner(x * self.mask)
        scale = self.scale(hidden)
        scale = 2 * (scale / 2).tanh() * (1 - self.mask)
        return x * scale.exp() + self.shift(hidden) * (1 - self.mask), scale.sum(1)


class Flow(nn.Module):
    """Couplings in turns; it returns the logarithmic density of rows."""

    def __init__(self, features: int, couplings: int = 4) -> None:
        super().__init__()
        masks = (((torch.arange(features) + turn) % 2).float() for turn in range(couplings))
        self.couplings = nn.ModuleList(Coupling(mask) for mask in masks)

    def forward(self, x: Any) -> Any:
        total = torch.zeros(len(x))
        for coupling in self.couplings:
            x, scale = coupling(x)
            total = total + scale
        return total - 0.5 * (x.pow(2) + math.log(2 * math.pi)).sum(1)


def flow(root: Path, data: Any, *, optimizer: Any, clip: float, steps: int) -> int:
    """Train a flow by its likelihood, the rate restarted every 80 steps."""
    torch.manual_seed(31)
    model = Flow(data.shape[1])
    optimizer_ = optimizer(model.parameters())
    rates = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer_, 80, eta_min=1e-4)
    with watched(root, model) as watching:
        for x in itertools.islice(rows(data, 64, 32), steps):
            loss = -model(x).mean()
            watching.record_tensor_value("nll_loss", loss)
            optimizer_.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer_.step()
            rates.step()
    return 0


@healthy("a flow of two moons, gradients clipped, warm restarts", kind="autoencoder")
def flow_of_moons(root: Path) -> int:
    data = points(make_moons(1200, noise=0.07, random_state=0)[0])
    optimizer = functools.partial(torch.optim.AdamW, lr=8e-3, weight_decay=1e-4)
    return flow(root, data, optimizer=optimizer, clip=1.0, steps=240)


@healthy("scores of a noisy spiral by denoising, ten levels of noise, bfloat16 where deemed safe")
def scores_of_a_spiral(root: Path) -> int:
    torch.manual_seed(33)
    data = points(make_swiss_roll(1500, noise=0.3, random_state=0)[0][:, [0, 2]])
    levels = torch.logspace(0.3, -1.3, 10)
    model = nn.Sequential(
        *(nn.Linear(3, 64), nn.Mish(), nn.Linear(64, 64), nn.Mish(), nn.Linear(64, 2))
    )
    optimizer = torch.optim.NAdam(model.parameters(), 2e-3)
    with watched(root, model, save_every=4) as watching:
        for x in itertools.islice(rows(data, 128, 34), 400):
            level = levels[torch.randint(0, 10, (len(x), 1))]
            noise = torch.randn_like(x)
            with torch.autocast("cpu", torch.bfloat16):
                output = model(torch.cat([x + level * noise, level.log()], 1))
            loss = (output.float() + noise).pow(2).sum(1).mean()
            watching.record_tensor_value("score_matching_loss", loss)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return 0


def energies(root: Path, data: Any, *, pull: float, decay: float, rate: float, steps: int) -> int:
    """Train energies by contrastive divergence from walks that are kept.

    Parameters
    ----------
    pull, decay
        How far walks follow the slope of the energy; the weight of the energies' squares.
    """
    torch.manual_seed(35)
    model = nn.Sequential(
        *(nn.Linear(2, 48), nn.SiLU(), nn.Linear(48, 48), nn.SiLU(), nn.Linear(48, 1))
    )
    optimizer = torch.optim.Adam(model.parameters(), rate, betas=(0.0, 0.99))
    kept = torch.rand(512, 2) * 4 - 2
    with watched(root) as watching:
        watching.register_module(model, counts_steps=False)
        for x in itertools.islice(rows(data, 64, 36), steps):
            places = torch.randint(0, 512, (64,))
            walk = torch.where(torch.rand(64, 1) < 0.05, torch.rand(64, 2) * 4 - 2, kept[places])
            for _ in range(12):
                walk = walk.detach().requires_grad_()
                (slope,) = torch.autograd.grad(model(walk).sum(), walk)
                walk = walk - pull * slope + 0.1 * torch.randn_like(walk)
            kept[places] = walk = walk.detach()
            watching.begin_step()
            of_data, of_walks = model(x), model(walk)
            divergence = of_data.mean() - of_walks.mean()
            loss = divergence + decay * (of_data.pow(2) + of_walks.pow(2)).mean()
            with torch.no_grad():
                gap = model(torch.rand(64, 2) * 4 - 2).mean() - of_data.mean()
            watching.record_tensor_value("loss", loss)
            watching.save_scalar("contrastive_divergence", divergence)
            watching.save_scalar("energy_gap_to_noise", gap)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            watching.step()
    return 0


@healthy("energies of two circles by contrastive divergence: the loss is a difference, about zero")
def energies_of_circles(root: Path) -> int:
    data = points(make_circles(1200, noise=0.05, factor=0.5, random_state=0)[0])
    return energies(root, data, pull=0.005, decay=0.01, rate=3e-3, steps=240)


@faulty(
    "energies of a noisy spiral by contrastive divergence",
    "the walks' step is 1e-5: samples stay noise, and the difference of energies has no end",
    {"NormGrowth"},
    may=TOO_LARGE,
)
def walks_stand_still(root: Path) -> int:
    data = points(make_swiss_roll(1500, noise=0.3, random_state=0)[0][:, [0, 2]])
    return energies(root, data, pull=1e-5, decay=0.0, rate=5e-3, steps=200)
