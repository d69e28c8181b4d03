"""Trainings whose weights begin badly."""

import functools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import digits, images
from training.small_networks import Cnn, biased, deep, initialised, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

from runs_tuned.faulty.learning import BLOWN_UP, UNTRAINED

DEEP = UNTRAINED | {
    "PoorWeightInitialization": "the first gradients are tiny",
    "LossNotDecreasing": "the first layers do not learn",
    "UnchangedTensor": "the first layers do not move",
    "WeightUpdateRatio": "the first layers hardly move",
    "StalledParameters": "the first layers hardly move",
}


def normal(deviation: float) -> Any:
    return initialised(functools.partial(nn.init.normal_, std=deviation))


@faulty(
    "digits, twelve sigmoid layers",
    "what is left of the gradient does not reach the first layers",
    {"VanishingGradient", "LossNotDecreasing", "PoorWeightInitialization"},
    may=DEEP,
)
def deep_sigmoid(root: Path) -> int:
    make = mlp(*deep(12), act=nn.Sigmoid)
    return fit(root, make, digits(), save_every=4)


@faulty(
    "digits, convolutions before ten sigmoid layers",
    "a sigmoid stack without norms or residuals",
    {"VanishingGradient", "LossNotDecreasing"},
    may=DEEP,
)
def deep_sigmoid_head(root: Path) -> int:
    def make() -> Any:
        return nn.Sequential(Cnn(), mlp(10, *[16] * 12, 10, act=nn.Sigmoid)())

    return fit(root, make, images(), optimizer=adam(1e-3), save_every=4)


@faulty(
    "digits, six ReLU layers",
    "weights begin at a deviation of 1: each layer's variance is 32 times the last one's",
    {"PoorWeightInitialization"},
    may=BLOWN_UP,
)
def unit_normal(root: Path) -> int:
    return fit(root, mlp(*deep(6, 64), start=normal(1.0)), digits(), optimizer=sgd(1e-4))


@faulty(
    "digits, six ReLU layers",
    "weights begin at a deviation of 0.01: signals die away",
    {"PoorWeightInitialization", "VanishingGradient", "LossNotDecreasing"},
    may=DEEP | {"DeadRelu": "where no signal comes through biases decide for all samples"},
)
def tiny_normal(root: Path) -> int:
    return fit(root, mlp(*deep(6), start=normal(0.01)), digits())


@faulty(
    "digits, eight tanh layers",
    "weights begin at a deviation of 0.003",
    {"PoorWeightInitialization", "VanishingGradient", "LossNotDecreasing"},
    may=DEEP | {"TensorVariance": "weights of variance 1e-5"},
)
def tiny_tanh(root: Path) -> int:
    return fit(root, mlp(*deep(8), act=nn.Tanh, start=normal(0.003)), digits())


@faulty(
    "digits, two ReLU layers",
    "all weights and biases begin at zero",
    {"AllZero", "PoorWeightInitialization", "VanishingGradient", "TensorVariance", "DeadRelu"},
    may=DEEP,
)
def all_zero(root: Path) -> int:
    def start(model: Any) -> None:
        for one in model.parameters():
            nn.init.zeros_(one)

    return fit(root, mlp(64, 48, 32, 10, start=start), digits())


@faulty(
    "digits, three tanh layers",
    "the hidden weights begin at zero",
    {"AllZero", "TensorVariance", "VanishingGradient", "PoorWeightInitialization"},
    may=DEEP,
)
def zero_tanh(root: Path) -> int:
    make = mlp(64, 48, 48, 32, 10, act=nn.Tanh, start=initialised(nn.init.zeros_))
    return fit(root, make, digits(), optimizer=sgd(0.05))


@faulty(
    "digits, two ReLU layers",
    "all weights begin at the same 0.05: units never become different",
    {"TensorVariance"},
    may=DEEP
    | {
        "DeadRelu": "units of equal weights die together",
        "AllZero": "and are zero",
        "VanishingGradient": "gradients are tiny at the first steps, and grow from then on",
    },
)
def all_equal(root: Path) -> int:
    start = initialised(functools.partial(nn.init.constant_, val=0.05))
    return fit(root, mlp(64, 48, 32, 10, start=start), digits(), optimizer=sgd(0.02))


@faulty(
    "digits, five layers, the third ten times too large",
    "one layer's weights are read from a checkpoint of another scale",
    {"PoorWeightInitialization"},
    may=BLOWN_UP | {"StalledParameters": "updates are small beside weights that are too large"},
)
def one_layer_too_large(root: Path) -> int:
    def start(model: Any) -> None:
        with torch.no_grad():
            model[4].weight.mul_(30)

    return fit(root, mlp(*deep(5, 32), start=start), digits(), optimizer=sgd(0.01))


@faulty(
    "digits, convolutions and ReLU",
    "biases begin at -20: no unit is ever active",
    {"DeadRelu", "AllZero", "VanishingGradient", "LossNotDecreasing"},
    may=DEEP,
)
def bias_of_minus_20(root: Path) -> int:
    def make() -> Any:
        model = Cnn()
        biased(-20.0, nn.Conv2d, last=True)(model)
        return model

    return fit(root, make, images(), save_every=3)


@faulty(
    "digits, two ReLU layers",
    "biases begin at -8, by a slip in the initialisation of a focal loss",
    {"DeadRelu", "VanishingGradient", "AllZero"},
    may=DEEP,
)
def bias_of_minus_8(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10, start=biased(-8.0)), digits())


@faulty(
    "digits as 0..1, three ReLU layers",
    "weights begin negative: uniform in [-0.2, 0]",
    {"DeadRelu", "VanishingGradient", "AllZero"},
    may=DEEP | {"CheckInputImages": "0..1 is not centred"},
)
def negative_weights(root: Path) -> int:
    start = initialised(functools.partial(nn.init.uniform_, a=-0.2, b=0.0))
    data = digits().of(lambda x: (x - x.min()) / 4)
    return fit(root, mlp(64, 48, 48, 10, start=start), data)


@faulty(
    "digits, two ReLU layers",
    "weight decay of 2: weights shrink to nothing",
    {"TensorVariance", "LossNotDecreasing"},
    may=DEEP
    | {
        "PoorWeightInitialization": "weights have shrunk within its first steps",
        "VanishingGradient": "behind weights of nothing",
        "DeadRelu": "signals of nothing",
        "AllZero": "weights of nothing",
    },
)
def weight_decay_of_2(root: Path) -> int:
    optimizer = sgd(0.1, weight_decay=2.0)
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=optimizer)
