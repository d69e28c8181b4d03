"""Embeddings, latent codes and samples that become the same for all inputs."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import batches, watched
from training_runs import faulty

from runs_tuned.second_held_out.shared.consequences import IDLE, SHAKEN
from runs_tuned.second_held_out.shared.pictures import Gallery, groups, masks, patterns
from runs_tuned.second_held_out.shared.series import gestures
from runs_tuned.second_held_out.shared.tables import dense, tickets

ALIKE = IDLE | {"ModeCollapse": "rows that are all alike"}

# Embeddings


def distances(root: Path, margin: float) -> int:
    """Train embeddings of tickets: those of a desk are to be near, others farther than `margin`."""
    torch.manual_seed(15)
    torch.set_num_threads(1)
    model, data = dense(14, 40, 40, 12), tickets()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    with watched(root, model) as watching:
        for x, y in itertools.islice(batches(data, 48, 15), 160):
            embedded = functional.normalize(model(x))
            apart = torch.cdist(embedded, embedded)
            same = (y[:, None] == y).float()
            loss = (same * apart.pow(2) + (1 - same) * (margin - apart).relu().pow(2)).mean()
            watching.record_tensor_value("contrastive_loss", loss)
            watching.save_tensor("embeddings", embedded, "embeddings")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return 0


@faulty(
    "embeddings of tickets by pairs, those of other desks pushed apart to a margin",
    "the margin is read from a missing setting as 0: nothing is pushed apart",
    {"RepresentationCollapse"},
    may=ALIKE,
    kind="contrastive",
)
def margin_of_nothing(root: Path) -> int:
    return distances(root, 0.0)


@faulty(
    "embeddings of patterns, views are aligned and all rows spread evenly",
    "the weight of the even spread is given in per cent, but its number was a share: 0.005",
    {"RepresentationCollapse"},
    may=ALIKE,
    kind="contrastive",
)
def spread_in_per_cent(root: Path) -> int:
    torch.manual_seed(16)
    torch.set_num_threads(1)
    model, data = Gallery(16, norm=groups), patterns()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model) as watching:
        for x, _ in itertools.islice(batches(data, 48, 16), 150):
            views = torch.cat([x + 0.5 * torch.randn_like(x), x.flip(3)])
            first, second = functional.normalize(model(views)).chunk(2)
            near = (first - second).pow(2).sum(1).mean()
            even = torch.pdist(first).pow(2).mul(-2).exp().mean().log()
            loss = near + 0.005 / 100 * even
            watching.record_tensor_value("loss", loss)
            watching.save_tensor("embeddings", first, "embeddings")
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return 0


# Latent codes


class Coder(nn.Module):
    """A variational autoencoder of five latent numbers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = dense(width, 48, 32, act=nn.SiLU)
        self.fc_mu, self.fc_spread = nn.Linear(32, 5), nn.Linear(32, 5)
        self.decoder = dense(5, 48, width, act=nn.SiLU)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        hidden = functional.silu(self.encoder(x))
        mean, spread = self.fc_mu(hidden), self.fc_spread(hidden)
        return self.decoder(mean + torch.randn_like(mean) * (spread / 2).exp()), mean, spread


def learn_codes(
    root: Path,
    rows: Any,
    *,
    hidden: float = 0.0,
    noise: float = 0.5,
    steps: int = 200,
) -> int:
    """Train a variational autoencoder of rows.

    Parameters
    ----------
    hidden, noise
        The share of each input that is hidden, and the deviation of what the decoder returns.
    """
    torch.manual_seed(17)
    torch.set_num_threads(1)
    model, random = Coder(rows.shape[1]), torch.Generator().manual_seed(17)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model) as watching:
        for _ in range(steps):
            x = rows[torch.randint(len(rows), (64,), generator=random)]
            is_seen = torch.rand(x.shape, generator=random) >= hidden
            output, mean, spread = model(x * is_seen)
            errors = (output - x).pow(2).sum(1).mean() / (2 * noise**2)
            nats = 0.5 * (mean.pow(2) + spread.exp() - 1 - spread).sum(1).mean()
            watching.record_tensor_value("loss", errors + nats)
            watching.save_tensor("mu", mean, "latent_means")
            watching.save_scalar("kl", nats)
            optimizer.zero_grad()
            (errors + nats).backward()
            optimizer.step()
    return 0


