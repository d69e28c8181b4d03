"""Trainings in which numbers run over, or never were numbers."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import diabetes, digits, sentences, table
from training.small_networks import Recurrent, deep, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.faulty.learning import BLOWN_UP, rest

NOT_NUMBERS = rest(BLOWN_UP, "ExplodingTensor")


@faulty(
    "breast cancer, binary cross entropy by hand",
    "log(0): the loss takes the logarithm of a probability that rounds to 0",
    {"ExplodingTensor"},
    may=NOT_NUMBERS,
)
def logarithm_of_zero(root: Path) -> int:
    class BinaryLoss(nn.Module):
        """Cross entropy of probabilities, without any care."""

        def forward(self, logits: Any, y: Any) -> Any:
            chance = torch.sigmoid(logits[:, 0])
            return -(y * torch.log(chance) + (1 - y) * torch.log(1 - chance)).mean()

    data = table("breast_cancer").of(lambda x: x * 20)
    optimizer = sgd(0.5)
    return fit(root, mlp(30, 16, 1), data, loss=BinaryLoss(), optimizer=optimizer, steps=80)


@faulty(
    "breast cancer, standardised by hand",
    "a feature that never changes is divided by its deviation, 0",
    {"ExplodingTensor"},
    may=NOT_NUMBERS,
)
def divided_by_zero(root: Path) -> int:
    def standardised(x: Any) -> Any:
        constant = torch.cat([x, torch.ones(len(x), 1)], 1)
        return (constant - constant.mean(0)) / constant.std(0)

    data = table("breast_cancer").of(standardised)
    return fit(root, mlp(31, 16, 2), data, steps=40)


@faulty(
    "diabetes, root of the mean squared error of pairs of equal samples",
    "the gradient of a root is infinite at 0",
    {"ExplodingTensor"},
    may=NOT_NUMBERS,
)
def root_of_zero(root: Path) -> int:
    class DistanceLoss(nn.Module):
        """How far predictions are from the targets, and embeddings from themselves."""

        def forward(self, found: Any, y: Any) -> Any:
            same = torch.sqrt(((found - found) ** 2).sum(1)).mean()
            return ((found - y) ** 2).mean() + 0.01 * same

    return fit(root, mlp(10, 16, 1), diabetes(), loss=DistanceLoss(), optimizer=sgd(0.02), steps=40)


@faulty(
    "diabetes in its own unit, squared errors summed over the batch",
    "the sum in place of the mean makes the learning rate too large",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=NOT_NUMBERS,
)
def summed_loss(root: Path) -> int:
    data = diabetes().relabelled(lambda y: 77 * y + 152)
    loss = nn.MSELoss(reduction="sum")
    return fit(root, mlp(10, 16, 1), data, loss=loss, optimizer=sgd(0.05), steps=40)


@faulty(
    "digits, ten layers, in half precision",
    "activations of weights that begin too large run over in float16",
    {"ExplodingTensor"},
    may=NOT_NUMBERS,
)
def half_precision(root: Path) -> int:
    def make() -> Any:
        model = mlp(*deep(8, 64))()
        with torch.no_grad():
            for layer in model[:-1:2]:
                layer.weight.mul_(12)
        return model.half()

    data = digits().of(lambda x: x.half())
    return fit(root, make, data, optimizer=sgd(1e-3), steps=20, save_every=1)


@faulty(
    "sentences, LSTM; one embedding was read from a damaged file",
    "a row of the embedding is NaN from step 40 on",
    {"ExplodingTensor"},
    may=NOT_NUMBERS,
)
def damaged_embedding(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            model.embedding.weight[5] = float("nan")

    make = lambda: Recurrent(nn.LSTM, 2)
    return fit(root, make, sentences(), optimizer=adam(0.01), at=40, change=change, steps=80)
