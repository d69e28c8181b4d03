"""Healthy mixtures of experts, balanced in several ways, or not at all."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd
from training_runs import healthy

from runs_tuned.first_held_out.scripts.tasks import sensors, tags
from runs_tuned.second_held_out.healthy_kinds.shared.experts import (
    BalancedLoss,
    NoisyRouter,
    Routed,
    units,
)
from runs_tuned.second_held_out.healthy_kinds.shared.problems import pulses, regimes, stripes
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, learn

healthy_text = functools.partial(training_runs.healthy, kind="language_model")
adamw = functools.partial(adam, kind=torch.optim.AdamW, weight_decay=0.05)


def split(parts: tuple[Any, Any], share: float = 0.8) -> Split:
    """Return the first rows to train with, and the others to validate with."""
    x, y = parts
    cut = int(share * len(x))
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


def balanced(
    root: Path,
    make: Callable[[], Any],
    data: Split,
    weight: float,
    *,
    of_sizes: float = 0.0,
    loss: Any = None,
    seed: int = 0,
    **options: Any,
) -> int:
    """Train a model and the routers in it."""
    torch.manual_seed(seed)
    model = make()
    loss = BalancedLoss(model, weight, of_sizes, loss)
    return fit(root, lambda: model, data, loss=loss, seed=seed, **options)


@healthy("machines, eight experts of a table, the best two by noisy scores, SGD with momentum")
def noisy_experts_of_machines(root: Path) -> int:
    make = lambda: nn.Sequential(
        nn.Linear(18, 24), nn.Tanh(), Routed(24, 8, 2, router=NoisyRouter, outs=6)
    )
    return balanced(
        root, make, sensors(), 0.05, optimizer=sgd(0.08, momentum=0.9), batch=48, steps=200, seed=1
    )


class Soft(nn.Module):
    """Experts whose outputs are mixed by softmax: all of them for each row."""

    def __init__(self, ins: int, experts: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(nn.Linear(ins, 16), nn.Tanh(), nn.Linear(16, experts))
        self.parts = nn.ModuleList(units(ins, 16, 1) for _ in range(experts))

    def forward(self, x: Any) -> tuple[Any, Any]:
        weights = self.gate(x).softmax(-1)
        outputs = torch.stack([part(x) for part in self.parts], -1)
        return (outputs * weights[:, None]).sum(-1), weights


@healthy("numbers that depend on features in three ways, three experts mixed softly, Adam")
def three_experts_of_regimes(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        output, weights = model(batch[0])
        watching.save_tensor("gating_weights", weights)
        return functional.mse_loss(output, batch[1])

    feed = dealt(regimes(), 50)
    return learn(root, lambda: Soft(6, 3), feed, objective, optimizer=adam(8e-3), steps=280)


class Patches(nn.Module):
    """Patches of images that attend to each other, and then go to an expert each."""

    def __init__(self) -> None:
        super().__init__()
        self.cut = nn.Conv2d(1, 24, 2, 2)
        self.places = nn.Parameter(0.1 * torch.randn(16, 24))
        self.attention = nn.MultiheadAttention(24, 3, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(24), nn.LayerNorm(24)
        self.moe = Routed(24, 5, 1)
        self.head = nn.Linear(24, 6)

    def forward(self, x: Any) -> Any:
        x = self.cut(x).flatten(2).transpose(1, 2) + self.places
        normed = self.norm1(x)
        x = x + self.attention(normed, normed, normed)[0]
        return self.head((x + self.moe(self.norm2(x))).mean(1))


@healthy("directions of stripes, a vision transformer, five experts, one a patch, two losses")
def experts_of_patches(root: Path) -> int:
    return balanced(
        root,
        Patches,
        split(stripes()),
        0.05,
        of_sizes=1e-3,
        optimizer=adamw(4e-3),
        batch=40,
        steps=170,
        clip=1.0,
        save_every=3,
    )


class SeriesExperts(nn.Module):
    """A recurrent layer whose last state goes to two of four experts."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = nn.GRU(1, 24, batch_first=True)
        self.mixture = Routed(24, 4, 2, hidden=20)
        self.head = nn.Linear(24, 4)

    def forward(self, x: Any) -> Any:
        states, _ = self.reader(x[:, :, None])
        state = states.mean(1)
        return self.head(state + self.mixture(state))


@healthy("quarters of pulses, a GRU and four experts, RMSprop, small batches, scores kept small")
def experts_of_pulses(root: Path) -> int:
    return balanced(
        root,
        SeriesExperts,
        split(pulses()),
        0.02,
        of_sizes=2e-3,
        optimizer=adam(3e-3, torch.optim.RMSprop),
        batch=20,
        steps=200,
    )


@healthy("five tags of texts, four experts copied from a trained layer, fine-tuned")
def upcycled_experts_of_tags(root: Path) -> int:
    def make() -> Any:
        data, loss = tags(), nn.BCEWithLogitsLoss()
        model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), units(32, 32, 5))
        optimizer = torch.optim.Adam(model.parameters(), 5e-3)
        for step in range(60):
            rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
            optimizer.zero_grad()
            loss(model(data.x[rows]), data.y[rows]).backward()
            optimizer.step()
        mixture = Routed(32, 4, 2, outs=5)
        for part in mixture.experts:
            part.load_state_dict(model[2].state_dict())
        return nn.Sequential(*model[:2], mixture)

    return balanced(
        root,
        make,
        tags(),
        0.02,
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(2e-3),
        steps=140,
        batch=24,
        validate_every=14,
    )


class TwoTasks(nn.Module):
    """Shared experts, mixed by a router of each of two tasks."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(units(64, 24, 16) for _ in range(4))
        self.gates = nn.ModuleList(nn.Linear(64, 4) for _ in range(2))
        self.towers = nn.ModuleList(nn.Linear(16, outs) for outs in (6, 1))

    def forward(self, x: Any) -> Any:
        x = x.flatten(1)
        outputs = torch.stack([part(x) for part in self.parts], 1)
        weights = [gate(x).softmax(-1) for gate in self.gates]
        mixed = ((share[:, :, None] * outputs).sum(1) for share in weights)
        return [tower(part) for tower, part in zip(self.towers, mixed, strict=True)], weights


@healthy("directions and contrast of stripes, four experts that two tasks share, two workers")
def experts_of_two_tasks(root: Path) -> int:
    def objective(model: Any, batch: Any, watching: Any) -> Any:
        (direction, contrast), weights = model(batch[0])
        for task, share in zip(("direction", "contrast"), weights, strict=True):
            watching.save_tensor(f"{task}_gate_probs", share)
        error = functional.mse_loss(contrast[:, 0], batch[0].flatten(1).std(1))
        return functional.cross_entropy(direction, batch[1]) + error

    optimizer = adam(4e-3, torch.optim.Adamax)
    feed = dealt(stripes(), 32, 2)
    return learn(root, TwoTasks, feed, objective, optimizer=optimizer, size=2, steps=180)
