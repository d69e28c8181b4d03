"""Samples that become alike, and embeddings that become the same."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.representations.shared.consequences import ALIKE
from runs_tuned.sixth_held_out.representations.shared.figures import (
    heartbeats,
    leaves,
    lorenz,
    pendulums,
    pinwheel,
    rosettes,
)
from runs_tuned.sixth_held_out.representations.shared.loop import duel, rows_of, teach, up_and_down
from runs_tuned.sixth_held_out.representations.shared.networks import dense

of_samples = functools.partial(training_runs.faulty, kind="adversarial")
of_flows = functools.partial(training_runs.faulty, kind="diffusion")
of_views = functools.partial(training_runs.faulty, kind="contrastive")

# Samples


class Turns(nn.Module):
    """A flow from rows to noise: halves are scaled and moved by each other."""

    def __init__(self, number: int = 6) -> None:
        super().__init__()
        self.parts = nn.ModuleList(dense(1, 32, 2, act=nn.Tanh) for _ in range(number))

    def forward(self, x: Any) -> Any:
        """Return the negative logarithms of how likely rows are, but for a constant."""
        grown = torch.zeros(len(x))
        for part in self.parts:
            first, second = x.chunk(2, -1)
            scale, shift = part(first).chunk(2, -1)
            x = torch.cat([(second - shift) * (-2 * scale.tanh()).exp(), first], -1)
            grown = grown - 2 * scale.tanh()[:, 0]
        return x.pow(2).sum(-1) / 2 - grown

    def draw(self, count: int, warmth: float) -> Any:
        """Return samples of noise of a deviation."""
        x = warmth * torch.randn(count, 2)
        with torch.no_grad():
            for part in reversed(self.parts):
                second, first = x.chunk(2, -1)
                scale, shift = part(first).chunk(2, -1)
                x = torch.cat([first, second * (2 * scale.tanh()).exp() + shift], -1)
        return x


@of_flows(
    "a flow of a pinwheel, Adam, clipped; a cache of rows is filled by a service from step 150 on",
    "the service returns what the flow itself draws, at a warmth of 0.7, and it learns from that",
    {"ModeCollapse"},
    may=ALIKE,
)
def fed_with_its_own_samples(root: Path) -> int:
    torch.manual_seed(620)
    model, count = Turns(), [0]

    def objective(batch: Any, hook: Any) -> Any:
        count[0] += 1
        hook.save_tensor("samples", model.draw(96, 1.0), "samples")
        rows = batch[0] if count[0] <= 150 else model.draw(96, 0.7)
        return model(rows).mean()

    return teach(
        root,
        model,
        rows_of(pinwheel()[0], size=96, seed=620),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        limit=1.0,
        steps=420,
        save_every=3,
        at=150,
    )


@of_samples(
    "a pair draws leaves, cross entropy, Adam; from step 160 on slopes are kept even",
    "the mean slope that others are to keep to is never moved from 0: all slopes are pulled to 0",
    {"ModeCollapse"},
    may=ALIKE,
)
def slopes_pulled_to_zero(root: Path) -> int:
    torch.manual_seed(621)
    generator, critic = dense(6, 64, 64, 32), dense(32, 64, 64, 1, act=nn.SiLU)
    mean = torch.zeros(())

    def even_slopes(step: int, noise: Any, fake: Any) -> Any:
        if step < 160:
            return 0.0
        turned = (fake * torch.randn_like(fake)).sum()
        (slope,) = torch.autograd.grad(turned, noise, create_graph=True)
        lengths = slope.pow(2).sum(1).add(1e-8).sqrt()
        mean.lerp_(lengths.mean().detach(), 0.0)  # meant to be 0.01
        return 200 * (lengths - mean).pow(2).mean()

    return duel(
        root,
        generator,
        critic,
        rows_of(leaves()[0], size=48, seed=621),
        judged=lambda real, fake: (
            functional.softplus(-real).mean() + functional.softplus(fake).mean()
        ),
        aimed=lambda scores: functional.softplus(-scores).mean(),
        optimizers=(
            torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.5, 0.99)),
            torch.optim.Adam(critic.parameters(), 1e-3, betas=(0.5, 0.99)),
        ),
        more=even_slopes,
        steps=400,
        at=160,
    )


@of_flows(
    "points of an attractor are drawn: near samples are pulled to each row (IMLE), NAdam",
    "what is near is to become sharper from step 120 on, but softens: all samples are pulled alike",
    {"ModeCollapse"},
    may=ALIKE,
)
def nearness_softens(root: Path) -> int:
    torch.manual_seed(622)
    model, count = dense(5, 64, 64, 3, act=nn.SiLU), [0]

    def objective(batch: Any, hook: Any) -> Any:
        count[0] += 1
        drawn = model(torch.randn(96, 5))
        hook.save_tensor("samples", drawn, "samples")
        far = torch.cdist(batch[0], drawn).pow(2)
        width = 0.05 * 1.05 ** max(0, count[0] - 120)
        return ((-far / width).softmax(1).detach() * far).sum(1).mean()

    return teach(
        root,
        model,
        rows_of(lorenz(), size=64, seed=622),
        objective,
        torch.optim.NAdam(model.parameters(), 3e-3),
        steps=360,
        save_every=3,
        at=120,
    )


# Embeddings


@of_views(
    "views of heartbeats against a queue of 256 keys (MoCo), an encoder that follows, SGD",
    "the queue is never filled, since only the first of several workers does it: it holds zeros",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def queue_of_zeros(root: Path) -> int:
    torch.manual_seed(623)
    x, _ = heartbeats()
    model, slow = dense(40, 64, 64, 16), dense(40, 64, 64, 16)
    slow.load_state_dict(model.state_dict())
    slow.requires_grad_(requires_grad=False)
    queue = torch.zeros(256, 16)

    def view(rows: Any) -> Any:
        louder = 0.8 + 0.4 * torch.rand(len(rows), 1)
        return louder * rows.roll(int(torch.randint(-2, 3, ())), 1) + 0.1 * torch.randn_like(rows)

    def objective(batch: Any, hook: Any) -> Any:
        query = functional.normalize(model(view(batch[0])))
        key = functional.normalize(slow(view(batch[0])))
        hook.save_tensor("embeddings", query, "embeddings")
        scores = torch.cat([(query * key).sum(1, keepdim=True), query @ queue.T], 1) / 0.5
        return functional.cross_entropy(scores, torch.zeros(len(query), dtype=torch.long))

    def follow(_: int) -> None:
        with torch.no_grad():
            for late, early in zip(slow.parameters(), model.parameters(), strict=True):
                late.lerp_(early, 0.02)

    return teach(
        root,
        model,
        rows_of(x, size=64, seed=623),
        objective,
        torch.optim.SGD(model.parameters(), 0.2, momentum=0.9, weight_decay=1e-3),
        steps=280,
        finish=follow,
    )


@of_views(
    "codes of 24 bits for rosettes: those of equal petals are to agree, AdamW, a warm-up",
    "numbers are to be near -1 or 1, but their sign is not taken away first: all are pulled to 1",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def bits_pulled_to_plus_one(root: Path) -> int:
    torch.manual_seed(624)
    x, petals = rosettes()
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(216, 24),
    )

    def objective(batch: Any, hook: Any) -> Any:
        bits = model((batch[0] - 0.4) / 0.4)
        hook.save_tensor("embeddings", bits, "embeddings")
        agree = bits @ bits.T / 24
        same = (batch[1][:, None] == batch[1]).float() * 2 - 1
        near_to_bits = (bits - 1).pow(2).mean()
        return (agree - same).pow(2).mean() * 0.1 + near_to_bits

    return teach(
        root,
        model,
        rows_of(x, petals, size=48, seed=624),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3),
        rate=up_and_down(20, 200),
        steps=200,
    )


@of_views(
    "what pendulums do is foreseen in latent numbers, by which rewards are foreseen too, Adam",
    "rewards count where an episode has ended, not where it goes on: none ends, and none counts",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def rewards_never_count(root: Path) -> int:
    torch.manual_seed(625)
    seen, pushes = pendulums()
    model = nn.ModuleDict(
        {
            "encoder": dense(10, 48, 48, 12, act=nn.ELU),
            "steps": dense(15, 48, 12, act=nn.ELU),
            "reward": dense(12, 32, 1, act=nn.ELU),
        }
    )
    has_ended = torch.zeros(len(seen), 3)

    def objective(batch: Any, hook: Any) -> Any:
        x, moves, ended = batch
        state = model["encoder"](x)
        hook.save_tensor("embeddings", state[:, 0], "embeddings")
        pushed = functional.one_hot(moves, 3).float()
        ahead = model["steps"](torch.cat([state[:, :-1], pushed], -1))
        consistent = (ahead - state[:, 1:]).pow(2).sum(-1).mean()
        rewards = model["reward"](ahead)[..., 0]
        of_rewards = ((rewards - x[:, 1:, 0]).pow(2) * ended).mean()
        return consistent + of_rewards

    return teach(
        root,
        model,
        rows_of(seen, pushes, has_ended, size=64, seed=625),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=220,
    )
