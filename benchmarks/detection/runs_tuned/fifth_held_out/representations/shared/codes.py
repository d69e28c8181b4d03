"""Codes: a variational autoencoder, and what its loss is made of."""

from typing import Any

import torch
from torch import nn

from runs_tuned.fifth_held_out.representations.shared.blocks import layers


class Coder(nn.Module):
    """An encoder to means and logarithms of variances, and a decoder."""

    def __init__(self, size: int, codes: int, width: int = 64, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.encoder = layers(size, width, width, 2 * codes, act=act)
        self.decoder = layers(codes, width, width, size, act=act)

    def encode(self, x: Any) -> tuple[Any, Any]:
        """Return means and logarithms of variances."""
        mean, spread = self.encoder(x).chunk(2, -1)
        return mean, spread.clamp(-8, 4)


def divergence(mean: Any, spread: Any) -> Any:
    """Return the divergences of latent units from the prior, by row and unit."""
    return (mean.pow(2) + spread.exp() - 1 - spread) / 2


def code(model: Any, x: Any, hook: Any) -> tuple[Any, Any, Any]:
    """Return what is drawn for the codes of rows, their means and spreads; means are saved."""
    mean, spread = model.encode(x)
    hook.save_tensor("latent_means", mean, "latent_means")
    drawn = mean + (spread / 2).exp() * torch.randn_like(mean)
    return model.decoder(drawn), mean, spread
