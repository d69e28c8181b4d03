"""Contrastive and self-supervised trainings, healthy and collapsed."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.learnt_data import digits
from training.torch_loop import adam, batches, watched

from runs_tuned.faulty.learning import BLOWN_UP

healthy = functools.partial(training_runs.healthy, kind="contrastive")
faulty = functools.partial(training_runs.faulty, kind="contrastive")
COLLAPSED = BLOWN_UP | {
    "StalledParameters": "a constant embedding does not learn",
    "NormGrowth": "a loss of directions lets norms grow",
}
COLLAPSES = {"RepresentationCollapse"}


class Encoder(nn.Module):
    """Embeds digits; `predictor` maps one view's embedding to the other's."""

    def __init__(self, width: int = 24, *, norm: bool = True, predicts: bool = False) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(64, 64), nn.BatchNorm1d(64) if norm else nn.Identity(), nn.ReLU()
        )
        self.projector = nn.Linear(64, width)
        self.predictor = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, width))
        if not predicts:
            self.predictor = nn.Identity()

    def forward(self, x: Any) -> tuple[Any, Any]:
        embedded = self.projector(self.backbone(x))
        return embedded, self.predictor(embedded)


class AlignmentLoss(nn.Module):
    """Negative cosine similarity of predictions and targets, which pass no gradient."""

    def __init__(self, *, stop: bool = True) -> None:
        super().__init__()
        self.stop = stop

    def forward(self, prediction: Any, target: Any) -> Any:
        target = target.detach() if self.stop else target
        return -functional.cosine_similarity(prediction, target).mean()


class ContrastLoss(nn.Module):
    """Cross entropy of which view belongs to which."""

    def __init__(self, temperature: float = 0.2) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, first: Any, second: Any) -> Any:
        scores = functional.normalize(first) @ functional.normalize(second).T / self.temperature
        return functional.cross_entropy(scores, torch.arange(len(scores)))


def views(x: Any, generator: Any) -> tuple[Any, Any]:
    """Return two noisy versions of rows."""
    return tuple(x + 0.4 * torch.randn(x.shape, generator=generator) for _ in range(2))  # type: ignore[return-value]


def train(
    root: Path,
    loss: Any,
    pair: Callable[[Any, Any, Any], tuple[Any, Any]],
    *,
    make: Callable[[], Any] = Encoder,
    optimizer: Any = None,
    steps: int = 160,
    save_every: int = 2,
    at: int = -1,
    change: Callable[[Any], object] = lambda _: None,
) -> int:
    """Train an encoder on two views; `pair` returns what the loss compares."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    model = make()
    optimizer_ = (optimizer or adam(2e-3))(model.parameters())
    onset = 0
    with watched(
        root, model, losses=[loss], save_every=save_every, include_regex="projector_output"
    ) as watching:
        for step, (x, _) in zip(range(steps), batches(digits(), 64), strict=False):
            if step == at:
                onset = watching.global_step + 1
                change(model)
            first, second = views(x, random)
            embedded, predicted = model(torch.cat([first, second]))
            optimizer_.zero_grad()
            loss(*pair(embedded, predicted, len(x))).backward()
            optimizer_.step()
    return onset


def simsiam(embedded: Any, predicted: Any, count: int) -> tuple[Any, Any]:
    """Compare each view's prediction with the other view's embedding."""
    return predicted, torch.cat([embedded[count:], embedded[:count]])


def contrast(embedded: Any, _: Any, count: int) -> tuple[Any, Any]:
    """Compare the embeddings of both views."""
    return embedded[:count], embedded[count:]


@healthy("two views, a predictor and a stopped gradient")
def simsiam_digits(root: Path) -> int:
    optimizer = functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9)
    make = lambda: Encoder(predicts=True)
    return train(root, AlignmentLoss(), simsiam, make=make, optimizer=optimizer)


@healthy("two views against the other rows of the batch")
def contrast_digits(root: Path) -> int:
    return train(root, ContrastLoss(), contrast)


@healthy("two views against the others, a low temperature, every tenth step saved")
def contrast_sharp(root: Path) -> int:
    return train(root, ContrastLoss(0.07), contrast, steps=400, save_every=10)


@healthy("two views against the others, no batch norm")
def contrast_without_norm(root: Path) -> int:
    return train(root, ContrastLoss(0.5), contrast, make=lambda: Encoder(norm=False))


class TripletLoss(nn.TripletMarginLoss):
    """The loss of anchors, positives, and negatives that are the next rows."""

    def forward(self, anchor: Any, positive: Any) -> Any:
        return super().forward(anchor, positive, positive.roll(1, 0))


@healthy("triplets with a margin of 1")
def triplets(root: Path) -> int:
    return train(root, TripletLoss(1.0), contrast, steps=120)


@faulty(
    "two views",
    "the gradient of the targets is not stopped, without a predictor",
    COLLAPSES,
    may=COLLAPSED,
)
def not_stopped(root: Path) -> int:
    make = lambda: Encoder(norm=False)
    return train(
        root, AlignmentLoss(stop=False), contrast, make=make, optimizer=adam(0.01), steps=240
    )


class DistanceLoss(nn.Module):
    """The distance of both views, and nothing that keeps others apart."""

    def forward(self, first: Any, second: Any) -> Any:
        both = torch.cat([first, second])
        return (first - second).pow(2).mean() + (both - both.mean(0).detach()).pow(2).mean()


@faulty("two views", "negatives were left out: all are pulled together", COLLAPSES, may=COLLAPSED)
def without_negatives(root: Path) -> int:
    def direction(embedded: Any, _: Any, count: int) -> tuple[Any, Any]:
        unit = functional.normalize(embedded)
        return unit[:count], unit[count:]

    return train(root, DistanceLoss(), direction, optimizer=adam(0.01), steps=240)


@faulty(
    "two views against the others",
    "the last bias is 1,000: all rows point the same way",
    COLLAPSES,
    may=COLLAPSED,
)
def biased_embedding(root: Path) -> int:
    def make() -> Any:
        model = Encoder()
        nn.init.constant_(model.projector.bias, 1000.0)
        return model

    return train(root, ContrastLoss(), contrast, make=make)


@faulty(
    "two views against the others",
    "at step 80 the embedding's weights are overwritten by zeros",
    COLLAPSES,
    may=COLLAPSED | {"AllZero": "weights of zero", "TensorVariance": "weights of zero"},
)
def embedding_zeroed(root: Path) -> int:
    def zero(model: Any) -> None:
        with torch.no_grad():
            model.projector.weight.zero_()

    optimizer = adam(1e-6)
    return train(root, ContrastLoss(), contrast, optimizer=optimizer, at=80, change=zero)


@faulty(
    "two views",
    "the sign of the loss is wrong: rows are told to be what the others are",
    COLLAPSES,
    may=COLLAPSED,
)
def contrast_of_wrong_sign(root: Path) -> int:
    class PulledLoss(ContrastLoss):
        """Scores of other rows are made large."""

        def forward(self, first: Any, second: Any) -> Any:
            scores = functional.normalize(first) @ functional.normalize(second).T
            return -scores.mean()

    return train(root, PulledLoss(), contrast, optimizer=adam(0.01), steps=240)
