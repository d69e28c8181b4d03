"""Trainings whose activations are saturated or dead."""

import functools
from pathlib import Path
from typing import Any

import torch
from sklearn import datasets as bundled
from torch import nn
from training.learnt_data import digits, images, pixels, table
from training.small_networks import Cnn, biased, deep, initialised, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.faulty.learning import BLOWN_UP, UNTRAINED

SATURATED = UNTRAINED | {
    "VanishingGradient": "saturated units pass no gradient on",
    "LossNotDecreasing": "saturated units do not learn",
    "UnchangedTensor": "saturated units do not move",
    "WeightUpdateRatio": "saturated units hardly move",
    "TensorVariance": "weights are far too large",
    "AllZero": "gradients are zero to the last bit",
    "StalledParameters": "saturated units do not move",
}


@faulty(
    "digits of 0..255, two tanh layers",
    "pixels are not scaled: tanh sees inputs in the hundreds",
    {"SaturatedActivation"},
    may=SATURATED,
)
def raw_pixels_tanh(root: Path) -> int:
    data = pixels().of(lambda x: x.flatten(1))
    return fit(root, mlp(64, 48, 32, 10, act=nn.Tanh), data)


@faulty(
    "digits of 0..255, a wide sigmoid layer",
    "pixels are not scaled: sigmoid sees inputs in the hundreds",
    {"SaturatedActivation"},
    may=SATURATED,
)
def raw_pixels_sigmoid(root: Path) -> int:
    data = pixels().of(lambda x: x.flatten(1))
    return fit(root, mlp(64, 32, 10, act=nn.Sigmoid), data)


@faulty(
    "digits, three tanh layers",
    "weights begin at a deviation of 5",
    {"SaturatedActivation", "TensorVariance"},
    may=SATURATED,
)
def large_weights_tanh(root: Path) -> int:
    start = initialised(functools.partial(nn.init.normal_, std=5.0))
    return fit(root, mlp(64, 48, 48, 32, 10, act=nn.Tanh, start=start), digits())


@faulty(
    "digits, two sigmoid layers",
    "biases begin at -40",
    {"SaturatedActivation", "VanishingGradient", "LossNotDecreasing"},
    may=SATURATED,
)
def bias_of_minus_40_sigmoid(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10, act=nn.Sigmoid, start=biased(-40.0)), digits())


@faulty(
    "digits, two tanh layers",
    "a learning rate of 100 drives the units into saturation",
    {"SaturatedActivation", "TensorVariance", "LossNotDecreasing", "WeightUpdateRatio"},
    may=SATURATED | BLOWN_UP,
)
def rate_saturates_tanh(root: Path) -> int:
    make = mlp(64, 48, 32, 10, act=nn.Tanh)
    return fit(root, make, digits(), optimizer=sgd(100.0), steps=100)


@faulty(
    "breast cancer with features in their own units, tanh",
    "features (areas of up to 2,500) are not standardised",
    {"SaturatedActivation"},
    may=SATURATED,
)
def raw_features_tanh(root: Path) -> int:
    raw = torch.tensor(bundled.load_breast_cancer().data, dtype=torch.float32)
    data = table("breast_cancer").of(lambda x: x * raw.std(0) + raw.mean(0))
    return fit(root, mlp(30, 24, 2, act=nn.Tanh), data, optimizer=sgd(0.02))


@faulty(
    "digits, tanh, Adam",
    "the learning rate jumps from 3e-3 to 1 at step 50",
    {"LearningRate", "SaturatedActivation", "LossNotDecreasing", "WeightUpdateRatio"},
    may=SATURATED | BLOWN_UP,
)
def rate_jumps_tanh(root: Path) -> int:
    def change(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] = 1.0

    make = mlp(64, 48, 32, 10, act=nn.Tanh)
    return fit(root, make, digits(), optimizer=adam(), at=50, change=change, save_every=1)


@faulty(
    "digits, four ReLU layers, Adam",
    "a learning rate of 0.3 kills most units within a few steps",
    {"DeadRelu"},
    may=BLOWN_UP,
)
def adam_kills_relus(root: Path) -> int:
    return fit(root, mlp(*deep(4, 48)), digits(), optimizer=adam(0.3), steps=100)


@faulty(
    "digits, convolutions, ReLU",
    "biases are drifting: at step 50 a patch sets them to -30",
    {"DeadRelu", "AllZero", "VanishingGradient", "LossNotDecreasing"},
    may=BLOWN_UP,
)
def relus_killed_midway(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        biased(-30.0, nn.Conv2d, last=True)(model)

    return fit(root, Cnn, images(), at=50, change=change)
