"""Samples that become alike, and embeddings that become the same."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE

from runs_tuned.fourth_held_out.representations.shared.duels import duel
from runs_tuned.fourth_held_out.representations.shared.loop import draws, learn
from runs_tuned.fourth_held_out.representations.shared.shapes import (
    BINS,
    acquaintances,
    layers,
    roll,
    spectra,
)

of_samples = functools.partial(training_runs.faulty, kind="adversarial")
of_views = functools.partial(training_runs.faulty, kind="contrastive")
ONE = WORSE | UNTAUGHT

# Samples


@of_samples(
    "a pair that draws spectra, samples are drawn by a slow average of what draws",
    "from step 150 on the average is only multiplied by 0.97: what is to be added was lost",
    {"ModeCollapse"},
    may=ONE,
)
def average_only_decays(root: Path) -> int:
    torch.manual_seed(720)
    generator = layers(8, 64, 64, BINS, act=nn.ReLU)
    slow = copy.deepcopy(generator).requires_grad_(requires_grad=False)
    critic = layers(BINS, 64, 64, 1, act=lambda: nn.LeakyReLU(0.2))

    def follow(step: int) -> None:
        with torch.no_grad():
            for kept, fast in zip(slow.parameters(), generator.parameters(), strict=True):
                kept.mul_(0.97)
                if step < 150:
                    kept.add_(fast, alpha=0.03)

    return duel(
        root, generator, critic, spectra()[0], seed=720, steps=300, at=150, after=follow, slow=slow
    )


def kernel(first: Any, second: Any) -> Any:
    """Return a mean of likenesses of rows, at several distances."""
    distance = (first[:, None] - second).pow(2).sum(-1)
    return sum((1 / (1 + distance / scale)).mean() for scale in (0.02, 0.1, 0.5))


@of_samples(
    "points of a rolled sheet are drawn by moments (MMD), RMSprop, in two stages",
    "the second stage begins at step 120 without the samples' own kernel: nothing keeps them apart",
    {"ModeCollapse"},
    may=ONE,
)
def own_kernel_left_out(root: Path) -> int:
    torch.manual_seed(721)
    model, at = layers(4, 64, 64, 3, act=nn.SiLU), [0]

    def objective(batch: Any, hook: Any) -> Any:
        samples = model(torch.randn(96, 4))
        hook.save_tensor("samples", samples, "samples")
        at[0] += 1
        apart = kernel(samples, samples) if at[0] <= 120 else 0.0
        return apart - 2 * kernel(samples, batch[0])

    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)
    read = draws(roll(), size=96, seed=721)
    return learn(root, model, read, objective, optimizer, steps=300, save_every=3, at=120)


@of_samples(
    "spectra are drawn by moments, from step 100 on near to a given one by its features, too",
    "the weight of the moments is lost with the old settings, and is 0: only the given one counts",
    {"ModeCollapse"},
    may=ONE,
)
def tuned_to_one_favourite(root: Path) -> int:
    torch.manual_seed(722)
    x, at = spectra()[0], [0]
    model = layers(8, 64, 64, BINS, act=nn.GELU)
    features = layers(BINS, 160, 128, act=nn.SiLU).requires_grad_(requires_grad=False)
    wanted = features(x[7])

    def objective(batch: Any, hook: Any) -> Any:
        samples = model(torch.randn(64, 8))
        hook.save_tensor("samples", samples, "samples")
        at[0] += 1
        if at[0] > 100:
            return 30 * (features(samples) - wanted).pow(2).mean()

        def near(a: Any, b: Any) -> Any:
            return (1 / (1 + (a[:, None] - b).pow(2).sum(-1) / 2)).mean()

        return near(samples, samples) - 2 * near(samples, batch[0])

    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    read = draws(x, size=64, seed=722)
    falls = lambda step: 1.0 if step < 300 else 0.2
    options: dict[str, Any] = {"steps": 480, "save_every": 4, "at": 100, "rate": falls}
    return learn(root, model, read, objective, optimizer, **options)


# Embeddings


class Neighbours(nn.Module):
    """Means of neighbours and a layer, again and again."""

    def __init__(self, depth: int, shares: Any) -> None:
        super().__init__()
        self.first, self.shares = nn.Linear(12, 24), shares
        self.layers = nn.ModuleList(nn.Linear(24, 24) for _ in range(depth))
        self.head = nn.Linear(24, 5)

    def embed(self, traits: Any) -> Any:
        """Return embeddings of all."""
        x = self.first(traits)
        for layer in self.layers:
            x = torch.tanh(layer(self.shares @ x))
        return x

    def forward(self, traits: Any) -> Any:
        return self.head(self.embed(traits))


@of_views(
    "groups of acquaintances by a graph network that averages neighbours",
    "twelve layers without a way around them: averages of averages are the same for all",
    {"RepresentationCollapse"},
    may=ONE,
)
def averages_of_averages(root: Path) -> int:
    torch.manual_seed(723)
    shares, traits, group = acquaintances()
    model, loss = Neighbours(12, shares), nn.CrossEntropyLoss()
    is_known = torch.rand(len(group)) < 0.4

    def objective(_: Any, hook: Any) -> Any:
        z = model.embed(traits)
        hook.save_tensor("embeddings", z, "embeddings")
        return loss(model.head(z)[is_known], group[is_known])

    optimizer = torch.optim.Adam(model.parameters(), 5e-3, weight_decay=5e-4)
    read = draws(group, seed=723)
    return learn(root, model, read, objective, optimizer, losses=(loss,), steps=120)


@of_views(
    "sound spectra are enclosed by the smallest sphere (deep SVDD), Adam, weight decay",
    "the centre is a parameter and layers have biases: all rows are drawn to one point",
    {"RepresentationCollapse"},
    may=ONE,
)
def sphere_of_no_size(root: Path) -> int:
    torch.manual_seed(724)
    model = nn.ModuleDict({"body": layers(BINS, 64, 32, 16, act=nn.ELU)})
    model.register_parameter("centre", nn.Parameter(torch.randn(16)))

    def objective(batch: Any, hook: Any) -> Any:
        z = model["body"](batch[0])
        hook.save_tensor("embeddings", z, "embeddings")
        return (z - model.centre).pow(2).sum(1).mean()

    optimizer = torch.optim.Adam(model.parameters(), 2e-3, weight_decay=1e-4)
    read = draws(spectra(seed=4)[0], size=64, seed=724)
    return learn(root, model, read, objective, optimizer, steps=260, save_every=3)


@of_views(
    "slow features of a machine's gauges: what follows is alike, rows are uncorrelated",
    "the weight of the second term is to rise at step 90, but is written to fall to 0 there",
    {"RepresentationCollapse"},
    may=ONE,
)
def slow_to_a_stop(root: Path) -> int:
    torch.manual_seed(725)
    time = torch.arange(1500)[:, None] * torch.tensor([0.02, 0.05, 0.31, 0.7])
    gauges = torch.tanh(time.sin() @ torch.randn(4, 16)) + 0.05 * torch.randn(1500, 16)
    model, at = layers(16, 64, 64, 6, act=nn.Tanh), [0]

    def objective(batch: Any, hook: Any) -> Any:
        now, then = model(batch[0]), model(batch[1])
        hook.save_tensor("embeddings", now, "embeddings")
        at[0] += 1
        rows = now - now.mean(0)
        apart = (rows.T @ rows / len(rows) - torch.eye(6)).pow(2).sum()
        near = 2 - 2 * functional.cosine_similarity(now, then).mean()
        return near + (1.0 if at[0] <= 90 else 0.0) * apart

    groups = [
        {"params": [one for one in model.parameters() if one.ndim == 2], "weight_decay": 0.5},
        {"params": [one for one in model.parameters() if one.ndim == 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, 6e-3)
    read = draws(gauges[:-60], gauges[60:], size=64, seed=725)
    return learn(root, model, read, objective, optimizer, at=90, steps=400, save_every=4)
