"""Units that are dead, saturated or zero, and gradients and initial weights that are too small."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.second_held_out.shared.consequences import IDLE, SHAKEN
from runs_tuned.second_held_out.shared.pictures import Gallery, Masker, groups, masks, patterns
from runs_tuned.second_held_out.shared.series import gestures
from runs_tuned.second_held_out.shared.tables import dense, rents, taught, tickets

# Dead units


@faulty(
    "pictures of patterns, convolutions with batch norm",
    "at step 50 norms are loaded from a network of another activation, whose shifts are about -5",
    {"DeadRelu"},
    may=IDLE | SHAKEN,
)
def shifts_of_another_network(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for part in model.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.bias.data.fill_(-5.0)

    return fit(
        root,
        Gallery,
        patterns(),
        optimizer=sgd(0.05, momentum=0.9),
        steps=130,
        batch=24,
        save_every=3,
        at=50,
        change=change,
    )


class Shrinkage(nn.Module):
    """Sparse codes by two steps of learnt thresholds, and what they say of the desk."""

    def __init__(self, threshold: float) -> None:
        super().__init__()
        self.code, self.again = nn.Linear(14, 40), nn.Linear(40, 40)
        self.thresholds = nn.Parameter(torch.full((2, 40), threshold))
        self.first, self.second = nn.ReLU(), nn.ReLU()
        self.head = nn.Linear(54, 5)

    def forward(self, x: Any) -> Any:
        code = self.code(x)
        sparse = code.sign() * self.first(code.abs() - self.thresholds[0])
        code = code + self.again(sparse)
        sparse = code.sign() * self.second(code.abs() - self.thresholds[1])
        return self.head(torch.cat([sparse, x], 1))


@faulty(
    "tickets and their desks, sparse codes by learnt thresholds",
    "thresholds begin at 10, for traits in their own units, but traits are standardised",
    {"DeadRelu"},
    may=IDLE,
)
def thresholds_too_high(root: Path) -> int:
    return fit(root, lambda: Shrinkage(10.0), tickets(), optimizer=adam(3e-3), steps=120)


# Saturated units


class Slopes(nn.Module):
    """Gates that become steps: the slope of their sigmoid grows with each call in training."""

    def __init__(self, growth: float) -> None:
        super().__init__()
        self.growth, self.slope = growth, 1.0
        self.gates, self.sigmoid = nn.Linear(14, 32), nn.Sigmoid()
        self.values, self.head = nn.Linear(14, 32), nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        gates = self.sigmoid(self.slope * self.gates(x))
        if self.training:
            self.slope *= self.growth
        return self.head(gates * functional.silu(self.values(x)))


@faulty(
    "tickets and their desks, gates whose slope grows by a twelfth in each epoch",
    "the slope grows in each step: after 120 it is 15,000, and no gate can change any more",
    {"SaturatedActivation"},
    may=IDLE | SHAKEN,
)
def slope_of_each_step(root: Path) -> int:
    return fit(root, lambda: Slopes(1.083), tickets(), optimizer=adam(4e-3), steps=160)


# Gradients that vanish


class DividedAgain(nn.Module):
    """Squared errors per pixel, divided by the number of pixels twice more."""

    def forward(self, output: Any, target: Any) -> Any:
        return functional.mse_loss(output, target) / output.numel() ** 2


@faulty(
    "spots in noisy pictures, a clean picture is to be returned, SGD",
    "the mean over all pixels is divided by their number again, by the loss and by a wrapper",
    {"VanishingGradient", "LossNotDecreasing"},
    may=IDLE,
)
def mean_divided_again(root: Path) -> int:
    return fit(
        root,
        Masker,
        masks(),
        loss=DividedAgain(),
        optimizer=sgd(0.2, momentum=0.9),
        steps=120,
        batch=93,
        save_every=1,
    )


class Distilled(nn.Module):
    """How far chances of a student are from those of a teacher, both at a temperature."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.temperature = temperature

    def forward(self, student: Any, teacher: Any) -> Any:
        logs = (student / self.temperature).log_softmax(1)
        chances = (teacher / self.temperature).softmax(1)
        return functional.kl_div(logs, chances, reduction="batchmean")


