"""Healthy contrastive learning: SimCLR, SimSiam, BYOL, Barlow Twins, CLIP and classes."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.data import (
    RECIPE_WORDS,
    glyphs,
    handwriting,
    households,
    recipes,
    standardised,
    table,
)
from runs_held_out.representations.shared.loop import cosine, loader, train
from runs_held_out.representations.shared.networks import layers

healthy = functools.partial(training_runs.healthy, kind="contrastive")


def moved(x: Any) -> Any:
    """Return glyphs moved by up to a pixel, lighter or darker, with noise, normalised."""
    down, right = torch.randint(-1, 2, (2,)).tolist()
    x = x.roll((down, right), (2, 3)) * (0.7 + 0.6 * torch.rand(len(x), 1, 1, 1))
    return (x + 0.05 * torch.randn_like(x) - 0.3) / 0.4


def shaken(x: Any) -> Any:
    """Return rows louder or quieter, and with noise."""
    return x * (0.8 + 0.4 * torch.rand(len(x), 1)) + 0.2 * torch.randn_like(x)


def among_all(one: Any, two: Any, temperature: float) -> Any:
    """Return the loss of finding each row's other view among all other rows (NT-Xent)."""
    z = functional.normalize(torch.cat([one, two]), dim=1)
    scores = (z @ z.T / temperature).fill_diagonal_(float("-inf"))
    count = len(one)
    return functional.cross_entropy(scores, torch.arange(2 * count).roll(count))


def pictures() -> Any:
    """Return a small network of convolutions, to 216 numbers."""
    return nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 24, 3, stride=2, padding=1),
        nn.BatchNorm2d(24),
        nn.ReLU(),
        nn.Flatten(),
    )


@healthy("views of glyphs by SimCLR, a projector, a heat of 0.5, Adam, a cosine")
def simclr_of_glyphs(root: Path) -> int:
    torch.manual_seed(871)
    model = nn.ModuleDict({"encoder": pictures(), "projector": layers(216, 64, 32)})

    def value(batch: Any, _: Any) -> Any:
        both = torch.cat([moved(batch[0]), moved(batch[0])])
        one, two = model["projector"](model["encoder"](both)).chunk(2)
        return among_all(one, two, 0.5)

    return train(
        root,
        model,
        loader(glyphs()[0], size=64, seed=871),
        value,
        torch.optim.Adam(model.parameters(), 2e-3, weight_decay=1e-6),
        factor=cosine(10, 150),
        save_every=3,
    )


@healthy("views of digits by SimSiam with batch norms and stopped gradients, SGD, a cosine")
def simsiam_of_digits(root: Path) -> int:
    torch.manual_seed(872)
    x = (handwriting()[0] - 0.305) / 0.376
    model = nn.ModuleDict(
        {
            "encoder": nn.Sequential(
                layers(64, 128, 128, 64, norm=nn.BatchNorm1d), nn.BatchNorm1d(64, affine=False)
            ),
            "predictor": layers(64, 32, 64, norm=nn.BatchNorm1d),
        }
    )

    def value(batch: Any, watching: Any) -> Any:
        one, two = model["encoder"](shaken(batch[0])), model["encoder"](shaken(batch[0]))
        watching.save_tensor("embeddings", one, "embeddings")
        agree = functional.cosine_similarity(model["predictor"](one), two.detach()).mean()
        other = functional.cosine_similarity(model["predictor"](two), one.detach()).mean()
        return -(agree + other) / 2

    return train(
        root,
        model,
        loader(x, size=128, seed=872),
        value,
        torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4),
        factor=cosine(5, 160),
        steps=160,
        save_every=3,
    )


@healthy("views of tumours' columns by BYOL, a target that follows at 0.99, Adam")
def byol_of_tumours(root: Path) -> int:
    torch.manual_seed(873)
    x = standardised(table("breast_cancer")[0])
    model = nn.ModuleDict(
        {
            "net": layers(30, 64, 64, 32, norm=nn.BatchNorm1d),
            "predictor": layers(32, 64, 32, norm=nn.BatchNorm1d),
        }
    )
    target = copy.deepcopy(model["net"]).requires_grad_(requires_grad=False)

    def value(batch: Any, watching: Any) -> Any:
        first, second = shaken(batch[0]), shaken(batch[0])
        one, two = model["net"](first), model["net"](second)
        watching.save_tensor("embeddings", one, "embeddings")
        with torch.no_grad():
            goal, other = target(second), target(first)
        agree = functional.cosine_similarity(model["predictor"](one), goal)
        return 4 - 2 * (agree + functional.cosine_similarity(model["predictor"](two), other)).mean()

    def follow(_: int) -> None:
        with torch.no_grad():
            for slow, fast in zip(target.parameters(), model["net"].parameters(), strict=True):
                slow.lerp_(fast, 0.01)

    return train(
        root,
        model,
        loader(x, size=96, seed=873),
        value,
        torch.optim.Adam(model.parameters(), 1e-3),
        steps=150,
        save_every=3,
        after=follow,
    )


