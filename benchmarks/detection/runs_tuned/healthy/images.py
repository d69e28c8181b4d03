"""Healthy trainings on images of digits: optimizers, batch sizes, norms, dropout, activations."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import coloured, digits, images
from training.small_networks import Autoencoder, Cnn, Residual, deep, initialised, mlp, trained
from training.torch_loop import adam, fit, sgd
from training_runs import healthy


@healthy("digits, two ReLU layers, plain SGD")
def digits_sgd(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), steps=400, save_every=5, validate_every=50)


@healthy("digits, two ReLU layers, SGD with momentum, every step saved")
def digits_momentum(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=optimizer, save_every=1, steps=160)


@healthy("digits, two ReLU layers, Adam, evaluated in four batches")
def digits_adam(root: Path) -> int:
    return fit(
        root,
        mlp(64, 48, 32, 10),
        digits(),
        optimizer=adam(),
        batch=64,
        validate_batch=113,
        steps=160,
    )


@healthy("digits, GELU and layer norm, AdamW with weight decay")
def digits_adamw(root: Path) -> int:
    make = mlp(64, 48, 32, 10, act=nn.GELU, norm=nn.LayerNorm)
    optimizer = adam(kind=torch.optim.AdamW, weight_decay=0.05)
    return fit(root, make, digits(), optimizer=optimizer, batch=128, steps=80)


@healthy("digits, two tanh layers, RMSprop")
def digits_rmsprop(root: Path) -> int:
    optimizer = adam(1e-3, kind=torch.optim.RMSprop)
    return fit(
        root,
        mlp(64, 48, 32, 10, act=nn.Tanh),
        digits(),
        optimizer=optimizer,
        steps=240,
        save_every=4,
    )


@healthy("digits, batches of 4")
def digits_batches_of_4(root: Path) -> int:
    make = mlp(64, 32, 10)
    return fit(
        root,
        make,
        digits(),
        optimizer=sgd(0.02),
        batch=4,
        steps=1600,
        save_every=16,
        validate_every=200,
    )


@healthy("digits, batches of 256")
def digits_batches_of_256(root: Path) -> int:
    optimizer = sgd(0.2, momentum=0.9)
    return fit(root, mlp(64, 48, 10), digits(), optimizer=optimizer, batch=256, steps=80)


@healthy("digits, convolutions, ReLU and pooling")
def digits_cnn(root: Path) -> int:
    return fit(
        root,
        Cnn,
        images(),
        optimizer=sgd(0.05, momentum=0.9),
        steps=300,
        save_every=5,
        validate_every=30,
    )


@healthy("digits, convolutions with batch norm")
def digits_cnn_batch_norm(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, lambda: Cnn(norm=True), images(), optimizer=optimizer, save_every=3)


@healthy("coloured digits, convolutions, three channels, Adam")
def coloured_cnn(root: Path) -> int:
    return fit(
        root,
        lambda: Cnn(3),
        coloured(),
        optimizer=adam(5e-3),
        steps=300,
        save_every=5,
        validate_every=30,
    )


@healthy("digits, dropout of a third in each layer")
def digits_dropout(root: Path) -> int:
    make = mlp(64, 64, 48, 10, drop=0.3)
    return fit(
        root,
        make,
        digits(),
        optimizer=sgd(0.1, momentum=0.5),
        steps=300,
        save_every=4,
        validate_every=30,
    )


@healthy("digits, five layers with batch norm")
def digits_deep_batch_norm(root: Path) -> int:
    make = mlp(*deep(5, 32), norm=nn.BatchNorm1d)
    return fit(root, make, digits(), optimizer=sgd(0.1), steps=240, save_every=4)


@healthy("digits, three leaky ReLU layers, cosine schedule of the learning rate")
def digits_leaky_cosine(root: Path) -> int:
    def rate(step: int) -> float:
        return 0.5 * (1 + float(torch.cos(torch.tensor(3.14159 * step / 240))))

    make = mlp(64, 48, 48, 32, 10, act=nn.LeakyReLU)
    optimizer = sgd(0.1, momentum=0.8)
    return fit(root, make, digits(), optimizer=optimizer, schedule=rate, steps=240)


@healthy("digits, eight residual blocks")
def digits_residual(root: Path) -> int:
    return fit(
        root, lambda: Residual(64, 10), digits(), optimizer=adam(2e-3), steps=160, save_every=4
    )


@healthy("digits, one sigmoid layer")
def digits_sigmoid(root: Path) -> int:
    make = mlp(64, 32, 10, act=nn.Sigmoid)
    return fit(
        root,
        make,
        digits(),
        optimizer=sgd(0.5, momentum=0.5),
        steps=300,
        save_every=4,
        validate_every=30,
    )


@healthy("digits, four ReLU layers initialised by He's rule")
def digits_he(root: Path) -> int:
    def he(weight: Any) -> None:
        nn.init.kaiming_normal_(weight, nonlinearity="relu")

    return fit(
        root,
        mlp(*deep(4, 48), start=initialised(he)),
        digits(),
        optimizer=sgd(0.02, momentum=0.5),
        steps=240,
        save_every=4,
    )


@healthy("digits, autoencoder with mean squared error", kind="autoencoder")
def digits_autoencoder(root: Path) -> int:
    data = digits()
    both = type(data)(data.x, data.x, data.test_x, data.test_x)
    return fit(root, Autoencoder, both, loss=nn.MSELoss(), optimizer=adam(3e-3), steps=160)


@healthy("digits, autoencoder of a tenth of their contrast: losses far below 1", kind="autoencoder")
def digits_autoencoder_of_small_numbers(root: Path) -> int:
    data = digits()
    both = type(data)(data.x, data.x * 0.1, data.test_x, data.test_x * 0.1)
    return fit(root, Autoencoder, both, loss=nn.MSELoss(), optimizer=adam(3e-3), steps=160)


@healthy("digits 5 to 9 with a network that knows 0 to 4, its first layers frozen")
def digits_transfer(root: Path) -> int:
    data = digits()
    low, high = data.chosen(data.y < 5), data.chosen(data.y >= 5)
    new = type(data)(
        high.x, high.y - 5, data.test_x[data.test_y >= 5], data.test_y[data.test_y >= 5] - 5
    )

    def make() -> Any:
        model = trained(mlp(64, 48, 32, 10), low, 150)
        for layer in model[:2]:
            layer.requires_grad_(False)
        model[-1] = nn.Linear(32, 5)
        return model

    return fit(root, make, new, optimizer=adam(3e-3), steps=300, save_every=5)


@healthy("digits, gradients of four batches accumulated, label smoothing")
def digits_accumulated(root: Path) -> int:
    return fit(
        root,
        mlp(64, 48, 10),
        digits(),
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        batch=16,
        accumulate=4,
        optimizer=sgd(0.05, momentum=0.9),
        steps=320,
        save_every=4,
        validate_every=80,
    )
