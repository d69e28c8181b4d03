"""Embeddings that are learnt from views, tables and triplets, healthy and collapsed."""

import copy
import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from sklearn.datasets import load_breast_cancer, load_wine
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, sgd, watched

from runs_tuned.first_held_out.beyond_supervised.consequences import TOO_LARGE, UNINFORMED
from runs_tuned.first_held_out.beyond_supervised.generative import rows, spots, waves

healthy = functools.partial(training_runs.healthy, kind="contrastive")
faulty = functools.partial(training_runs.faulty, kind="contrastive")
ALL_ALIKE = {"RepresentationCollapse"}
COLLAPSED = (
    TOO_LARGE
    | UNINFORMED
    | {
        "ClassImbalance": "embeddings without differences tell no classes",
        "Confusion": "embeddings without differences tell no classes",
        "LossNotDecreasing": "what cannot be told apart cannot be learnt",
    }
)


@functools.cache
def table(load: Callable[..., Any]) -> tuple[Any, Any]:
    """Return the standardised features and the classes of a bundled table."""
    features, classes = load(return_X_y=True)
    x = torch.tensor(features, dtype=torch.float32)
    return (x - x.mean(0)) / x.std(0), torch.tensor(classes)


class Embedder(nn.Module):
    """A backbone and a projector, two layers each."""

    def __init__(
        self, ins: int, outs: int = 32, *, norm: bool = True, act: Callable[[], Any] = nn.ReLU
    ) -> None:
        super().__init__()
        norms = nn.BatchNorm1d if norm else lambda _: nn.Identity()
        self.backbone = nn.Sequential(
            *(nn.Flatten(), nn.Linear(ins, 64), norms(64), act(), nn.Linear(64, 48), act())
        )
        self.projector = nn.Sequential(nn.Linear(48, 48), norms(48), act(), nn.Linear(48, outs))

    def forward(self, x: Any) -> Any:
        return self.projector(self.backbone(x))


