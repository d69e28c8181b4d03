"""Codes: a variational autoencoder, and how it is learnt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach
from runs_tuned.third_held_out.sequences.shared.shapes import stack


class Coder(nn.Module):
    """A variational autoencoder of six latent numbers.

    Parameters
    ----------
    limit
        Bounds logarithms of variances.
    drawn
        Draws codes from means and noise.
    """

    def __init__(
        self,
        width: int,
        codes: int = 6,
        limit: Callable[[Any], Any] = lambda spread: spread,
        drawn: Callable[[Any, Any], Any] = lambda mean, noise: mean + noise,
    ) -> None:
        super().__init__()
        self.limit, self.drawn = limit, drawn
        self.encoder = stack(width, 64, 48, act=nn.GELU)
        self.to_mu, self.to_spread = nn.Linear(48, codes), nn.Linear(48, codes)
        self.decoder = stack(codes, 48, 64, width, act=nn.GELU)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        hidden = functional.gelu(self.encoder(x))
        mean, spread = self.to_mu(hidden), self.limit(self.to_spread(hidden))
        noise = torch.randn_like(mean) * (spread / 2).exp()
        return self.decoder(self.drawn(mean, noise)), mean, spread


def normal_nats(mean: Any, spread: Any) -> Any:
    """Return the divergence of each code from a standard normal distribution."""
    return 0.5 * (mean**2 + spread.exp() - 1 - spread)


def learn_codes(
    root: Path,
    model: Any,
    rows: Any,
    *,
    nats: Callable[[Any, Any], Any] = normal_nats,
    weight: Callable[[int], float] = lambda _: 1.0,
    noise: float = 0.3,
    rate: float = 3e-3,
    kind: Any = torch.optim.AdamW,
    seed: int = 0,
    size: int = 48,
    **options: Any,
) -> int:
    """Train an autoencoder of rows.

    Parameters
    ----------
    nats, weight
        The divergence of means and logarithms of variances, and its weight by step.
    noise
        The deviation of what the decoder returns.
    """
    torch.manual_seed(seed)
    model.apply(lambda part: part.reset_parameters() if hasattr(part, "reset_parameters") else None)
    steps = iter(range(10**9))

    def objective(batch: Any, hook: Any) -> Any:
        output, mean, spread = model(batch[0])
        errors = (output - batch[0]).pow(2).sum(1).mean() / (2 * noise**2)
        divergence = nats(mean, spread).sum(1).mean()
        hook.save_tensor("mu", mean, "latent_means")
        hook.save_scalar("kl", divergence)
        return errors + weight(next(steps)) * divergence

    optimizer = kind(model.parameters(), lr=rate)
    more = {"steps": 200, "save_every": 2} | options
    return teach(
        root, model, dealt(rows, size=size, seed=seed), optimizer, objective=objective, **more
    )
