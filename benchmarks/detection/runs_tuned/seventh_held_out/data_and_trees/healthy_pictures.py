"""Healthy image classifiers: tiles of land, blood cells, displays and digits."""

import os
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from training_runs import healthy

from runs_tuned.seventh_held_out.data_and_trees.shared.loops import loader, train, validation
from runs_tuned.seventh_held_out.data_and_trees.shared.networks import (
    ResNet,
    VisionTransformer,
    convolutions,
    lenet,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.pictures import (
    apart,
    cells,
    displays,
    land,
    normalised,
)

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd


@healthy("tiles of five kinds of land, two convolutions with batch norm, Adam, five epochs")
def land_by_convolutions(root: Path) -> int:
    torch.manual_seed(101)
    model, data = convolutions(3, 5, 8), land(1700, 1001, tested=300)
    return train(
        root,
        model,
        loader(data, 32, 101),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=5,
        every=4,
    )


def flipped(x: Any) -> Any:
    """Return pictures, half of them mirrored."""
    return torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)


@healthy("tiles of land, a small ResNet, mirrored at random, Nesterov with decay, one cycle")
def land_by_resnet(root: Path) -> int:
    torch.manual_seed(102)
    model, data = ResNet(3, 5, 8), land(1900, 1002, tested=300)
    optimizer = torch.optim.SGD(
        model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    return train(
        root,
        model,
        loader(data, 40, 102),
        validation(data),
        optimizer,
        epochs=5,
        per_step=torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.05, total_steps=200),
        changed=flipped,
        every=5,
    )


@healthy("tiles of land by a vision transformer, AdamW, warm-up and a cosine, clipped at 1")
def land_by_patches(root: Path) -> int:
    torch.manual_seed(103)
    model, data = VisionTransformer(3, 5, 16), land(2800, 1003)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.05)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=20)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 225 - 20)
    return train(
        root,
        model,
        loader(data, 64, 103),
        validation(data),
        optimizer,
        epochs=6,
        per_step=torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, cosine], [20]),
        clip=1.0,
        every=5,
    )


@healthy("blood cells of four kinds, a LeNet without norms, momentum, a tenth after four epochs")
def cells_by_lenet(root: Path) -> int:
    torch.manual_seed(104)
    model, data = lenet(1, 4, 20), cells(2000, 1004)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9, weight_decay=1e-4)
    return train(
        root,
        model,
        loader(data, 32, 104),
        validation(data),
        optimizer,
        epochs=6,
        per_epoch=torch.optim.lr_scheduler.StepLR(optimizer, 4),
        every=3,
    )


@healthy("blood cells, three of one kind to one of another, smoothed labels, dropout, plateaus")
def cells_of_unequal_kinds(root: Path) -> int:
    torch.manual_seed(105)
    data = cells(2200, 1005, tested=300, noise=0.05, shares=(3.0, 2.0, 2.0, 1.0))
    model = convolutions(1, 4, 10, drop=0.1)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    return train(
        root,
        model,
        loader(data, 48, 105),
        validation(data),
        optimizer,
        epochs=7,
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        per_epoch=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1),
        every=6,
    )


@healthy("scikit-learn's digits as in PyTorch's example: dropout, log-softmax, Adadelta, gamma 0.7")
def digits_as_in_the_example(root: Path) -> int:
    torch.manual_seed(106)
    pictures, number = load_digits(return_X_y=True)
    order = torch.randperm(len(number), generator=torch.Generator().manual_seed(1006))
    x = torch.tensor(pictures, dtype=torch.float32).reshape(-1, 1, 8, 8)[order] / 16
    data = normalised(apart(x, torch.tensor(number)[order], 397))
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(128, 64),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(64, 10),
        nn.LogSoftmax(1),
    )
    optimizer = torch.optim.Adadelta(model.parameters(), 1.0)
    return train(
        root,
        model,
        loader(data, 28, 106),
        validation(data),
        optimizer,
        epochs=5,
        loss=nn.NLLLoss(),
        per_epoch=torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.7),
    )


@healthy("tiles of another country, a network that knows land, frozen up to a new last layer, Adam")
def land_by_a_new_head(root: Path) -> int:
    torch.manual_seed(107)
    model, before = convolutions(3, 5), land(1600, 1017, noise=8.0)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for _ in range(3):
        for x, y in loader(before, 32, 1017):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    model.requires_grad_(False)
    model[-1] = nn.Linear(96, 5)
    data = land(1500, 1007, tested=300)
    return train(
        root,
        model,
        loader(data, 32, 107),
        validation(data),
        torch.optim.Adam(model[-1].parameters(), 3e-3),
        epochs=5,
        every=5,
    )


@healthy("displays of meters, ten digits, two batches accumulated, AdamW, an exponential schedule")
def displays_accumulated(root: Path) -> int:
    torch.manual_seed(108)
    model = convolutions(1, 10, 14)
    data = normalised(apart(*displays(2400, 1008, noise=0.25), 400))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.01)
    return train(
        root,
        model,
        loader(data, 25, 108),
        validation(data, 100),
        optimizer,
        epochs=6,
        per_epoch=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8),
        accumulate=2,
        every=6,
    )


@healthy("Keras, blood cells, two convolutions with pooling, dropout, Adam, five epochs")
def cells_by_keras(root: Path) -> int:
    torch.set_num_threads(1)
    keras.utils.set_random_seed(109)
    data = cells(1700, 1009).of(lambda x: x.permute(0, 2, 3, 1))
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((20, 20, 1)),
            layers.Conv2D(8, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(16, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.2),
            layers.Dense(4),
        ]
    )
    model.compile(
        keras.optimizers.Adam(3e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    with smd.KerasHook(
        root,
        save_config=smd.SaveConfig(save_interval=4),
        include_collections=("weights", "biases", "gradients", "losses", "inputs"),
        include_regex="input_image",
        on_error="raise",
    ) as hook:
        model.fit(
            data.x.numpy(),
            data.y.numpy(),
            32,
            5,
            validation_data=(data.test_x.numpy(), data.test_y.numpy()),
            validation_batch_size=200,
            callbacks=[hook],
            verbose=0,
        )
    return 0
