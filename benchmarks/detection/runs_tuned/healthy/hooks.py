"""Healthy trainings that are saved in other ways: no modes, reductions, two workers, Keras."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import digits, images, table
from training.small_networks import Cnn, mlp
from training.torch_loop import adam, batches, fit, hook, sgd
from training_runs import healthy

import smdebug.pytorch as smd
from smdebug.core.hook import Hook
from smdebug.core.modes import ModeKeys


@healthy("digits, a script that knows no modes and evaluates nothing")
def digits_no_modes(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), validate_every=0, steps=300, save_every=4)


@healthy("digits, convolutions, no modes, every step saved")
def digits_cnn_no_modes(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, Cnn, images(), optimizer=optimizer, validate_every=0, save_every=1, steps=160)


@healthy("digits, only reductions saved")
def digits_reductions(root: Path) -> int:
    reductions = smd.ReductionConfig(
        reductions=["min", "max", "mean", "variance"], abs_reductions=["min", "max", "mean"]
    )
    return fit(
        root, mlp(64, 48, 32, 10), digits(), reduction_config=reductions, steps=240, save_every=4
    )


@healthy("digits, losses alone saved")
def digits_losses_only(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(
        root,
        mlp(64, 48, 10),
        digits(),
        optimizer=optimizer,
        include_collections=["losses"],
        steps=200,
        save_every=1,
    )


@healthy("digits, convolutions, computed in bfloat16 where PyTorch deems it safe")
def digits_bfloat16(root: Path) -> int:
    def make() -> Any:
        model = Cnn()
        model.forward = torch.autocast("cpu", dtype=torch.bfloat16)(model.forward)
        return model

    return fit(
        root,
        make,
        images(),
        optimizer=sgd(0.05, momentum=0.9),
        steps=240,
        save_every=4,
        validate_every=40,
    )


@healthy("digits, two workers that average their gradients")
def digits_two_workers(root: Path) -> int:
    torch.set_num_threads(1)
    models, hooks, shards = [], [], []
    data = digits()
    for rank in range(2):
        torch.manual_seed(0)
        models.append(mlp(64, 48, 32, 10)())
        hooks.append(hook(root, 5, include_workers="all", rank=rank, world_size=2))
        shards.append(batches(data.chosen(slice(rank, None, 2)), 32, rank))
    losses = [nn.CrossEntropyLoss() for _ in models]
    optimizers = [torch.optim.SGD(model.parameters(), 0.1, momentum=0.5) for model in models]
    for watching, model, loss in zip(hooks, models, losses, strict=True):
        watching.register_module(model)
        watching.register_loss(loss)
        watching.set_mode(ModeKeys.TRAIN)
    for _ in range(300):
        for model, loss, shard in zip(models, losses, shards, strict=True):
            x, y = next(shard)
            loss(model(x), y).backward()
        for pair in zip(*(model.parameters() for model in models), strict=True):
            mean = (pair[0].grad + pair[1].grad) / 2
            for one in pair:
                one.grad = mean.clone()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    for watching in hooks:
        watching.close()
    return 0


@healthy("breast cancer, logistic regression in plain numpy, with the hook for any loop")
def cancer_numpy(root: Path) -> int:
    data = table("breast_cancer")
    x, y = data.x.numpy(), data.y.numpy()
    weight, rng = np.zeros(30), np.random.default_rng(0)
    saving = smd.SaveConfig(save_interval=2)
    with Hook(root, save_config=saving, save_all=True, on_error="raise") as watching:
        for _ in range(120):
            rows = rng.integers(0, len(x), 64)
            chance = 1 / (1 + np.exp(-x[rows] @ weight))
            gradient = x[rows].T @ (chance - y[rows]) / len(rows)
            right = np.where(y[rows] == 1, chance, 1 - chance)
            watching.save_tensor("loss", -np.log(right).mean(), "losses")
            watching.save_tensor("gradient/weight", gradient, "gradients")
            weight = weight - 0.1 * gradient
            watching.save_tensor("weight", weight, "weights")
            watching.save_tensor("labels", y[rows], "labels")
            watching.save_tensor("predictions", chance, "predictions")
            watching.step()
    return 0


@healthy("Keras, digits, channels last, convolutions, Adam")
def keras_cnn(root: Path) -> int:
    from training import keras_training

    return keras_training.cnn(root)


@healthy("Keras, digits, dense ReLU layers, SGD")
def keras_mlp(root: Path) -> int:
    from training import keras_training

    return keras_training.mlp(root)


@healthy("digits, two layers with SELU, Adam, weights saved every 20th step only")
def digits_seldom(root: Path) -> int:
    make = mlp(64, 48, 32, 10, act=nn.SELU)
    return fit(
        root, make, digits(), optimizer=adam(2e-3), save_every=20, steps=400, validate_every=100
    )
