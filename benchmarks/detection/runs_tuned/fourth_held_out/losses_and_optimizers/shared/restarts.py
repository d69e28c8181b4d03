"""Restarts: trainings that go back to a checkpoint, with a log, and low-rank adapters."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.logs import CsvLog

from rule_core.model.segments import global_step
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import dice


def in_turn(*parts: Any, size: int = 16, seed: int = 0) -> Callable[[int], tuple[Any, ...]]:
    """Return what returns the batch of a step, by an order that is drawn once."""
    random = dice(seed)
    order = torch.cat([torch.randperm(len(parts[0]), generator=random) for _ in range(20)])
    return lambda step: tuple(part[order[step * size :][:size]] for part in parts)


def go_on(
    root: Path,
    model: Any,
    objective: Callable[[Any], Any],
    batch_of: Callable[[int], Any],
    optimizer: Any,
    *,
    schedule: Callable[[int], float] = lambda _: 1.0,
    checkpoint: int = 120,
    weights_of: int = -1,
    lost: int = 20,
    steps: int = 220,
    every: int = 1,
    clip: float = 5.0,
    change: Callable[[Any], object] = lambda _: None,
) -> int:
    """Train until `lost` steps after the checkpoint, and go on from it; return the first step.

    Parameters
    ----------
    weights_of
        The step whose weights and moments are loaded; that of the checkpoint if negative.
    every
        How many steps lie between two rows of the log.
    change
        What happens to the model where it goes on.
    """
    torch.set_num_threads(1)
    rate = optimizer.param_groups[0]["lr"]
    loaded = checkpoint if weights_of < 0 else weights_of
    kept: Any = None
    with CsvLog(root) as log:
        for start, end in ((0, checkpoint + lost), (checkpoint, steps)):
            if start:
                model.load_state_dict(kept[0])
                optimizer.load_state_dict(kept[1])
                change(model)
            for step in range(start, end):
                if step == loaded and not start:
                    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
                optimizer.param_groups[0]["lr"] = rate * schedule(step)
                value = objective(batch_of(step))
                optimizer.zero_grad()
                value.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                if step % every == 0:
                    numbers = {"loss": float(value.detach()), "grad_norm": float(norm)}
                    log.write(step, lr=rate * schedule(step), **numbers)
    return global_step(1, checkpoint)


class LowRank(nn.Module):
    """A frozen layer, and the product of two thin ones beside it, which begins at zero."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.lora_a = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.lora_b = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x: Any) -> Any:
        return self.layer(x) + 2 * functional.linear(x @ self.lora_a.T, self.lora_b)

    def merge(self) -> None:
        """Add the thin layers to the frozen one, and keep them."""
        with torch.no_grad():
            self.layer.weight += 2 * self.lora_b @ self.lora_a


class Adapted(nn.Module):
    """A trained decoder with low-rank adapters in its blocks and its scores."""

    def __init__(self, body: Any, rank: int = 4) -> None:
        super().__init__()
        self.body, self.rank = body, rank

    def teach(self, batches: Any, steps: int) -> None:
        """Train the decoder, unwatched, then freeze it and put adapters into it."""
        optimizer = torch.optim.AdamW(self.body.parameters(), 4e-3)
        for _, (x, y) in zip(range(steps), batches, strict=False):
            optimizer.zero_grad()
            functional.cross_entropy(self.body(x), y).backward()
            optimizer.step()
        optimizer.zero_grad()
        self.body.requires_grad_(requires_grad=False)
        for block in self.body.blocks:
            for name in ("qkv", "out", "up", "down"):
                setattr(block, name, LowRank(getattr(block, name), self.rank))
        self.body.lm_head = LowRank(self.body.lm_head, self.rank)

    def merge(self) -> None:
        """Merge all adapters, and keep them."""
        for part in self.modules():
            if isinstance(part, LowRank):
                part.merge()

    def forward(self, x: Any) -> Any:
        return self.body(x)
