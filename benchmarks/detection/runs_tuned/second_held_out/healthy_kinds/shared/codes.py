"""Codes: variational autoencoders, their divergence, and their objective."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

Error = Callable[[Any, Any], Any]


class Coder(nn.Module):
    """A network to the moments of latent units, and one from them.

    Parameters
    ----------
    given
        Number of further values that encoder and decoder get.
    """

    def __init__(
        self,
        encoder: Any,
        hidden: int,
        latent: int,
        decoder: Any,
        *,
        normalises: bool = False,
        given: int = 0,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.given = encoder, decoder, given
        self.moments = nn.Linear(hidden, 2 * latent)
        self.norm = nn.BatchNorm1d(latent, affine=False) if normalises else nn.Identity()

    def encode(self, x: Any) -> tuple[Any, Any]:
        mean, log_variance = self.moments(self.encoder(x)).chunk(2, -1)
        return self.norm(mean), log_variance.clamp(-8, 8)

    def sample(self, count: int, *given: Any) -> Any:
        """Return what is decoded from codes of the prior."""
        latent = self.moments.out_features // 2
        with torch.no_grad():
            return self.decoder(torch.cat([torch.randn(count, latent), *given], 1))


def drawn(mean: Any, log_variance: Any) -> Any:
    """Return a code."""
    return mean + torch.randn_like(mean) * (log_variance / 2).exp()


def nats(mean: Any, log_variance: Any) -> Any:
    """Return the divergence of each latent unit from the prior."""
    return 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance)


def apart(output: Any, x: Any) -> Any:
    """Return the squared errors of rows, in units of the noise."""
    return (output - x).pow(2).flatten(1).sum(1)


def elbo(
    error: Error,
    weight: Callable[[int], float] = lambda _: 1.0,
    *,
    free: float = 0.0,
    of_nats: Callable[[Any], Any] = lambda values: values.sum(1).mean(),
    change: Callable[[Any], Any] = lambda x: x,
    samples: int = 0,
    name: str = "mu",
) -> Callable[[Any, Any, Any], Any]:
    """Return an objective: the error of rows, and the weighted divergence.

    Parameters
    ----------
    weight, free, of_nats
        The weight by step; nats that each unit has free; what the divergence is of those of units.
    change
        What the encoder sees of a row.
    samples
        Number of samples of the prior that are saved.
    """
    steps: dict[int, int] = {}

    def objective(model: Any, batch: Any, watching: Any) -> Any:
        number = steps[id(model)] = steps.get(id(model), -1) + 1
        x = batch[0]
        mean, log_variance = model.encode(change(x))
        watching.save_tensor(name, mean.float(), "latent_means")
        reconstruction = error(model.decoder(drawn(mean, log_variance)), x).mean()
        of_units = nats(mean.float(), log_variance.float())
        watching.save_scalar("reconstruction", reconstruction)
        watching.save_scalar("kl", of_units.sum(1).mean())
        if samples:
            watching.save_tensor("samples", model.sample(samples).float(), "samples")
        if free:
            of_units = of_units.mean(0, keepdim=True).clamp(min=free)
        return reconstruction + weight(number) * of_nats(of_units)

    return objective
