"""Healthy trainings on signals, sequences, points, pairs and graphs."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, fit, sgd, watched
from training_runs import healthy

from runs_tuned.first_held_out.supervised.generated_data import (
    clouds,
    load_of_a_grid,
    nodes,
    signals,
)
from runs_tuned.first_held_out.supervised.networks import (
    Forecaster,
    GraphConvolution,
    PointNet,
    Temporal,
)


@healthy("clouds of points, the same layers for each, batch norm and dropout, a falling rate")
def clouds_points(root: Path) -> int:
    return fit(
        root,
        PointNet,
        clouds(),
        optimizer=adam(5e-3, weight_decay=1e-4),
        schedule=lambda step: 0.7 ** (step // 30),
        steps=180,
        save_every=3,
        validate_every=30,
    )


@healthy("signals, dilated convolutions with weight norm, a cosine that restarts twice")
def signals_restarts(root: Path) -> int:
    def rate(step: int) -> float:
        length = 40 if step < 40 else 80
        phase = step / 40 if step < 40 else (step - 40) % 80 / length
        return 0.01 + 0.99 * 0.5 * (1 + float(torch.cos(torch.tensor(3.14159 * phase))))

    return fit(
        root,
        lambda: Temporal(2, 4),
        signals(),
        optimizer=adam(8e-3, kind=torch.optim.AdamW, weight_decay=0.02),
        schedule=rate,
        clip=1.0,
        steps=200,
        save_every=4,
    )


@healthy("load of a grid, a bidirectional GRU, four hours ahead, clipped, every fifth step saved")
def load_forecast(root: Path) -> int:
    return fit(
        root,
        Forecaster,
        load_of_a_grid(),
        loss=nn.HuberLoss(delta=0.5),
        optimizer=adam(1e-3, kind=torch.optim.RMSprop, alpha=0.9),
        clip=0.5,
        batch=25,
        steps=250,
        save_every=5,
        validate_every=50,
        validate_batch=50,
    )


@healthy("communities of a graph, two graph convolutions, the whole graph at each step")
def communities_graph(root: Path) -> int:
    data = nodes()
    return fit(
        root,
        GraphConvolution,
        data,
        optimizer=adam(4e-3, weight_decay=5e-3),
        batch=len(data.x),
        steps=150,
        save_every=2,
        validate_every=15,
    )


class PairLoss(nn.Module):
    """Squared distances of like pairs, and how far unlike ones are within a margin."""

    def forward(self, first: Any, second: Any, is_same: Any) -> Any:
        distance = nn.functional.pairwise_distance(first, second)
        apart = (1.5 - distance).clamp(min=0) ** 2
        return torch.where(is_same, distance**2, apart).mean()


@healthy("pairs of signals, twin networks and a margin: half of the losses are zero at the end")
def signal_pairs(root: Path) -> int:
    torch.manual_seed(8)
    data, loss = signals(), PairLoss()
    twin = nn.Sequential(
        nn.Conv1d(2, 16, 5, 2), nn.ReLU(), nn.Conv1d(16, 24, 5, 2), nn.ReLU(), nn.AvgPool1d(9)
    )
    model = nn.Sequential(twin, nn.Flatten(), nn.Linear(24, 8))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    generator = torch.Generator().manual_seed(8)
    with watched(root, model, losses=[loss], save_every=3, modes=False) as watching:
        del watching  # this script never evaluates, and knows no modes
        for _ in range(200):
            rows = torch.randint(0, len(data.x), (64,), generator=generator)
            first, second = model(data.x[rows]).chunk(2)
            loss(first, second, data.y[rows[:32]] == data.y[rows[32:]]).backward()
            optimizer.step()
            optimizer.zero_grad()
    return 0


@healthy("signals, a network of two rates of time, SGD with plain decay, batches of 8")
def signals_small_batches(root: Path) -> int:
    class TwoRates(nn.Module):
        """A fine and a coarse branch, side by side."""

        def __init__(self) -> None:
            super().__init__()
            self.fine, self.coarse = nn.Conv1d(2, 12, 5), nn.Conv1d(2, 12, 9, dilation=2)
            self.act, self.head = nn.ReLU6(), nn.Linear(24, 4)

        def forward(self, x: Any) -> Any:
            branches = [self.act(self.fine(x)).mean(2), self.act(self.coarse(x)).amax(2)]
            return self.head(torch.cat(branches, 1))

    return fit(
        root,
        TwoRates,
        signals(),
        optimizer=sgd(0.03, weight_decay=1e-3),
        batch=8,
        steps=500,
        save_every=5,
        validate_every=100,
        validate_batch=30,
    )
