"""Layers of experts: routers that choose in several ways, and what balances them."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def units(width: int, hidden: int, outs: int | None = None) -> Any:
    """Return two linear layers with SiLU between them."""
    return nn.Sequential(nn.Linear(width, hidden), nn.SiLU(), nn.Linear(hidden, outs or width))


class NoisyRouter(nn.Module):
    """Scores of experts, with noise of a learnt strength in training."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.mean, self.spread = nn.Linear(width, experts), nn.Linear(width, experts)
        nn.init.zeros_(self.mean.weight)
        nn.init.zeros_(self.spread.weight)

    def forward(self, x: Any) -> Any:
        scores = self.mean(x)
        if self.training:
            scores = scores + torch.randn_like(scores) * functional.softplus(self.spread(x))
        return scores


class JitteredRouter(nn.Linear):
    """Scores of experts for tokens that are stretched at random in training."""

    def forward(self, x: Any) -> Any:
        return super().forward(x * (0.98 + 0.04 * torch.rand_like(x)) if self.training else x)


class Routed(nn.Module):
    """Experts, the best of which each token gets; `balance` and `size` are losses of the router.

    Parameters
    ----------
    router
        Makes what scores experts, for a width and a number of experts.
    gates
        Makes weights of scores: by softmax, or by a sigmoid for each expert.
    shared
        Whether there is one more expert, which all tokens get.
    """

    def __init__(
        self,
        width: int,
        experts: int,
        top_k: int,
        *,
        hidden: int = 32,
        outs: int | None = None,
        router: Callable[[int, int], Any] = nn.Linear,
        gates: Callable[[Any], Any] = lambda scores: scores.softmax(-1),
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.top_k, self.gates = top_k, gates
        self.router = router(width, experts)
        self.experts = nn.ModuleList(units(width, hidden, outs) for _ in range(experts))
        self.shared = units(width, hidden, outs) if shared else None
        self.balance = self.size = self.load = torch.zeros(())

    def forward(self, x: Any) -> Any:
        scores = self.router(x)
        chances = self.gates(scores)
        best, chosen = chances.topk(self.top_k, -1)
        weights = torch.zeros_like(chances).scatter(-1, chosen, best)
        if self.top_k > 1:
            weights = weights / weights.sum(-1, keepdim=True)
        count = scores.shape[-1]
        load = functional.one_hot(chosen, count).float().flatten(0, -2).mean(0)
        self.load = load.detach()
        shares = chances / chances.sum(-1, keepdim=True)
        self.balance = count * (self.load * shares.float().flatten(0, -2).mean(0)).sum()
        self.size = scores.float().logsumexp(-1).pow(2).mean()
        mixed = sum(weights[..., at, None] * part(x) for at, part in enumerate(self.experts))
        return mixed if self.shared is None else mixed + self.shared(x)


def balance(model: Any) -> Any:
    """Return the sum of the balancing losses of all layers of experts."""
    return sum(part.balance for part in model.modules() if isinstance(part, Routed))


def sizes(model: Any) -> Any:
    """Return the sum of the losses of the routers' scores."""
    return sum(part.size for part in model.modules() if isinstance(part, Routed))


class BalancedLoss(nn.Module):
    """A loss, and the weighted losses of the routers of a model."""

    def __init__(self, model: Any, weight: float, of_sizes: float = 0.0, loss: Any = None) -> None:
        super().__init__()
        self.inner, self.weight, self.of_sizes = loss or nn.CrossEntropyLoss(), weight, of_sizes
        self.models = [model]

    def forward(self, output: Any, y: Any) -> Any:
        (model,) = self.models
        routers = self.weight * balance(model) + self.of_sizes * sizes(model)
        return self.inner(output, y) + routers
