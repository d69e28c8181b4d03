"""Healthy image classifiers: signs, cloth, calls of birds as spectrograms, and digits."""

import os
from pathlib import Path
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import nn
from training_runs import healthy

from runs_held_out.data_and_trees.shared.loops import (
    adamw,
    held_back,
    learn,
    shuffled,
    warm_then_cosine,
)
from runs_held_out.data_and_trees.shared.networks import ConvNext, Dense, mobile, vgg
from runs_held_out.data_and_trees.shared.pictures import (
    call_data,
    cloth_data,
    parts,
    sign_data,
    standardised,
)

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd


@healthy("six signs in colours, separable convolutions with batch norm, Adam, one cycle of rates")
def signs_by_separable_convolutions(root: Path) -> int:
    torch.manual_seed(811)
    model, data = mobile(3, 6, 16, drop=0.0), sign_data(2400, 8011, bright=True)
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return learn(
        root,
        model,
        shuffled(data, 32, 811),
        held_back(data),
        optimizer,
        epochs=6,
        each_step=torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=372),
        save_every=6,
    )


def moved(x: Any) -> Any:
    """Return pictures that are moved by up to two pixels, as padding and cropping does."""
    wide = nn.functional.pad(x, (2, 2, 2, 2), mode="replicate")
    down, across = torch.randint(0, 5, (2,)).tolist()
    return wide[:, :, down : down + x.shape[2], across : across + x.shape[3]]


@healthy("signs, plain convolutions, moved at random, Nesterov with decay, a tenth at two thirds")
def signs_moved_at_random(root: Path) -> int:
    torch.manual_seed(812)
    model, data = vgg(3, 6, norm=True, drop=0.2), sign_data(2000, 8012)
    optimizer = torch.optim.SGD(
        model.parameters(), 0.02, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    return learn(
        root,
        model,
        shuffled(data, 40, 812),
        held_back(data),
        optimizer,
        epochs=6,
        each_epoch=torch.optim.lr_scheduler.MultiStepLR(optimizer, [4]),
        augment=moved,
        save_every=4,
    )


@healthy("four kinds of cloth in 12 bits, a small ConvNeXt, AdamW, warm-up and a cosine, clipped")
def cloth_by_convnext(root: Path) -> int:
    torch.manual_seed(813)
    model, data = ConvNext(1, 4), cloth_data(1900, 8013, tested=300, noise=150.0)
    optimizer = adamw(model, 6e-3, 0.05)
    return learn(
        root,
        model,
        shuffled(data, 40, 813),
        held_back(data),
        optimizer,
        epochs=6,
        each_step=warm_then_cosine(optimizer, 20, 240),
        clip=1.0,
        save_every=5,
    )


@healthy("cloth, twice as much plain as with a hole, group norms, smoothed labels, RMSprop")
def cloth_with_few_holes(root: Path) -> int:
    torch.manual_seed(814)
    model, data = Dense(1, 4), cloth_data(1800, 8014, tested=300, shares=(2.0, 1.5, 1.5, 1.0))
    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3, alpha=0.9)
    return learn(
        root,
        model,
        shuffled(data, 32, 814),
        held_back(data),
        optimizer,
        epochs=6,
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        each_epoch=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.7),
        save_every=4,
    )


def masked(x: Any) -> Any:
    """Return spectrograms of which a few tones and a few moments are silenced (SpecAugment)."""
    x = x.clone()
    tone, time = int(torch.randint(0, 21, ())), int(torch.randint(0, 28, ()))
    x[:, :, tone : tone + 3] = 0.0
    x[..., time : time + 4] = 0.0
    return x


@healthy("birds' calls as spectrograms, convolutions, tones and moments masked, Adam, plateaus")
def calls_with_masks(root: Path) -> int:
    torch.manual_seed(815)
    model, data = vgg(1, 5, 10, norm=True, drop=0.1), call_data(2000, 8015, noise=13.0)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3, weight_decay=1e-5)
    return learn(
        root,
        model,
        shuffled(data, 32, 815),
        held_back(data),
        optimizer,
        epochs=6,
        on_plateau=torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1),
        augment=masked,
        save_every=4,
    )


@healthy("calls of another region by a network that knows calls, a new head, a lower rate below it")
def calls_fine_tuned(root: Path) -> int:
    torch.manual_seed(816)
    model, before = mobile(1, 5, 10), call_data(1700, 8026, tested=100)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    for _ in range(3):
        for x, y in shuffled(before, 32, 8026):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    model[-1] = nn.Linear(30, 5)
    data = call_data(1500, 8016, tested=300, noise=13.0)
    groups = [
        {"params": model[:-1].parameters(), "lr": 3e-4},
        {"params": model[-1].parameters(), "lr": 5e-3},
    ]
    return learn(
        root,
        model,
        shuffled(data, 32, 816),
        held_back(data),
        torch.optim.AdamW(groups, weight_decay=0.01),
        epochs=5,
        save_every=4,
    )


@healthy("scikit-learn's digits, a LeNet with tanh, momentum, evaluated every 20 steps")
def digits_by_lenet_with_tanh(root: Path) -> int:
    torch.manual_seed(817)
    pictures, number = load_digits(return_X_y=True)
    order = torch.randperm(len(number), generator=torch.Generator().manual_seed(8017))
    x = torch.tensor(pictures, dtype=torch.float32).reshape(-1, 1, 8, 8)[order]
    data = standardised(parts(x, torch.tensor(number)[order], 397))
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, padding=1),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(12, 24, 3),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(96, 48),
        nn.Tanh(),
        nn.Linear(48, 10),
    )
    return learn(
        root,
        model,
        shuffled(data, 35, 817),
        held_back(data),
        torch.optim.SGD(model.parameters(), 0.03, momentum=0.9),
        epochs=5,
        check_every=20,
    )


@healthy("Keras, signs, convolutions with batch norm and dropout, Adam, five epochs")
def signs_by_keras(root: Path) -> int:
    torch.set_num_threads(1)
    keras.utils.set_random_seed(818)
    data = sign_data(1900, 8018, bright=True).of(lambda x: x.permute(0, 2, 3, 1))
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((20, 20, 3)),
            layers.Conv2D(12, 3, padding="same", use_bias=False),
            layers.BatchNormalization(momentum=0.9),
            layers.ReLU(),
            layers.MaxPooling2D(),
            layers.Conv2D(24, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(32, activation="relu"),
            layers.Dense(6),
        ]
    )
    model.compile(
        keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    with smd.KerasHook(
        root,
        save_config=smd.SaveConfig(save_interval=5),
        include_collections=("weights", "biases", "gradients", "losses", "inputs"),
        include_regex="input_image",
        on_error="raise",
    ) as hook:
        model.fit(
            data.x.numpy(),
            data.y.numpy(),
            40,
            5,
            validation_data=(data.test_x.numpy(), data.test_y.numpy()),
            validation_batch_size=100,
            callbacks=[hook],
            verbose=0,
        )
    return 0
