"""Noisy fits: a polynomial of the fourth degree, as in pytorch/examples, by ten seeds."""

from pathlib import Path

import torch
from torch import nn
from training.learnt_data import Split, diabetes
from training.small_networks import mlp
from training.torch_loop import adam, fit, sgd, watched
from training_runs import Train, healthy

DEGREE = 4


def polynomial(root: Path, seed: int) -> int:
    """Fit a linear layer to a random polynomial, one batch of 32 to a step."""
    torch.manual_seed(seed)
    weight, bias = 5 * torch.randn(DEGREE, 1), 5 * torch.randn(1)
    model, loss = nn.Linear(DEGREE, 1), nn.SmoothL1Loss()
    with watched(root, model, losses=[loss], save_every=1):
        for _ in range(200):
            x = torch.randn(32)
            powers = torch.stack([x**power for power in range(1, DEGREE + 1)], 1)
            model.zero_grad()
            loss(model(powers), powers @ weight + bias).backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.sub_(0.1 * parameter.grad)
    return 0


def of_seed(seed: int) -> Train:
    """Return the training of a seed, under a name of its own."""

    def train(root: Path) -> int:
        return polynomial(root, seed)

    train.__name__ = f"polynomial_{seed}"
    return train


for _seed in range(10):
    healthy(
        f"a polynomial of degree 4 with random coefficients, seed {_seed}",
        unsuited={"TensorVariance": "coefficients of variance 25; the limit of 10 is for networks"},
    )(of_seed(_seed))


def noisy(share: float) -> Split:
    """Return the diabetes table, its targets mixed with noise."""
    generator = torch.Generator().manual_seed(0)
    return diabetes().relabelled(
        lambda y: (1 - share) * y + share * torch.randn(y.shape, generator=generator)
    )


@healthy("diabetes, targets half of which are noise, small batches, weight decay")
def diabetes_half_noise(root: Path) -> int:
    optimizer = sgd(0.005, weight_decay=0.01)
    return fit(
        root, mlp(10, 8, 1), noisy(0.5), loss=nn.MSELoss(), optimizer=optimizer, batch=8, steps=150
    )


@healthy("diabetes, evaluated on 15 rows")
def diabetes_validated_on_15_rows(root: Path) -> int:
    data = diabetes()
    small = Split(data.x, data.y, data.test_x[:15], data.test_y[:15])
    return fit(root, mlp(10, 8, 1), small, loss=nn.MSELoss(), optimizer=sgd(0.01), steps=120)


@healthy("diabetes, absolute errors, Adam, batches of 4")
def diabetes_batches_of_4(root: Path) -> int:
    optimizer = adam(1e-3)
    return fit(
        root,
        mlp(10, 8, 1),
        diabetes(),
        loss=nn.L1Loss(),
        optimizer=optimizer,
        batch=4,
        steps=240,
        save_every=4,
    )
