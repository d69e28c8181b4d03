"""Optimizers that PyTorch does not have."""

from typing import Any

import torch


class Lion(torch.optim.Optimizer):
    """Moves each weight by its rate, in the direction of the sign of a moving average."""

    def __init__(self, params: Any, lr: float, decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update all weights."""
        for group in self.param_groups:
            for parameter in group["params"]:
                moment = self.state[parameter].setdefault("moment", torch.zeros_like(parameter))
                move = (0.9 * moment + 0.1 * parameter.grad).sign()
                parameter.sub_(group["lr"] * (move + group["decay"] * parameter))
                moment.mul_(0.98).add_(parameter.grad, alpha=0.02)
        return closure


class Muon(torch.optim.Optimizer):
    """Moves matrices by their momentum, whose singular values are made equal, and vectors by it."""

    def __init__(self, params: Any, lr: float, scale: Any) -> None:
        super().__init__(params, {"lr": lr})
        self.scale = scale

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Update all weights."""
        for group in self.param_groups:
            for parameter in group["params"]:
                moment = self.state[parameter].setdefault("moment", torch.zeros_like(parameter))
                moment.mul_(0.9).add_(parameter.grad)
                if parameter.ndim == 2:
                    first, _, last = torch.linalg.svd(moment, full_matrices=False)
                    move = first @ last * self.scale(parameter)
                else:
                    move = 0.1 * moment
                parameter.sub_(group["lr"] * move)
        return closure
