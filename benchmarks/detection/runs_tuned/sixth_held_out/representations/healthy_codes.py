"""Healthy autoencoders: variational, denoising, with a book of vectors, and sparse."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.representations.shared.figures import (
    BEAT,
    LEAF,
    heartbeats,
    leaves,
    patients,
    rosettes,
    tiles,
)
from runs_tuned.sixth_held_out.representations.shared.loop import (
    in_turns,
    rows_of,
    teach,
    up_and_down,
)
from runs_tuned.sixth_held_out.representations.shared.networks import Codes, dense

of_codes = functools.partial(training_runs.healthy, kind="autoencoder")


def bound(model: Any, weight: Any, noise: float) -> Any:
    """Return the objective of a variational autoencoder, by a weight that changes with the step."""
    count = [0]

    def objective(batch: Any, hook: Any) -> Any:
        count[0] += model.training
        drawn, nats = model(batch[0], hook)
        errors = (drawn - batch[0]).pow(2).sum(1).mean() / (2 * noise**2)
        return (errors + weight(count[0]) * nats.sum(1).mean()) / batch[0].shape[1]

    return objective


@of_codes("a variational autoencoder of leaves, the divergence warms up for 50 steps, AdamW, SiLU")
def codes_of_leaves(root: Path) -> int:
    torch.manual_seed(660)
    x, _ = leaves(seed=1)
    model = Codes(LEAF, 6, act=nn.SiLU)
    return teach(
        root,
        model,
        rows_of(x[:1000], seed=660),
        bound(model, lambda step: min(1.0, step / 50), 0.4),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=200,
        save_every=3,
        test=(x[1000:],),
    )


@of_codes("a variational autoencoder of coloured tiles, twice the weight, NAdam, restarts, clipped")
def codes_of_tiles(root: Path) -> int:
    torch.manual_seed(661)
    model = Codes(75, 12, width=96, act=nn.GELU)
    return teach(
        root,
        model,
        rows_of(tiles(), size=48, seed=661),
        bound(model, lambda _: 2.0, 0.4),
        torch.optim.NAdam(model.parameters(), 2e-3),
        rate=in_turns(60),
        limit=2.0,
        steps=180,
        save_every=3,
    )


@of_codes("patients by a variational autoencoder that is told how their illness went on, Adam")
def codes_of_patients_told(root: Path) -> int:
    torch.manual_seed(662)
    x, y = patients()
    model = Codes(10, 4, width=48, act=nn.Tanh, told=1)

    def objective(batch: Any, hook: Any) -> Any:
        drawn, nats = model(batch[0], hook, batch[1])
        return (drawn - batch[0]).pow(2).sum(1).mean() / 0.5 + nats.sum(1).mean()

    return teach(
        root,
        model,
        rows_of(x[:380], y[:380, None], size=38, seed=662),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=200,
        test=(x[380:], y[380:, None]),
    )


@of_codes("rosettes by convolutions and back, batch norm, cross entropy of pixels, SGD, momentum")
def rosettes_by_convolutions(root: Path) -> int:
    torch.manual_seed(663)
    x, _ = rosettes(seed=1)
    model = nn.Sequential(
        nn.Conv2d(1, 12, 3, stride=2, padding=1),
        nn.BatchNorm2d(12),
        nn.ReLU(),
        nn.Conv2d(12, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 16),
        nn.Linear(16, 144),
        nn.ReLU(),
        nn.Unflatten(1, (16, 3, 3)),
        nn.ConvTranspose2d(16, 12, 4, stride=2, padding=1),
        nn.ReLU(),
        nn.ConvTranspose2d(12, 1, 4, stride=2, padding=1),
    )
    loss = nn.BCEWithLogitsLoss()
    return teach(
        root,
        model,
        rows_of(x[:1000], seed=663),
        lambda batch, _: loss(model((batch[0] - 0.4) / 0.4), batch[0]),
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        watched_losses=(loss,),
        rate=up_and_down(10, 150),
        save_every=3,
        test=(x[1000:],),
    )


@of_codes("curves of hearts from noisy ones with a quarter left out, dilated convolutions, Adamax")
def hearts_cleaned(root: Path) -> int:
    torch.manual_seed(664)
    x, _ = heartbeats(seed=1)
    model = nn.Sequential(
        nn.Conv1d(2, 16, 5, padding=2),
        nn.LeakyReLU(0.1),
        nn.Conv1d(16, 16, 5, padding=4, dilation=2),
        nn.LeakyReLU(0.1),
        nn.Conv1d(16, 16, 5, padding=8, dilation=4),
        nn.LeakyReLU(0.1),
        nn.Conv1d(16, 1, 1),
    )
    loss = nn.MSELoss()

    def objective(batch: Any, _: Any) -> Any:
        is_there = (torch.rand(len(batch[0]), BEAT // 4) > 0.25).repeat_interleave(4, 1)
        noisy = (batch[0] + 0.3 * torch.randn_like(batch[0])) * is_there
        cleaned = model(torch.stack([noisy, is_there.float()], 1))
        return loss(cleaned[:, 0], batch[0])

    return teach(
        root,
        model,
        rows_of(x, seed=664),
        objective,
        torch.optim.Adamax(model.parameters(), 8e-3),
        watched_losses=(loss,),
        steps=180,
        save_every=3,
    )


class Booked(nn.Module):
    """Writes rows by the nearest of learnt vectors, four times each."""

    def __init__(self, size: int, entries: int = 32) -> None:
        super().__init__()
        self.encoder = dense(size, 64, 32, act=nn.ELU)
        self.decoder = dense(32, 64, size, act=nn.ELU)
        self.book = nn.Parameter(torch.randn(entries, 8))

    def forward(self, x: Any) -> tuple[Any, Any]:
        code = functional.layer_norm(self.encoder(x), (32,)).unflatten(1, (4, 8))
        nearest = torch.cdist(code, self.book.expand(len(x), -1, -1)).argmin(-1)
        entry = self.book[nearest]
        moved = (entry - code.detach()).pow(2).mean() + 0.25 * (code - entry.detach()).pow(2).mean()
        return self.decoder((code + (entry - code).detach()).flatten(1)), moved


@of_codes("leaves by a book of 32 vectors, four of them a leaf (VQ), Adam, a level rate")
def leaves_by_a_book(root: Path) -> int:
    torch.manual_seed(665)
    model = Booked(LEAF)

    def objective(batch: Any, hook: Any) -> Any:
        drawn, moved = model(batch[0])
        errors = functional.mse_loss(drawn, batch[0])
        hook.save_scalar("reconstruction", errors)
        return errors + moved

    return teach(
        root,
        model,
        rows_of(leaves(seed=2)[0], size=48, seed=665),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=200,
        save_every=4,
    )


@of_codes("coloured tiles by 128 sparse units with a penalty of their size, decoder tied, Adam")
def tiles_by_sparse_units(root: Path) -> int:
    torch.manual_seed(666)
    model = nn.ModuleDict({"encoder": nn.Linear(75, 128), "units": nn.Softplus()})

    def objective(batch: Any, _: Any) -> Any:
        units = model["units"](model["encoder"](batch[0]) - 2)
        drawn = units @ model["encoder"].weight
        return (drawn - batch[0]).pow(2).sum(1).mean() + 0.1 * units.sum(1).mean()

    return teach(
        root,
        model,
        rows_of(tiles(seed=1), seed=666),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        rate=up_and_down(5, 160),
        limit=50.0,
        steps=160,
        save_every=3,
    )
