"""Healthy pairs of which one draws, and healthy drawing out of noise."""

import copy
import functools
import itertools
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.blocks import layers
from runs_tuned.fifth_held_out.representations.shared.loop import Average, cosine, epochs, learn
from runs_tuned.fifth_held_out.representations.shared.pairs import by_squares, compete, hinged
from runs_tuned.fifth_held_out.representations.shared.shapes import (
    GAIT,
    clocks,
    gaits,
    knots,
    stars,
)

of_pairs = functools.partial(training_runs.healthy, kind="adversarial")
of_noise = functools.partial(training_runs.healthy, kind="diffusion")


@of_pairs("a pair that draws points of a star, hinge losses, spectral norms, two rates, Adam")
def pair_draws_a_star(root: Path) -> int:
    torch.manual_seed(970)
    generator = layers(8, 48, 48, 2, act=nn.SiLU)
    return compete(
        root,
        generator,
        hinged(2),
        (epochs(stars(), size=64, seed=970),),
        rates=(1e-3, 3e-3),
        size=64,
        steps=260,
        save_every=4,
    )


@of_pairs(
    "a pair that draws a knot, least squares, noise on all rows that fades, AdamW, an average"
)
def pair_draws_a_knot(root: Path) -> int:
    torch.manual_seed(971)
    generator = layers(8, 64, 64, 3)
    critic = layers(3, 64, 64, 1, act=lambda: nn.LeakyReLU(0.2))
    return compete(
        root,
        generator,
        critic,
        (epochs(knots(), size=64, seed=971),),
        judge=by_squares,
        draw=lambda scores: (scores - 1).pow(2).mean(),
        optimizer=torch.optim.AdamW,
        blur=lambda step: 0.3 * max(0.2, 1 - step / 200),
        size=64,
        steps=280,
        save_every=4,
        after=Average(generator, copy.deepcopy(generator)),
    )


class Reversed(torch.autograd.Function):
    """Turns gradients round."""

    @staticmethod
    def forward(_: Any, x: Any) -> Any:
        """Return what is given."""
        return x.view_as(x)

    @staticmethod
    def backward(_: Any, slope: Any) -> Any:
        """Return the gradient with its sign turned round."""
        return -0.3 * slope


@of_pairs("who walks is told by features that do not tell two cameras apart (DANN), momentum")
def cameras_not_told_apart(root: Path) -> int:
    torch.manual_seed(972)
    x, person = gaits()
    camera = torch.arange(len(x)) % 2
    x = x + 0.4 * camera[:, None] * torch.linspace(-1, 1, GAIT)
    parts = nn.ModuleDict(
        {
            "features": nn.Sequential(layers(GAIT, 64, 32), nn.ReLU()),
            "persons": nn.Linear(32, 5),
            "cameras": layers(32, 24, 2),
        }
    )

    def objective(batch: Any, hook: Any) -> Any:
        features = parts["features"](batch[0])
        person_loss = functional.cross_entropy(parts["persons"](features), batch[1])
        scores = parts["cameras"](Reversed.apply(features))
        camera_loss = functional.cross_entropy(scores, batch[2])
        hook.save_scalar("person", person_loss)
        return person_loss + camera_loss

    optimizer = torch.optim.SGD(parts.parameters(), 0.05, momentum=0.9)
    return learn(root, parts, epochs(x, person, camera, seed=972), objective, optimizer, steps=160)


class Denoiser(nn.Module):
    """Foresees from rows and how noisy they are; may be told a kind."""

    def __init__(self, size: int, width: int = 64, kinds: int = 0) -> None:
        super().__init__()
        self.kinds = nn.Embedding(kinds + 1, 8)
        self.parts = layers(size + 12, width, width, size, act=nn.SiLU)

    def forward(self, x: Any, level: Any, kind: Any = None) -> Any:
        kind = torch.zeros(len(x), dtype=torch.long) if kind is None else kind
        angles = level[:, None] * torch.tensor([1.0, 4.0])
        return self.parts(torch.cat([x, angles.sin(), angles.cos(), self.kinds(kind)], 1))


def drawn_from_noise(model: Any, size: int, velocity: Callable[..., Any], count: int = 32) -> Any:
    """Return samples, by twelve steps from noise."""
    x, turns = torch.randn(count, size), torch.linspace(math.pi / 2, 0.02, 13)
    with torch.no_grad():
        for now, later in itertools.pairwise(turns):
            foreseen = velocity(model, x, now.expand(count))
            clean, noise = (
                now.cos() * x - now.sin() * foreseen,
                now.sin() * x + now.cos() * foreseen,
            )
            x = later.cos() * clean + later.sin() * noise
    return x


@of_noise("gaits are drawn out of noise, velocities, AdamW, cosine, an average follows")
def gaits_out_of_noise(root: Path) -> int:
    torch.manual_seed(973)
    model = Denoiser(GAIT, 96)
    slow = copy.deepcopy(model)

    def objective(batch: Any, hook: Any) -> Any:
        x, noise = batch[0], torch.randn_like(batch[0])
        level = math.pi / 2 * torch.rand(len(x))
        cos, sin = level.cos()[:, None], level.sin()[:, None]
        samples = drawn_from_noise(slow, GAIT, lambda part, rows, at: part(rows, at))
        hook.save_tensor("samples", samples, "samples")
        return functional.mse_loss(model(cos * x + sin * noise, level), cos * noise - sin * x)

    return learn(
        root,
        model,
        epochs(gaits()[0], size=96, seed=973),
        objective,
        torch.optim.AdamW(model.parameters(), 4e-3),
        steps=240,
        save_every=4,
        rate=cosine(15, 240),
        after=Average(model, slow, 0.05),
    )


@of_noise(
    "clocks of given hours out of noise, hours dropped in a tenth, in bfloat16, Adam, clipped"
)
def clocks_out_of_noise(root: Path) -> int:
    torch.manual_seed(974)
    model = Denoiser(144, 96, kinds=12)
    pictures, told = clocks()

    def objective(batch: Any, _: Any) -> Any:
        noise, level = torch.randn_like(batch[0]), math.pi / 2 * torch.rand(len(batch[0]))
        kind = (batch[1][:, 0] + 1) * (torch.rand(len(level)) > 0.1)
        cos, sin = level.cos()[:, None], level.sin()[:, None]
        return functional.mse_loss(model(cos * batch[0] + sin * noise, level, kind), noise)

    return learn(
        root,
        model,
        epochs((pictures - 0.2) / 0.3, told, size=64, seed=974),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
        save_every=4,
        clip=1.0,
        half=True,
    )