@faulty(
    "a variational autoencoder of gestures, one input in a hundred hidden",
    "the share that is hidden is given as 1 for 1 %, and is read as all of them",
    {"PosteriorCollapse"},
    may=ALIKE | {"RepresentationCollapse": "codes that are all alike"},
    kind="autoencoder",
)
def everything_hidden(root: Path) -> int:
    return learn_codes(root, gestures().x[:, ::2].flatten(1), hidden=1.0)


@faulty(
    "a variational autoencoder of standardised spots in pictures",
    "the decoder's deviation of 25 is that of grey levels, but pixels have a deviation of 1",
    {"PosteriorCollapse"},
    may=ALIKE | {"RepresentationCollapse": "codes that are all alike"},
    kind="autoencoder",
)
def deviation_of_grey_levels(root: Path) -> int:
    return learn_codes(root, masks().x.flatten(1), noise=25.0)


# Samples


class Generator(nn.Module):
    """Pictures of noise."""

    def __init__(self, outs: int, width: int = 48) -> None:
        super().__init__()
        self.layers = dense(10, width, width, outs, act=nn.GELU)

    def forward(self, noise: Any) -> Any:
        return torch.tanh(self.layers(noise))


def duel(
    root: Path,
    real: Any,
    *,
    steps: int = 240,
    truncation: Callable[[int], float] = lambda _: 1.0,
    taught_until: int = 10**9,
    onset: int = 0,
) -> int:
    """Train a generator against a discriminator; return the global step of step `onset`.

    Parameters
    ----------
    truncation
        The deviation of the noise by step.
    taught_until
        From this step on the discriminator stays as it is.
    """
    torch.manual_seed(18)
    torch.set_num_threads(1)
    random = torch.Generator().manual_seed(18)
    net_g = Generator(real.shape[1])
    net_d = dense(real.shape[1], 48, 48, 1, act=lambda: nn.LeakyReLU(0.2))
    optimizer_g = torch.optim.Adam(net_g.parameters(), 2e-3, betas=(0.5, 0.99))
    optimizer_d = torch.optim.Adam(net_d.parameters(), 1e-3, betas=(0.5, 0.99))
    begins = 0
    with watched(root, net_g, net_d) as watching:
        for step in range(steps):
            if onset and step == onset:
                begins = watching.global_step + 1
            rows = real[torch.randint(len(real), (64,), generator=random)]
            fake = net_g(truncation(step) * torch.randn(64, 10, generator=random))
            on_real, on_fake = net_d(rows), net_d(fake.detach())
            loss_d = functional.softplus(-on_real).mean() + functional.softplus(on_fake).mean()
            if step < taught_until:
                optimizer_d.zero_grad()
                loss_d.backward()
                optimizer_d.step()
            loss_g = functional.softplus(-net_d(fake)).mean()
            optimizer_g.zero_grad()
            loss_g.backward()
            optimizer_g.step()
            watching.record_tensor_value("loss_D", loss_d)
            watching.record_tensor_value("loss_G", loss_g)
            watching.save_tensor("samples", fake, "samples")
    return begins


COLLAPSED = SHAKEN | IDLE | {"RepresentationCollapse": "samples that are all alike"}


@faulty(
    "a pair that draws spots",
    "samples of a demonstration are drawn at step 120 with noise of 0.02, which then stays so",
    {"ModeCollapse"},
    may=COLLAPSED,
    kind="adversarial",
)
def truncation_stays(root: Path) -> int:
    real = (masks().x / 3).clamp(-1, 1).flatten(1)
    return duel(root, real, truncation=lambda step: 1.0 if step < 120 else 0.02, onset=120)


@faulty(
    "a pair that draws gestures",
    "from step 60 on the discriminator's turn is skipped, and the generator learns its one answer",
    {"ModeCollapse"},
    may=COLLAPSED,
    kind="adversarial",
)
def discriminator_skipped(root: Path) -> int:
    real = (gestures().x[:, ::3].flatten(1) / 3).clamp(-1, 1)
    return duel(root, real, taught_until=60, onset=60, steps=400)
