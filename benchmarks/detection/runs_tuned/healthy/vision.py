"""Healthy trainings on images: transformers, distillation, several tasks, schedules."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.language import warm_up_and_cosine
from training.learnt_data import Split, digits, images
from training.small_networks import Cnn, mlp, trained
from training.torch_loop import adam, fit, sgd
from training_runs import healthy


class VisionTransformer(nn.Module):
    """Patches of 2 x 2 pixels, a class token, encoder layers."""

    def __init__(self, width: int = 32, layers: int = 2, drop: float = 0.1) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(0.02 * torch.randn(1, 17, width))
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 64, drop, batch_first=True, norm_first=True)
            for _ in range(layers)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Any) -> Any:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for layer in self.encoder:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


@healthy("digits, a vision transformer with a class token, warm-up and cosine")
def vit_digits(root: Path) -> int:
    return fit(
        root,
        VisionTransformer,
        images(),
        optimizer=adam(3e-3, kind=torch.optim.AdamW),
        schedule=warm_up_and_cosine(20, 200),
        clip=1.0,
        steps=200,
        save_every=4,
        validate_every=40,
    )


@healthy("digits, a vision transformer of one layer, Adam at a constant rate")
def vit_constant(root: Path) -> int:
    make = lambda: VisionTransformer(layers=1, drop=0.0)
    return fit(root, make, images(), optimizer=adam(2e-3), steps=160, save_every=4)


class DistillationLoss(nn.Module):
    """A third of cross entropy with labels, and two thirds with a teacher's chances."""

    def __init__(self, teacher: Any, temperature: float = 2.0) -> None:
        super().__init__()
        self.hard, self.temperature = nn.CrossEntropyLoss(), temperature
        self.teacher = [teacher]
        self.batch: Any = None

    def forward(self, outputs: Any, y: Any) -> Any:
        logits, x = outputs
        with torch.no_grad():
            goal = (self.teacher[0](x) / self.temperature).softmax(-1)
        soft = functional.kl_div(
            (logits / self.temperature).log_softmax(-1), goal, reduction="batchmean"
        )
        return self.hard(logits, y) / 3 + soft * self.temperature**2 * 2 / 3


class WithInputs(nn.Module):
    """A model that returns its inputs beside its outputs."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Any) -> tuple[Any, Any]:
        return self.model(x), x


@healthy("digits, a small network taught by a large one: two weighted losses")
def digits_distilled(root: Path) -> int:
    teacher = trained(mlp(64, 96, 10), digits(), 200)
    make = lambda: WithInputs(mlp(64, 24, 10)())
    return fit(root, make, digits(), loss=DistillationLoss(teacher), optimizer=adam(), steps=200)


class Tasks(nn.Module):
    """One trunk, a head of ten classes and one of their parity."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(64, 48), nn.ReLU())
        self.digit, self.parity = nn.Linear(48, 10), nn.Linear(48, 2)

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.trunk(x)
        return self.digit(hidden), self.parity(hidden)


class TasksLoss(nn.Module):
    """The loss of digits, and a tenth of that of their parity."""

    def __init__(self, weight: float) -> None:
        super().__init__()
        self.weight = weight
        self.digit_loss, self.parity_loss = nn.CrossEntropyLoss(), nn.CrossEntropyLoss()

    def forward(self, outputs: Any, y: Any) -> Any:
        return self.digit_loss(outputs[0], y) + self.weight * self.parity_loss(outputs[1], y % 2)


@healthy("digits and their parity, a weight of 0.1 for the second task")
def digits_two_tasks(root: Path) -> int:
    return fit(
        root, Tasks, digits(), loss=TasksLoss(0.1), optimizer=sgd(0.1, momentum=0.5), steps=200
    )


@healthy("digits and their parity, an auxiliary loss that hardly counts")
def digits_auxiliary(root: Path) -> int:
    return fit(root, Tasks, digits(), loss=TasksLoss(0.001), optimizer=adam(), steps=160)


class MixedLoss(nn.Module):
    """Cross entropy of rows that were mixed with other rows of the batch."""

    def forward(self, outputs: Any, y: Any) -> Any:
        logits, share, other = outputs
        first = functional.cross_entropy(logits, y)
        return share * first + (1 - share) * functional.cross_entropy(logits, y[other])


class Mixed(nn.Module):
    """Mixes each row with another one of its batch while it trains."""

    def __init__(self) -> None:
        super().__init__()
        self.model = mlp(64, 64, 10)()

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        share = float(torch.distributions.Beta(0.4, 0.4).sample()) if self.training else 1.0
        other = torch.randperm(len(x))
        return self.model(share * x + (1 - share) * x[other]), share, other


@healthy("digits, rows mixed with others: losses that vary from batch to batch")
def digits_mixed(root: Path) -> int:
    return fit(
        root, Mixed, digits(), loss=MixedLoss(), optimizer=adam(2e-3), steps=240, save_every=4
    )


@healthy("digits, trained convolutions fine-tuned at a low rate in small batches")
def cnn_fine_tuned(root: Path) -> int:
    make = lambda: trained(Cnn, images(), 150, 0.05)
    return fit(
        root, make, images(), optimizer=sgd(1e-3, momentum=0.9), batch=8, steps=200, save_every=4
    )


@healthy("digits, convolutions with batch norm, the rate falls tenfold twice")
def cnn_staircase(root: Path) -> int:
    schedule = lambda step: 0.1 ** (step // 100)
    return fit(
        root,
        lambda: Cnn(norm=True),
        images(),
        optimizer=sgd(0.05, momentum=0.9),
        schedule=schedule,
        steps=300,
        save_every=5,
        validate_every=50,
    )


@healthy("digits, one cycle of the learning rate, evaluated on 15 rows")
def cnn_validated_on_15_rows(root: Path) -> int:
    data = images()
    small = Split(data.x, data.y, data.test_x[:15], data.test_y[:15])
    return fit(
        root,
        Cnn,
        small,
        optimizer=sgd(0.05, momentum=0.9),
        schedule=warm_up_and_cosine(60, 200, 0.0),
        steps=200,
        save_every=4,
    )


@healthy("digits, losses alone saved, every tenth step")
def digits_losses_seldom(root: Path) -> int:
    return fit(
        root,
        mlp(64, 48, 10),
        digits(),
        optimizer=adam(1e-3),
        include_collections=["losses"],
        steps=400,
        save_every=10,
        validate_every=100,
    )