@faulty(
    "a student of a network that knows desks of tickets, SGD",
    "a temperature of 400, in per cent, is taken as it is, and is not squared in the loss",
    {"VanishingGradient", "LossNotDecreasing"},
    may=IDLE,
)
def temperature_in_per_cent(root: Path) -> int:
    data = tickets()
    teacher = taught(lambda: dense(14, 48, 5), data, nn.CrossEntropyLoss())
    with torch.no_grad():
        told = type(data)(data.x, 0.2 * teacher(data.x), data.test_x, 0.2 * teacher(data.test_x))
    make = lambda: dense(14, 24, 24, 5, act=nn.Softsign)
    optimizer = sgd(0.1, momentum=0.9)
    return fit(root, make, told, loss=Distilled(400.0), optimizer=optimizer, batch=175)


# Zeros


class Pruned(nn.Module):
    """Linear layers, the second of which is pruned after each update from a step on."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(9, 32), nn.Linear(32, 32), nn.Linear(32, 1)
        self.relu = nn.ReLU()

    def forward(self, x: Any) -> Any:
        x = self.relu(self.first(x))
        return self.last(x + self.relu(self.second(x)))


@faulty(
    "rents of flats, one weight of a layer is pruned in each round, Adam",
    "the amount is given as 1.0, which is a share and not a number: at step 60 all are pruned",
    {"AllZero", "TensorVariance"},
    may=IDLE | SHAKEN,
)
def amount_is_a_share(root: Path) -> int:
    torch.manual_seed(21)
    torch.set_num_threads(1)
    model, loss, data, onset = Pruned(), nn.MSELoss(), rents(), 0
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(130), batches(data, 32, 21), strict=False):
            if step == 60:
                onset = watching.global_step + 1
            if step >= 60:
                model.second.weight.data.zero_()
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if step >= 60:
                model.second.weight.data.zero_()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return onset


# Initial weights


class Branches(nn.Module):
    """Residual layers, whose branches are multiplied by a number."""

    def __init__(self, ins: int, outs: int, factor: float, layers: int = 4) -> None:
        super().__init__()
        self.stem, self.head, self.factor = nn.Linear(ins, 32), nn.Linear(32, outs), factor
        self.branches = nn.ModuleList(
            nn.Sequential(nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32))
            for _ in range(layers)
        )
        for part in self.branches.modules():
            if isinstance(part, nn.Linear):
                nn.init.kaiming_normal_(part.weight, nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for branch in self.branches:
            x = x + self.factor * branch(x)
        return self.head(x)


def residual(factor: float) -> Callable[[], Any]:
    """Return what makes a network for gestures."""
    return lambda: nn.Sequential(nn.Flatten(), Branches(90, 4, factor))


@faulty(
    "gestures, residual layers without norms, AdamW, clipped",
    "branches are multiplied by the number of layers, 4, instead of divided by its root",
    {"PoorWeightInitialization"},
    may=SHAKEN,
)
def branches_multiplied(root: Path) -> int:
    optimizer = adam(1e-3, torch.optim.AdamW)
    return fit(root, residual(4.0), gestures(), optimizer=optimizer, steps=120, clip=1.0)


@faulty(
    "pictures of patterns, group norm, its first convolution read from a file, SGD",
    "the file has whole numbers, a thousand times as large, which the norm hides",
    {"TensorVariance"},
    may=SHAKEN,
)
def weights_of_whole_numbers(root: Path) -> int:
    def make() -> Any:
        model = Gallery(norm=groups)
        with torch.no_grad():
            model.features[0].weight.mul_(1000.0)
        return model

    return fit(root, make, patterns(), optimizer=sgd(0.05, momentum=0.9), steps=100, batch=24)
