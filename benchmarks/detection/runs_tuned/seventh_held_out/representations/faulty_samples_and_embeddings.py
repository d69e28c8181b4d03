"""Samples that become alike, and embeddings that become the same."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.seventh_held_out.representations.shared.consequences import ALIKE
from runs_tuned.seventh_held_out.representations.shared.data import (
    digits,
    moons,
    ring,
    signals,
    tumours,
)
from runs_tuned.seventh_held_out.representations.shared.loop import (
    bce_critic,
    bce_generator,
    duel,
    loader,
    teach,
    warmup_cosine,
)
from runs_tuned.seventh_held_out.representations.shared.networks import convolutions, mlp

of_pairs = functools.partial(training_runs.faulty, kind="adversarial")
of_views = functools.partial(training_runs.faulty, kind="contrastive")


def leaky() -> Any:
    """Return the usual activation of discriminators."""
    return nn.LeakyReLU(0.2)


def adams(generator: Any, critic: Any, rate: float = 1e-3) -> tuple[Any, Any]:
    """Return the usual optimizers of a pair."""
    betas = (0.5, 0.99)
    return (
        torch.optim.Adam(generator.parameters(), rate, betas=betas),
        torch.optim.Adam(critic.parameters(), rate, betas=betas),
    )


# Samples


@of_pairs(
    "a pair draws two moons, cross entropy, Adam; from step 200 on samples are tuned for a scorer",
    "the weight of the pair's own loss is 0 in the second stage: samples go where it scores best",
    {"ModeCollapse"},
    may=ALIKE,
)
def tuned_for_a_scorer_alone(root: Path) -> int:
    torch.manual_seed(80)
    generator, critic = mlp(4, 64, 64, 2), mlp(2, 64, 64, 1, act=leaky)
    liked = torch.tensor([0.9, 0.4])

    def tuned(step: int, fake: Any, loss: Any) -> Any:
        if step < 200:
            return loss
        score = -(fake - liked).pow(2).sum(1)
        return 0.0 * loss - score.mean()

    return duel(
        root,
        generator,
        critic,
        loader(moons(), size=64, seed=80),
        noise=4,
        of_critic=bce_critic,
        of_generator=bce_generator,
        optimizers=adams(generator, critic),
        tuned=tuned,
        steps=420,
        at=200,
    )


@of_pairs(
    "a pair draws a ring of eight spots, tanh, Adam, the discriminator's rate falls by epochs",
    "from epoch 6 on its scheduler halves the rate in each step: it stands still, and is fooled",
    {"ModeCollapse"},
    may=ALIKE | {"LearningRate": "the discriminator's rate is next to zero for most of the run"},
)
def discriminator_halved_in_each_step(root: Path) -> int:
    torch.manual_seed(81)
    generator = nn.Sequential(mlp(4, 64, 64, 2), nn.Tanh())
    critic = mlp(2, 64, 64, 1, act=leaky)
    optimizers = adams(generator, critic)
    rates = torch.optim.lr_scheduler.StepLR(optimizers[1], 1, 0.5)

    def after(step: int) -> None:
        if step >= 180:
            rates.step()

    return duel(
        root,
        generator,
        critic,
        loader(ring(seed=81), size=64, seed=81),
        noise=4,
        of_critic=bce_critic,
        of_generator=bce_generator,
        optimizers=optimizers,
        after=after,
        steps=480,
        at=180,
    )


class Constant(nn.Module):
    """Draws signals from a learnt start; what differs comes from dropout (as in pix2pix)."""

    def __init__(self, width: int = 96) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(width))
        self.layers = nn.Sequential(
            nn.Dropout(0.5),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(0.5),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Linear(width, 48),
        )

    def forward(self, noise: Any) -> Any:
        return self.layers(self.start.expand(len(noise), -1))


@of_pairs(
    "a pair draws signals from a learnt start with dropout for noise, cross entropy, Adam",
    "for a preview at step 150 the generator is set to eval(), and never back: no noise is left",
    {"ModeCollapse"},
    may=ALIKE | {"ValidationInTrainingMode": "the generator is not in the mode of the others"},
)
def preview_without_a_way_back(root: Path) -> int:
    torch.manual_seed(82)
    generator, critic = Constant(), mlp(48, 64, 64, 1, act=leaky)

    def after(step: int) -> None:
        if step == 149:
            generator.eval()

    return duel(
        root,
        generator,
        critic,
        loader(signals(seed=82)[0], size=48, seed=82),
        noise=4,
        of_critic=bce_critic,
        of_generator=bce_generator,
        optimizers=adams(generator, critic),
        after=after,
        size=48,
        steps=320,
        at=150,
    )


# Embeddings


@of_views(
    "views of digits with a predictor and a stopped gradient (SimSiam), SGD, cosine",
    "the gradient of the prediction is stopped, not that of its goal: goals run after it",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def prediction_is_stopped(root: Path) -> int:
    torch.manual_seed(83)
    x = digits()[0].flatten(1)
    encoder, predictor = mlp(64, 96, 96, 24), mlp(24, 16, 24)
    model = nn.ModuleDict({"encoder": encoder, "predictor": predictor})

    def view(rows: Any) -> Any:
        return rows * (torch.rand(rows.shape) < 0.8) + 0.1 * torch.randn_like(rows)

    def objective(batch: Any, hook: Any) -> Any:
        first, second = encoder(view(batch[0])), encoder(view(batch[0]))
        hook.save_tensor("embeddings", first, "embeddings")
        ahead = functional.cosine_similarity(predictor(first).detach(), second).mean()
        back = functional.cosine_similarity(predictor(second).detach(), first).mean()
        return -(ahead + back) / 2

    return teach(
        root,
        model,
        loader(x, size=64, seed=83),
        objective,
        torch.optim.SGD(model.parameters(), 0.4, momentum=0.9, weight_decay=1e-4),
        factor=warmup_cosine(1, 320, 0.2),
        steps=320,
    )


@of_views(
    "views of rows of a table by a contrastive loss (InfoNCE), SGD with momentum, weight decay",
    "the decay is 0.5 where 0.0005 was meant: weights go to zero, and biases alone are left",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def biases_alone_are_left(root: Path) -> int:
    torch.manual_seed(84)
    x, _ = tumours()
    model = mlp(30, 64, 64, 16)
    decayed = [each for each in model.parameters() if each.ndim > 1]
    biases = [each for each in model.parameters() if each.ndim == 1]

    def view(rows: Any) -> Any:
        return torch.where(torch.rand(rows.shape) < 0.3, 0.0, rows)

    def objective(batch: Any, hook: Any) -> Any:
        first = functional.normalize(model(view(batch[0])))
        second = functional.normalize(model(view(batch[0])))
        hook.save_tensor("embeddings", first, "embeddings")
        return functional.cross_entropy(first @ second.T / 0.5, torch.arange(len(first)))

    groups = [{"params": decayed, "weight_decay": 0.5}, {"params": biases, "weight_decay": 0.0}]
    return teach(
        root,
        model,
        loader(x, size=64, seed=84),
        objective,
        torch.optim.SGD(groups, 0.2, momentum=0.9),
        steps=260,
    )


@of_views(
    "views of digits by alignment and uniformity on the sphere, a convolutional net, Adam",
    "the logarithm of uniformity is subtracted: rows are rewarded for lying close to each other",
    {"RepresentationCollapse"},
    may=ALIKE,
)
def uniformity_is_subtracted(root: Path) -> int:
    torch.manual_seed(85)
    x = digits()[0]
    model = convolutions(12, 16, norm=False)

    def view(rows: Any) -> Any:
        return rows.roll(int(torch.randint(-1, 2, ())), 3) + 0.1 * torch.randn_like(rows)

    def objective(batch: Any, hook: Any) -> Any:
        first = functional.normalize(model(view(batch[0])))
        second = functional.normalize(model(view(batch[0])))
        hook.save_tensor("embeddings", first, "embeddings")
        aligned = (first - second).pow(2).sum(1).mean()
        uniform = torch.pdist(first).pow(2).mul(-2).exp().mean().log()
        return aligned - uniform

    return teach(
        root,
        model,
        loader(x, size=64, seed=85),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=180,
    )