class VisionEmbedder(Embedder):
    """An embedder whose backbone has convolutions."""

    def __init__(self, outs: int = 32) -> None:
        super().__init__(64, outs)
        self.backbone = nn.Sequential(
            *(nn.Conv2d(1, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU()),
            *(nn.Conv2d(12, 12, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(192, 48)),
        )


def brightened(x: Any) -> Any:
    """Return images of another contrast and brightness, with noise."""
    shape = (len(x), 1, 1, 1)
    contrast, brightness = 0.7 + 0.6 * torch.rand(shape), 0.4 * torch.randn(shape)
    return contrast * x + brightness + 0.2 * torch.randn_like(x)


def stretched(x: Any) -> Any:
    """Return waves of another height, some of their values left out."""
    height = 0.8 + 0.4 * torch.rand(len(x), 1)
    return height * x * (torch.rand_like(x) > 0.2)


def shifted(x: Any) -> Any:
    """Return waves of another phase, half of their values left out."""
    starts = torch.randint(0, x.shape[1], (len(x), 1))
    places = (starts + torch.arange(x.shape[1])) % x.shape[1]
    return x.gather(1, places) * (torch.rand_like(x) > 0.5)


def corrupted(x: Any, share: float = 0.35) -> Any:
    """Return rows some of whose features are those of other rows."""
    other = torch.stack([column[torch.randperm(len(x))] for column in x.T], 1)
    return torch.where(torch.rand_like(x) < share, other, x)


def variance_loss(first: Any, second: Any, weights: tuple[float, float, float]) -> Any:
    """Return the weighted sum of distance, missing deviation, and covariance of two views."""

    def missing(z: Any) -> Any:
        return (1 - (z.var(0) + 1e-4).sqrt()).relu().mean()

    def covariance(z: Any) -> Any:
        centred = z - z.mean(0)
        matrix = centred.T @ centred / (len(z) - 1)
        return (matrix - matrix.diag().diag()).pow(2).sum() / z.shape[1]

    terms = (
        functional.mse_loss(first, second),
        missing(first) + missing(second),
        covariance(first) + covariance(second),
    )
    return sum(weight * term for weight, term in zip(weights, terms, strict=True))


def twins_loss(first: Any, second: Any, off_diagonal: float = 0.02) -> Any:
    """Return how far the correlation of two views is from the identity."""
    unit = [(z - z.mean(0)) / (z.std(0) + 1e-6) for z in (first, second)]
    excess = (unit[0].T @ unit[1] / len(first) - torch.eye(first.shape[1])).pow(2)
    return excess.diag().sum() + off_diagonal * (excess.sum() - excess.diag().sum())


def matching_loss(first: Any, second: Any, temperature: float = 0.3) -> Any:
    """Return the cross entropy of finding each row's other view, both ways."""
    scores = functional.normalize(first) @ functional.normalize(second).T / temperature
    own = torch.arange(len(scores))
    return (functional.cross_entropy(scores, own) + functional.cross_entropy(scores.T, own)) / 2


def train(
    root: Path,
    make: Callable[[], Any],
    data: Any,
    view: Callable[[Any], Any],
    loss: Callable[[Any, Any], Any],
    *,
    optimizer: Any = None,
    steps: int = 200,
    batch: int = 64,
    warm_up: int = 20,
    save_every: int = 2,
    bfloat16: bool = False,
) -> int:
    """Train an embedder on two views of each row."""
    torch.manual_seed(8)
    model = make()
    optimizer_ = (optimizer or adam(2e-3))(model.parameters())
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer_, lambda step: min(1.0, (step + 1) / warm_up)
    )
    with watched(root, model, save_every=save_every) as watching:
        for x in itertools.islice(rows(data, batch, 10), steps):
            with torch.autocast("cpu", torch.bfloat16, enabled=bfloat16):
                first, second = model(torch.cat([view(x), view(x)])).chunk(2)
            value = loss(first.float(), second.float())
            watching.record_tensor_value("loss", value)
            watching.save_tensor("embeddings", first.float(), "embeddings")
            optimizer_.zero_grad()
            value.backward()
            optimizer_.step()
            rates.step()
    return 0


@healthy("Barlow twins of spots, convolutions, warm-up")
def barlow_twins_of_spots(root: Path) -> int:
    rate = adam(2e-3, torch.optim.AdamW, weight_decay=1e-3)
    return train(root, VisionEmbedder, spots(), brightened, twins_loss, optimizer=rate, steps=160)


@healthy("VICReg of waves, SGD with momentum, computed in bfloat16 where PyTorch deems it safe")
def vicreg_of_waves(root: Path) -> int:
    loss = functools.partial(variance_loss, weights=(25.0, 25.0, 1.0))
    rate = sgd(0.01, momentum=0.9, weight_decay=1e-4)
    make = lambda: Embedder(32)
    return train(root, make, waves(), stretched, loss, optimizer=rate, bfloat16=True)


@healthy("a table of breast cancer, features of other rows as views, small batches")
def matched_rows_of_a_table(root: Path) -> int:
    make = lambda: Embedder(30, 16, norm=False, act=nn.GELU)
    data, _ = table(load_breast_cancer)
    return train(root, make, data, corrupted, matching_loss, batch=32, steps=300, save_every=3)


def bootstrap(
    root: Path,
    view: Callable[[Any], Any],
    *,
    predicts: bool = True,
    rate: float = 2e-3,
    steps: int = 240,
) -> int:
    """Train an embedder to predict what its moving average makes of another view."""
    torch.manual_seed(9)
    model = Embedder(32, 24, norm=predicts)
    predictor = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 24))
    if not predicts:
        predictor = nn.Sequential(nn.Identity())
    teacher = copy.deepcopy(model).requires_grad_(requires_grad=False)
    optimizer = torch.optim.AdamW([*model.parameters(), *predictor.parameters()], rate)
    data = rows(waves(), 64, 11)
    with watched(root, model, predictor) as watching:
        for x in itertools.islice(data, steps):
            first, second = view(x), view(x)
            embedded = model(torch.cat([first, second]))
            with torch.no_grad():
                target = teacher(torch.cat([second, first]))
            loss = 2 - 2 * functional.cosine_similarity(predictor(embedded), target).mean()
            watching.record_tensor_value("byol_loss", loss)
            watching.save_tensor("embeddings", embedded, "embeddings")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            for slow, fast in zip(teacher.parameters(), model.parameters(), strict=True):
                slow.data.lerp_(fast.data, 0.05)
    return 0