@healthy("views of households' days by Barlow Twins, batch norms, AdamW, a warm-up")
def barlow_of_households(root: Path) -> int:
    torch.manual_seed(874)
    model = layers(24, 64, 64, 32, norm=nn.BatchNorm1d)

    def value(batch: Any, watching: Any) -> Any:
        one, two = model(shaken(batch[0])), model(shaken(batch[0]))
        watching.save_tensor("embeddings", one, "embeddings")
        cross = standardised(one).T @ standardised(two) / len(one)
        on = (cross.diagonal() - 1).pow(2).sum()
        off = (cross - cross.diagonal().diag()).pow(2).sum()
        return on + 0.01 * off

    return train(
        root,
        model,
        loader(standardised(households()[0]), size=128, seed=874),
        value,
        torch.optim.AdamW(model.parameters(), 2e-3),
        factor=cosine(10, 140, 0.05),
        steps=140,
        save_every=3,
    )


class Pairs(nn.Module):
    """Recipes and glyphs in one space, with a learnt heat (CLIP)."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.picture = nn.Sequential(pictures(), nn.Linear(216, width))
        self.words = nn.Embedding(RECIPE_WORDS, width, padding_idx=0)
        self.text = layers(width, 64, width)
        self.logit_scale = nn.Parameter(torch.tensor(1 / 0.07).log())

    def forward(self, picture: Any, text: Any) -> tuple[Any, Any]:
        is_word = (text != 0)[..., None]
        of_text = self.text((self.words(text) * is_word).sum(1) / is_word.sum(1))
        of_picture = self.picture(picture)
        return functional.normalize(of_picture, dim=1), functional.normalize(of_text, dim=1)


@healthy("glyphs on boxes and the recipes inside, of one kind each, by CLIP, AdamW, clipped")
def clip_of_boxes(root: Path) -> int:
    torch.manual_seed(875)
    pixels, shown = glyphs()
    texts, kinds = recipes()
    mates = [(kinds == kind).nonzero()[:, 0] for kind in range(4)]
    chosen = torch.stack([mates[kind][at % len(mates[kind])] for at, kind in enumerate(shown)])
    model = Pairs()

    def value(batch: Any, watching: Any) -> Any:
        one, two = model((batch[0] - 0.3) / 0.4, batch[1])
        watching.save_tensor("embeddings", one, "embeddings")
        scores = one @ two.T * model.logit_scale.clamp(max=4.6).exp()
        rows = torch.arange(len(one))
        return (
            functional.cross_entropy(scores, rows) + functional.cross_entropy(scores.T, rows)
        ) / 2

    return train(
        root,
        model,
        loader(pixels, texts[chosen], size=32, seed=875),
        value,
        torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1),
        factor=cosine(15, 160, 0.05),
        clip=1.0,
        steps=160,
        save_every=3,
    )


@healthy("digits by embeddings in which those of a class are near (SupCon, 0.1), SGD, momentum")
def digits_of_a_class_are_near(root: Path) -> int:
    torch.manual_seed(876)
    x, digit = handwriting()
    model = layers(64, 128, 64, 24, drop=0.1)

    def value(batch: Any, watching: Any) -> Any:
        z = functional.normalize(model((batch[0] - 0.305) / 0.376), dim=1)
        watching.save_tensor("embeddings", z, "embeddings")
        scores = (z @ z.T / 0.1).fill_diagonal_(-1e9)
        is_mate = (batch[1][:, None] == batch[1]).float().fill_diagonal_(0)
        logs = scores.log_softmax(1)
        return -((logs * is_mate).sum(1) / is_mate.sum(1).clamp(min=1)).mean()

    return train(
        root,
        model,
        loader(x, digit, size=64, seed=876),
        value,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4),
        factor=cosine(10, 150),
        save_every=3,
    )
