"""Codes: a variational autoencoder and its training."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from runs_tuned.fourth_held_out.representations.shared.loop import draws, learn
from runs_tuned.fourth_held_out.representations.shared.shapes import layers


class Codes(nn.Module):
    """An encoder to means and spreads of codes, and a decoder of them."""

    def __init__(self, size: int, codes: int, width: int = 64, act: Any = nn.ELU) -> None:
        super().__init__()
        self.encoder = nn.Sequential(layers(size, width, width, act=act), act())
        self.mean, self.spread = nn.Linear(width, codes), nn.Linear(width, codes)
        self.decoder = layers(codes, width, width, size, act=act)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        hidden = self.encoder(x)
        mean, spread = self.mean(hidden), self.spread(hidden).clamp(-9, 5)
        code = mean + (spread / 2).exp() * torch.randn_like(mean)
        return self.decoder(code), mean, spread


def summed(divergences: Any, _: int) -> Any:
    """Return the sum of the divergences of all latent units."""
    return divergences.sum()


def learn_to_code(
    root: Path,
    model: Any,
    x: Any,
    optimizer: Any,
    *,
    seed: int,
    term: Callable[[Any, int], Any] = summed,
    noise: float = 0.2,
    counts: Callable[[Any], Any] = torch.ones_like,
    size: int = 48,
    read: Iterator[Any] | None = None,
    **more: Any,
) -> int:
    """Train a variational autoencoder.

    Parameters
    ----------
    term
        What is asked of the divergences of all latent units, by the step.
    noise
        The decoder's deviation.
    counts
        Which elements of rows are to be reconstructed.
    """
    at = [0]

    def objective(batch: Any, hook: Any) -> Any:
        found, mean, spread = model(batch[0])
        hook.save_tensor("latent_means", mean, "latent_means")
        errors = ((found - batch[0]) / noise).pow(2) * counts(batch[0]) / 2
        divergences = ((mean.pow(2) + spread.exp() - 1 - spread) / 2).mean(0)
        at[0] += model.training
        return errors.sum(1).mean() + term(divergences, at[0])

    read = read or draws(x, size=size, seed=seed)
    return learn(root, model, read, objective, optimizer, **more)