@healthy("BYOL of waves: a predictor, and targets of a moving average")
def byol_of_waves(root: Path) -> int:
    return bootstrap(root, stretched)


@faulty(
    "BYOL of waves without norms",
    "the predictor was lost in a refactoring: embeddings follow their own average",
    ALL_ALIKE,
    may=COLLAPSED,
)
def byol_without_predictor(root: Path) -> int:
    return bootstrap(root, shifted, predicts=False, rate=5e-3, steps=300)


@faulty(
    "VICReg of spots",
    "the coefficient of the variance is 0: it is left from an ablation",
    ALL_ALIKE,
    may=COLLAPSED,
)
def vicreg_without_variance(root: Path) -> int:
    loss = functools.partial(variance_loss, weights=(25.0, 0.0, 25.0))
    make = lambda: Embedder(64, norm=False)
    return train(root, make, spots(), brightened, loss, optimizer=adam(4e-3), steps=240)


class HardestTriplets(nn.Module):
    """A soft margin between the farthest row of the class and the nearest of another."""

    def forward(self, embedded: Any, classes: Any) -> Any:
        distances = torch.cdist(embedded, embedded)
        same = classes[:, None] == classes
        farthest = torch.where(same, distances, 0.0).amax(1)
        nearest = torch.where(same, torch.inf, distances).amin(1)
        return (0.2 + farthest - nearest).relu().mean()


class SupervisedContrast(nn.Module):
    """The cross entropy of finding rows of the same class."""

    def forward(self, embedded: Any, classes: Any) -> Any:
        unit = functional.normalize(embedded)
        itself = torch.eye(len(unit), dtype=torch.bool)
        logs = (unit @ unit.T / 0.1).masked_fill(itself, -1e9).log_softmax(1)
        same = (classes[:, None] == classes) & ~itself
        return -((logs * same).sum(1) / same.sum(1).clamp(min=1)).mean()


@functools.cache
def speakers(count: int = 1200, features: int = 24) -> tuple[Any, Any]:
    """Return rows of 30 classes that overlap."""
    random = torch.Generator().manual_seed(15)
    classes = torch.randint(0, 30, (count,), generator=random)
    centres = 0.6 * torch.randn(30, features, generator=random)
    return centres[classes] + torch.randn(count, features, generator=random), classes


def of_classes(
    root: Path, loss: Any, data: tuple[Any, Any], *, optimizer: Any, steps: int = 240
) -> int:
    """Train an embedder on rows and their classes."""
    torch.manual_seed(10)
    x, classes = data
    model = Embedder(x.shape[1], 16, norm=False)
    optimizer_ = optimizer(model.parameters())
    with watched(root, model, losses=[loss]) as watching:
        for chosen in itertools.islice(rows(torch.arange(len(x)), 48, 12), steps):
            embedded = model(x[chosen])
            watching.save_tensor("embeddings", embedded, "embeddings")
            optimizer_.zero_grad()
            loss(embedded, classes[chosen]).backward()
            optimizer_.step()
    return 0


@faulty(
    "triplets of 30 speakers",
    "only the hardest triplets are mined from the first step on: distances shrink to zero",
    ALL_ALIKE,
    may=COLLAPSED,
)
def hardest_triplets(root: Path) -> int:
    return of_classes(root, HardestTriplets(), speakers(), optimizer=adam(3e-3))


@faulty(
    "supervised contrast of wines",
    "a join has lost the classes: all rows are told to be of the same one",
    ALL_ALIKE | {"LossNotDecreasing"},
    may=COLLAPSED,
)
def contrast_of_one_class(root: Path) -> int:
    x, classes = table(load_wine)
    data = x, torch.zeros_like(classes)
    return of_classes(root, SupervisedContrast(), data, optimizer=adam(3e-3))
