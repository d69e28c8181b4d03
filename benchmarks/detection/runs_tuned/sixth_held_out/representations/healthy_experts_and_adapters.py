"""Healthy mixtures of experts, and decoders adapted from others."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.representations.shared.loop import rows_of, teach, up_and_down
from runs_tuned.sixth_held_out.representations.shared.networks import (
    Block,
    Heads,
    Mixture,
    Writer,
    dense,
    next_sign,
)
from runs_tuned.sixth_held_out.representations.shared.signs import (
    CALLS,
    LOGS,
    automata,
    calls,
    logs,
)

of_texts = functools.partial(training_runs.healthy, kind="language_model")


def balanced(model: Any, mixture: Any, weight: float) -> Any:
    """Return the objective to foresee the next sign, and to keep loads even."""

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0][:, :-1]).transpose(1, 2)
        return functional.cross_entropy(scores, batch[0][:, 1:]) + weight * mixture.imbalance()

    return objective


class Cells(nn.Module):
    """Foresees what all cells of a ring will be, by a convolution, attention and experts."""

    def __init__(self, mixture: Any) -> None:
        super().__init__()
        self.cells = nn.Embedding(2, 32)
        self.near = nn.Conv1d(32, 32, 3, padding=1, padding_mode="circular")
        self.block = Block(Heads(mask=lambda length: torch.ones(length, length).bool()), mixture)
        self.head = nn.Conv1d(32, 2, 3, padding=1, padding_mode="circular")

    def forward(self, x: Any) -> Any:
        x = functional.gelu(self.near(self.cells(x).transpose(1, 2))).transpose(1, 2)
        return self.head(self.block(x).transpose(1, 2))


@training_runs.healthy(
    "an automaton's cells in two steps by six experts, two a cell, a balancing loss, AdamW"
)
def automata_by_experts(root: Path) -> int:
    torch.manual_seed(646)
    mixture, rows = Mixture(6, 2), automata()
    model = Cells(mixture)

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0][:, 1:11])
        return functional.cross_entropy(scores, batch[0][:, 23:]) + 0.02 * mixture.imbalance()

    return teach(
        root,
        model,
        rows_of(rows, size=48, seed=646),
        objective,
        torch.optim.AdamW(model.parameters(), 4e-3),
        limit=1.0,
        rate=up_and_down(10, 150),
        save_every=3,
    )


@of_texts("lines of a server's log by a decoder with four experts, one a word, balanced, Adam")
def logs_by_experts(root: Path) -> int:
    torch.manual_seed(647)
    mixture = Mixture(4, 1)
    model = Writer(LOGS, [Block(Heads(32, 2), mixture, drop=0.05)])
    return teach(
        root,
        model,
        rows_of(logs(seed=1), seed=647),
        balanced(model, mixture, 0.02),
        torch.optim.Adam(model.parameters(), 3e-3),
        save_every=3,
        test=(logs(100, seed=2),),
    )


class LowRank(nn.Module):
    """A layer that stays as it is, and what is learnt beside it."""

    def __init__(self, layer: Any, rank: int = 4) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(requires_grad=False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x: Any) -> Any:
        return self.layer(x) + 2 * x @ self.down.T @ self.up.T


def taught(model: Any, rows: Any, steps: int = 150) -> Any:
    """Return a model that has learnt before, without a hook."""
    torch.set_num_threads(1)
    optimizer, objective = torch.optim.Adam(model.parameters(), 4e-3), nn.CrossEntropyLoss()
    for batch, _ in zip(rows_of(rows, seed=1), range(steps), strict=False):
        optimizer.zero_grad()
        next_sign(model, objective)(batch, None).backward()
        optimizer.step()
    return model


@of_texts(
    "a trained decoder of calls learns other birds by low ranks (LoRA), AdamW, the rest frozen"
)
def other_birds_by_low_ranks(root: Path) -> int:
    torch.manual_seed(648)
    heads = [Heads() for _ in range(2)]
    model = taught(Writer(CALLS, [Block(each) for each in heads]), calls(seed=3)[0])
    model.requires_grad_(requires_grad=False)
    for each in heads:
        each.query, each.value = LowRank(each.query), LowRank(each.value)
        each.out = LowRank(each.out)
    loss = nn.CrossEntropyLoss(ignore_index=0)
    return teach(
        root,
        model,
        rows_of(calls(kind=3, seed=4)[0], seed=648),
        next_sign(model, loss),
        torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], 1e-2),
        watched_losses=(loss,),
        rate=up_and_down(10, 140),
        steps=140,
        save_every=3,
    )


class Narrow(nn.Module):
    """A part that stays as it is, and a bottleneck behind it, which begins as nothing."""

    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part, self.adapter = part, dense(32, 12, 32, act=nn.GELU)
        nn.init.normal_(self.adapter[-1].weight, std=0.01)

    def forward(self, x: Any) -> Any:
        x = self.part(x)
        return x + self.adapter(x)


@of_texts(
    "a trained decoder of logs learns lines of eight kinds by bottlenecks, norms and head, Adam"
)
def bottlenecks_for_other_logs(root: Path) -> int:
    torch.manual_seed(649)
    model = taught(Writer(LOGS, [Block(Heads()) for _ in range(2)]), logs(seed=5))
    model.requires_grad_(requires_grad=False)
    for block in model.blocks:
        block.part = Narrow(block.part)
        block.norms.requires_grad_()
    model.head.requires_grad_()
    loss = nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        rows_of((logs(kinds=8, seed=6) + 5) % LOGS, seed=649),
        next_sign(model, loss),
        torch.optim.Adam([each for each in model.parameters() if each.requires_grad], 5e-3),
        watched_losses=(loss,),
        limit=1.0,
        save_every=3,
    )
