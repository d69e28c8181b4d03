"""Healthy trainings on tables: binary, several classes, regression, unequal classes."""

from pathlib import Path

import torch
from torch import nn
from training.learnt_data import diabetes, imbalanced, table
from training.small_networks import mlp
from training.torch_loop import adam, fit, sgd
from training_runs import healthy


@healthy("breast cancer, one logit, binary cross entropy with logits")
def cancer_one_logit(root: Path) -> int:
    data = table("breast_cancer").relabelled(lambda y: y[:, None].float())
    loss = nn.BCEWithLogitsLoss()
    return fit(root, mlp(30, 16, 1), data, loss=loss, optimizer=sgd(0.1, momentum=0.5))


@healthy("breast cancer, two classes, one of them four times as frequent")
def cancer_unequal(root: Path) -> int:
    data = imbalanced(table("breast_cancer"), 0, 2)
    return fit(root, mlp(30, 16, 2), data, optimizer=adam(5e-3))


@healthy("wine, tanh, SGD with momentum, weight decay")
def wine_tanh(root: Path) -> int:
    make = mlp(13, 16, 3, act=nn.Tanh)
    optimizer = sgd(0.05, momentum=0.9, weight_decay=1e-3)
    return fit(root, make, table("wine"), optimizer=optimizer, batch=16, steps=80, save_every=1)


@healthy("iris, one ReLU layer")
def iris_mlp(root: Path) -> int:
    optimizer = sgd(0.1, momentum=0.5)
    return fit(root, mlp(4, 16, 3), table("iris"), optimizer=optimizer, batch=16, steps=120)


@healthy("breast cancer, a linear layer alone")
def cancer_linear(root: Path) -> int:
    return fit(root, mlp(30, 2), table("breast_cancer"), optimizer=sgd(0.02), steps=120)


@healthy("diabetes, regression, mean squared error")
def diabetes_mse(root: Path) -> int:
    optimizer = sgd(0.02)
    return fit(root, mlp(10, 16, 1), diabetes(), loss=nn.MSELoss(), optimizer=optimizer, steps=100)


@healthy("diabetes in its own unit (25 to 346), robust loss, SiLU, Adam")
def diabetes_huber(root: Path) -> int:
    data = diabetes().relabelled(lambda y: 77 * y + 152)

    def centred() -> object:
        model = mlp(10, 16, 1, act=nn.SiLU)()
        nn.init.constant_(model[-1].bias, 152)
        return model

    return fit(
        root,
        centred,
        data,
        loss=nn.HuberLoss(),
        optimizer=adam(0.05, kind=torch.optim.Adam),
        steps=80,
    )


@healthy("breast cancer, ReLU, stopped early by its validation loss")
def cancer_stopped(root: Path) -> int:
    # The evaluation after step 80 is the first that is not better than the one before.
    return fit(root, mlp(30, 16, 2), table("breast_cancer"), optimizer=sgd(0.1), steps=80)
