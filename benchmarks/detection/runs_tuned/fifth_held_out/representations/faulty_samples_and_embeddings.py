"""Samples that become alike, and embeddings that become the same."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.blocks import layers
from runs_tuned.fifth_held_out.representations.shared.consequences import ALIKE, WORSE
from runs_tuned.fifth_held_out.representations.shared.loop import cosine, epochs, learn
from runs_tuned.fifth_held_out.representations.shared.pairs import compete, hinged
from runs_tuned.fifth_held_out.representations.shared.shapes import (
    GAIT,
    blood,
    clocks,
    gaits,
    knots,
)

of_samples = functools.partial(training_runs.faulty, kind="adversarial")
of_flows = functools.partial(training_runs.faulty, kind="diffusion")
of_views = functools.partial(training_runs.faulty, kind="contrastive")
SAME = ALIKE | WORSE

# Samples


class Couplings(nn.Module):
    """Moves points by scales and shifts, each half by the other one (RealNVP)."""

    def __init__(self, number: int = 6) -> None:
        super().__init__()
        self.steps = nn.ModuleList(layers(1, 32, 2, act=nn.Tanh) for _ in range(number))

    def forward(self, x: Any) -> tuple[Any, Any]:
        grown = torch.zeros(len(x))
        for step in self.steps:
            first, second = x.chunk(2, -1)
            scale, shift = step(first).chunk(2, -1)
            scale = 2 * (scale / 2).tanh()
            x = torch.cat([second * scale.exp() + shift, first], -1)
            grown = grown + scale[:, 0]
        return x, grown


@of_flows(
    "a flow is fitted to an energy like a banana, by its own samples, Adam, clipped",
    "at step 120 a faster version takes over, whose log-determinant is always 0",
    {"ModeCollapse"},
    may=SAME,
)
def determinant_of_nothing(root: Path) -> int:
    torch.manual_seed(930)
    model, count = Couplings(), [0]

    def objective(_: Any, hook: Any) -> Any:
        samples, grown = model(torch.randn(128, 2))
        hook.save_tensor("samples", samples, "samples")
        count[0] += 1
        x, y = samples.unbind(1)
        energy = x.pow(2) / 4 + (y - 0.5 * x.pow(2) + 1).pow(2) * 2
        return (energy - (grown if count[0] <= 120 else 0)).mean()

    read = epochs(torch.zeros(64, 1), seed=930)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    options: dict[str, Any] = {"steps": 330, "save_every": 3, "clip": 5.0, "at": 120}
    return learn(root, model, read, objective, optimizer, **options)


class Particles(nn.Module):
    """Weights of many logistic regressions."""

    def __init__(self, count: int, size: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.randn(count, size))

    def forward(self, x: Any, y: Any) -> Any:
        scores = x @ self.weights.T
        wanted = y[:, None].float().expand_as(scores)
        errors = functional.binary_cross_entropy_with_logits(scores, wanted, reduction="none")
        return 60 * errors.mean(0) + self.weights.pow(2).sum(1) / 2


@of_flows(
    "weights of logistic regressions of blood are moved apart and to likely ones (Stein), Adam",
    "at step 100 the kernel's width is read in other units, a millionth: none moves them apart",
    {"ModeCollapse"},
    may=SAME,
)
def kernel_of_no_width(root: Path) -> int:
    torch.manual_seed(931)
    x, y = blood()
    model, count = Particles(64, 6), [0]

    def objective(batch: Any, hook: Any) -> Any:
        energies = model(*batch)
        weights = model.weights
        hook.save_tensor("samples", weights, "samples")
        (slope,) = torch.autograd.grad(energies.sum(), weights)
        with torch.no_grad():
            between = weights[:, None] - weights
            far = between.pow(2).sum(-1)
            width = far.median() / 4.2 * (1.0 if count[0] < 100 else 1e-6)
            near = (-far / width).exp()
            away = 2 * (near[..., None] * between).sum(1) / width
            moved = (away - near @ slope) / len(weights)
        count[0] += 1
        pull = -(moved * weights).sum()
        return energies.mean().detach() + pull - pull.detach()

    return learn(
        root,
        model,
        epochs(x[:, ::5], y, size=len(x), seed=931),
        objective,
        torch.optim.Adam(model.parameters(), 0.04, betas=(0.9, 0.9)),
        steps=340,
        save_every=4,
        at=100,
    )


@of_samples(
    "a pair that draws a knot, hinge losses, spectral norms, two rates, goes on with a new folder",
    "from step 140 on the pattern of files matches a single one: all real rows are the same",
    {"ModeCollapse"},
    may=SAME,
)
def folder_of_a_single_file(root: Path) -> int:
    torch.manual_seed(932)
    x = knots()
    return compete(
        root,
        layers(8, 64, 64, 3, act=nn.SiLU),
        hinged(3),
        (epochs(x, seed=932), epochs(x[11:12].expand(64, -1))),
        at=160,
        steps=560,
        save_every=5,
        size=32,
        rates=(1e-3, 2e-3),
    )


# Embeddings


@of_views(
    "two views of gaits foresee each other's prototypes (SwAV), AdamW",
    "the number of rounds that even out the prototypes is read as 0: all take the same one",
    {"RepresentationCollapse"},
    may=SAME,
)
def no_round_evens_out(root: Path) -> int:
    torch.manual_seed(933)
    x, _ = gaits()
    model = nn.ModuleDict(
        {
            "encoder": layers(GAIT, 64, 64, 24, act=nn.ReLU),
            "prototypes": nn.Linear(24, 16, bias=False),
        }
    )

    def objective(batch: Any, hook: Any) -> Any:
        views = [
            batch[0] * (0.9 + 0.2 * torch.rand(len(batch[0]), 1))
            + 0.15 * torch.randn_like(batch[0])
            for _ in range(2)
        ]
        embedded = [functional.normalize(model["encoder"](view)) for view in views]
        hook.save_tensor("embeddings", embedded[0], "embeddings")
        scores = [
            row @ functional.normalize(model["prototypes"].weight).T / 0.5 for row in embedded
        ]
        aims = [(4 * score.detach()).softmax(1) for score in scores]
        first, second = (
            -(aim * score.log_softmax(1)).sum(1).mean()
            for aim, score in zip(aims, scores[::-1], strict=True)
        )
        return (first + second) / 2

    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    return learn(root, model, epochs(x, size=64, seed=933), objective, optimizer, steps=220)


@of_views(
    "patients and remedies by two towers, those that match are near, sampled others far, Adagrad",
    "the weight of others, their share, is multiplied twice: they hardly count",
    {"RepresentationCollapse"},
    may=SAME,
)
def others_hardly_count(root: Path) -> int:
    torch.manual_seed(934)
    x, _ = blood()
    towers = nn.ModuleDict(
        {"patients": layers(30, 48, 16, act=nn.ReLU), "remedies": layers(12, 48, 16, act=nn.ReLU)}
    )
    remedies = torch.randn(40, 12)
    matching = (x @ torch.randn(30, 12) @ remedies.T).topk(3, 1).indices

    def objective(batch: Any, hook: Any) -> Any:
        wanted = batch[1][:, 0]
        patients, goods = towers["patients"](batch[0]), towers["remedies"](remedies)
        hook.save_tensor("embeddings", patients, "embeddings")
        others = torch.randint(40, (len(wanted), 20))
        near = (patients - goods[wanted]).pow(2).sum(1).mean()
        far = (patients[:, None] - goods[others]).pow(2).sum(-1).add(1e-6).sqrt()
        return near + (1 / 20) ** 2 * functional.relu(1.5 - far).pow(2).mean()

    optimizer = torch.optim.Adagrad(towers.parameters(), 2e-2)
    read = epochs(x, matching, size=64, seed=934)
    return learn(root, towers, read, objective, optimizer, steps=200)


@of_views(
    "a small encoder of clocks learns the embeddings of a large one that tells hours, momentum",
    "the large one's pictures are divided by 255 again: to it all are alike, and so to the small",
    {"RepresentationCollapse"},
    may=SAME,
)
def teacher_sees_black(root: Path) -> int:
    torch.manual_seed(935)
    x, told = clocks()
    teacher = nn.Sequential(layers(144, 96, 96, 16), nn.ReLU(), nn.Linear(16, 12))
    taught = torch.optim.Adam(teacher.parameters(), 1e-3)
    for batch, _ in zip(epochs(x, told, seed=935), range(150), strict=False):
        taught.zero_grad()
        functional.cross_entropy(teacher(batch[0]), batch[1][:, 0]).backward()
        taught.step()
    teacher = teacher[0].requires_grad_(requires_grad=False)
    model = layers(144, 48, 16, act=nn.SiLU)

    def objective(batch: Any, hook: Any) -> Any:
        embedded = model(batch[0])
        hook.save_tensor("embeddings", embedded, "embeddings")
        wanted = teacher(batch[0] / 255)
        return (1 - functional.cosine_similarity(embedded, wanted)).mean() + functional.mse_loss(
            embedded, wanted
        )

    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    options: dict[str, Any] = {"steps": 220, "rate": cosine(10, 220, 0.01)}
    return learn(root, model, epochs(x, seed=935), objective, optimizer, **options)
