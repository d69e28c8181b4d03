"""Loops of language models: the defaults of the detection suite's GPTs."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from training.language import Gpt, corpus
from training.torch_loop import adam, fit

adamw = functools.partial(adam, kind=torch.optim.AdamW, weight_decay=0.1)


def gpt_fit(root: Path, make: Callable[[], Any] = Gpt, data: Any = None, **options: Any) -> int:
    """Train a GPT; options are those of `fit`."""
    defaults = {"optimizer": adamw(3e-3), "batch": 16, "steps": 120, "clip": 1.0}
    return fit(root, make, corpus() if data is None else data, **defaults | options)


class BalancedLoss(nn.Module):
    """Cross entropy and the balancing losses of the experts."""

    def __init__(self, model: Any, weight: float = 0.02) -> None:
        super().__init__()
        self.cross_entropy, self.weight = nn.CrossEntropyLoss(), weight
        self.blocks = [*model.blocks]

    def forward(self, logits: Any, y: Any) -> Any:
        balance = sum(block.mlp.balance for block in self.blocks)
        return self.cross_entropy(logits, y) + self.weight * balance


def experts_fit(root: Path, make: Callable[[], Any], weight: float = 0.02, **options: Any) -> int:
    """Train a mixture of experts with its balancing loss."""
    torch.manual_seed(0)
    model = make()
    return gpt_fit(root, lambda: model, loss=BalancedLoss(model, weight), **options)
