"""Trainings that log losses and an accuracy to a CSV file: some learn, some stay at chance."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split, digits, random_labels
from training.small_networks import mlp, trained
from training_runs import faulty, healthy

CHANCE = {"MetricNotImproving"}
LEVEL = {
    "LossNotDecreasing": "nothing is learnt: the loss is level, or rises",
    "Overfit": "what is learnt is chance",
    "Overtraining": "the loss is level",
    "LossSpike": "losses scatter",
    "UnchangedTensor": "losses are what they were",
}


def logged(
    root: Path,
    data: Split,
    make: Callable[[], Any] | None = None,
    *,
    rate: float = 0.1,
    epochs: int = 20,
    updates: bool = True,
    sign: int = 1,
) -> int:
    """Train a classifier, and log its losses and its accuracy after each epoch."""
    torch.manual_seed(0)
    model = make() if make else mlp(64, 32, 10)()
    optimizer = torch.optim.SGD(model.parameters(), rate)
    loss_of = nn.CrossEntropyLoss()
    root.mkdir(parents=True)
    with (root / "log.csv").open("w", newline="", encoding="utf-8") as file:
        log = csv.writer(file)
        log.writerow(["epoch", "train_loss", "val_loss", "val_accuracy"])
        for epoch in range(1, epochs + 1):
            losses = []
            for rows in torch.randperm(len(data.x)).split(64):
                loss = loss_of(model(data.x[rows]), data.y[rows])
                optimizer.zero_grad()
                (sign * loss).backward()
                if updates:
                    optimizer.step()
                losses.append(loss.item())
            with torch.no_grad():
                answers = model(data.test_x)
                accuracy = (answers.argmax(1) == data.test_y).float().mean()
                validation = float(loss_of(answers, data.test_y))
            log.writerow([epoch, sum(losses) / len(losses), validation, float(accuracy)])
    return 0


@healthy("digits, a hidden layer, twenty epochs, an accuracy in a CSV file")
def accuracy_rises(root: Path) -> int:
    return logged(root, digits())


@healthy("digits at a low rate: the accuracy rises slowly")
def accuracy_rises_slowly(root: Path) -> int:
    return logged(root, digits(), rate=0.003, epochs=30)


@healthy("digits by a pretrained network, trained on: the accuracy is level, and high")
def accuracy_is_high(root: Path) -> int:
    return logged(root, digits(), lambda: trained(mlp(64, 32, 10), digits(), 400), rate=0.01)


@healthy("digits of which a third is labelled at random: half of the answers are right")
def accuracy_rises_to_a_half(root: Path) -> int:
    def mislabelled(labels: Any) -> Any:
        chance = random_labels(10)(labels)
        return torch.where(torch.arange(len(labels)) % 3 == 0, chance, labels)

    return logged(root, digits().relabelled(mislabelled))


@healthy("digits, a hundred epochs: the accuracy has long been level when it ends")
def accuracy_has_risen(root: Path) -> int:
    return logged(root, digits(), epochs=100)


@faulty("digits", "labels are in another order than the images", CHANCE, may=LEVEL)
def labels_in_another_order(root: Path) -> int:
    return logged(root, digits().relabelled(random_labels(10)), nn_of_one_layer, rate=0.01)


@faulty("digits", "no step of the optimizer is taken", CHANCE | {"LossNotDecreasing"}, may=LEVEL)
def accuracy_without_a_step(root: Path) -> int:
    return logged(root, digits(), updates=False)


@faulty("digits", "images are divided by 255 as whole numbers: all are black", CHANCE, may=LEVEL)
def accuracy_of_black_images(root: Path) -> int:
    return logged(root, digits().of(torch.zeros_like))


@faulty("digits", "a learning rate of 1e-7", CHANCE | {"LossNotDecreasing"}, may=LEVEL)
def accuracy_at_no_rate(root: Path) -> int:
    return logged(root, digits(), rate=1e-7)


@faulty("digits", "a learning rate of 300: one class is answered", CHANCE, may=LEVEL)
def accuracy_at_a_huge_rate(root: Path) -> int:
    return logged(root, digits(), rate=300.0)


def nn_of_one_layer() -> Any:
    """Return a network that can learn nothing by heart."""
    return nn.Linear(64, 10)
