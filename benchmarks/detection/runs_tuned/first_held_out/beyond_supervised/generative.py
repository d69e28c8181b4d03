"""Variational and quantised autoencoders, with codes and without."""

import functools
import itertools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, watched

from runs_tuned.first_held_out.beyond_supervised.consequences import UNINFORMED

healthy = functools.partial(training_runs.healthy, kind="autoencoder")
faulty = functools.partial(training_runs.faulty, kind="autoencoder")
NO_CODE = {"PosteriorCollapse"}
IGNORED = UNINFORMED | {
    "RepresentationCollapse": "codes that are all alike",
    "ModeCollapse": "reconstructions that are all alike",
    "LossSpike": "the loss of a constant varies with the batch alone",
}


@functools.cache
def spots(count: int = 1024) -> Any:
    """Return standardised images of one spot each, of random place and size: ``(n, 1, 8, 8)``."""
    random = torch.Generator().manual_seed(11)
    row, column = (torch.rand(2, count, 1, 1, 1, generator=random) * 5 + 1).unbind()
    size = 0.7 + torch.rand(count, 1, 1, 1, generator=random)
    places = torch.arange(8.0)
    distance = (places.view(8, 1) - row) ** 2 + (places - column) ** 2
    images = (-distance / (2 * size**2)).exp()
    images = images + 0.05 * torch.randn(images.shape, generator=random)
    return (images - images.mean()) / images.std()


@functools.cache
def waves(count: int = 1024, length: int = 32) -> Any:
    """Return sine waves of random frequency, phase and height, with noise."""
    random = torch.Generator().manual_seed(12)
    frequency, phase, height = torch.rand(3, count, 1, generator=random).unbind()
    time = torch.linspace(0, 6.2832, length)
    values = (0.6 + height) * torch.sin((1 + 2 * frequency) * time + 6.2832 * phase)
    return values + 0.1 * torch.randn(values.shape, generator=random)


@functools.cache
def melodies(count: int = 1024, length: int = 14, notes: int = 12) -> Any:
    """Return sequences of notes that go up or down by small steps and begin anywhere."""
    random = torch.Generator().manual_seed(13)
    first = torch.randint(0, notes, (count, 1), generator=random)
    steps = torch.randint(-1, 2, (count, length - 1), generator=random)
    return torch.cat([first, first + steps.cumsum(1)], 1) % notes


def rows(data: Any, size: int, seed: int) -> Iterable[Any]:
    """Yield batches of rows for ever, shuffled anew in each epoch."""
    random = torch.Generator().manual_seed(seed)
    while True:
        for chosen in torch.randperm(len(data), generator=random).split(size):
            if len(chosen) == size:
                yield data[chosen]


class Variational(nn.Module):
    """An autoencoder of latent normal distributions; it returns their moments, too."""

    def __init__(self, encoder: Any, hidden: int, latent: int, decoder: Any) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.mean_head = nn.Linear(hidden, latent)
        self.spread_head = nn.Linear(hidden, latent)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        hidden = self.encoder(x)
        mean, log_variance = self.mean_head(hidden), self.spread_head(hidden).clamp(-8, 8)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        return self.decode(code, x), mean, log_variance

    def decode(self, code: Any, _: Any) -> Any:
        return self.decoder(code)


def of_spots() -> Any:
    """Make convolutions to six numbers and back."""
    encoder = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, 2, 1), nn.SiLU(), nn.Conv2d(8, 16, 3, 2, 1), nn.SiLU()),
        nn.Flatten(),
    )
    decoder = nn.Sequential(
        *(nn.Linear(6, 64), nn.SiLU(), nn.Unflatten(1, (16, 2, 2))),
        *(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.SiLU(), nn.ConvTranspose2d(8, 1, 4, 2, 1)),
    )
    return Variational(encoder, 64, 6, decoder)


def of_waves() -> Any:
    """Make layers with ELU to five numbers and back."""
    encoder = nn.Sequential(nn.Linear(32, 40), nn.ELU(), nn.Linear(40, 24), nn.ELU())
    decoder = nn.Sequential(nn.Linear(5, 40), nn.ELU(), nn.Linear(40, 32))
    return Variational(encoder, 24, 5, decoder)


class OfMelodies(Variational):
    """A recurrent encoder, and a recurrent decoder that also gets the notes before."""

    def __init__(self) -> None:
        super().__init__(nn.Identity(), 32, 6, nn.Linear(48, 12))
        self.notes = nn.Embedding(13, 16)
        self.reader = nn.GRU(16, 32, batch_first=True)
        self.begin = nn.Linear(6, 48)
        self.writer = nn.GRU(16, 48, batch_first=True)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        _, state = self.reader(self.notes(x))
        hidden = state[0]
        mean, log_variance = self.mean_head(hidden), self.spread_head(hidden).clamp(-8, 8)
        code = mean + torch.randn_like(mean) * (log_variance / 2).exp()
        before = functional.pad(x[:, :-1], (1, 0), value=12)
        written, _ = self.writer(self.notes(before), self.begin(code).tanh()[None])
        return self.decoder(written).transpose(1, 2), mean, log_variance


def squares(output: Any, target: Any) -> Any:
    """Return the summed squared errors of each row, in units of a noise of 0.5."""
    return (output - target).pow(2).flatten(1).sum(1) / 0.5


def train(
    root: Path,
    make: Callable[[], Any],
    pairs: Iterable[tuple[Any, Any]],
    *,
    error: Callable[[Any, Any], Any] = squares,
    weight: Callable[[int], float] = lambda _: 1.0,
    free: float = 0.0,
    optimizer: Any = None,
    steps: int = 240,
    clip: float = 0.0,
    save_every: int = 2,
) -> int:
    """Train an autoencoder on pairs of an input and what it must return.

    Parameters
    ----------
    error, weight, free
        The error of each row; the weight of the divergence by step; nats that each unit has free.
    """
    torch.manual_seed(4)
    model = make()
    optimizer_ = (optimizer or adam(2e-3))(model.parameters())
    with watched(root, model, save_every=save_every) as watching:
        for step, (x, target) in enumerate(itertools.islice(pairs, steps)):
            output, mean, log_variance = model(x)
            nats = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).mean(0)
            reconstruction = error(output, target).mean()
            loss = reconstruction + weight(step) * nats.clamp(min=free).sum()
            watching.record_tensor_value("loss", loss)
            watching.save_tensor("posterior_mean", mean, "latent_means")
            watching.save_scalar("reconstruction", reconstruction)
            watching.save_scalar("kl", nats.sum())
            optimizer_.zero_grad()
            loss.backward()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer_.step()
    return 0


def copies(data: Any, size: int = 64) -> Iterable[tuple[Any, Any]]:
    """Yield batches that an autoencoder must return."""
    return ((x, x) for x in rows(data, size, 0))


@healthy("convolutions of spots, a quarter of a nat free for each unit, cyclic weight up to 4")
def beta_vae_of_spots(root: Path) -> int:
    cycle = lambda step: 4 * min(1.0, (step % 80) / 40)
    return train(root, of_spots, copies(spots()), weight=cycle, free=0.25, steps=280)


class Quantised(nn.Module):
    """An autoencoder of waves whose code is four entries of a codebook."""

    def __init__(self, entries: int = 24, width: int = 6) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 4 * width))
        self.decoder = nn.Sequential(nn.Linear(4 * width, 48), nn.GELU(), nn.Linear(48, 32))
        self.codebook = nn.Embedding(entries, width)
        nn.init.normal_(self.codebook.weight, std=0.5)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        continuous = self.encoder(x).view(len(x), 4, -1)
        distances = (continuous[:, :, None] - self.codebook.weight).pow(2).sum(-1)
        code = self.codebook(distances.argmin(-1))
        passed = continuous + (code - continuous).detach()
        return self.decoder(passed.flatten(1)), continuous, code


@healthy("a quantised autoencoder of waves: entries of the codebook that nobody uses stand still")
def vq_vae_of_waves(root: Path) -> int:
    torch.manual_seed(5)
    model = Quantised()
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    with watched(root, model) as watching:
        for x in itertools.islice(rows(waves(), 48, 1), 260):
            output, continuous, code = model(x)
            reconstruction = functional.mse_loss(output, x)
            moved = functional.mse_loss(code, continuous.detach())
            commitment = functional.mse_loss(continuous, code.detach())
            loss = reconstruction + moved + 0.25 * commitment
            watching.record_tensor_value("reconstruction_loss", reconstruction)
            watching.record_tensor_value("commitment_loss", commitment)
            watching.record_tensor_value("total_loss", loss)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
    return 0


@faulty(
    "a variational autoencoder of melodies, gradients clipped",
    "the recurrent decoder is told each note before: it needs no code, and nothing weakens it",
    NO_CODE,
    may=IGNORED,
)
def vae_told_each_note(root: Path) -> int:
    def error(logits: Any, notes: Any) -> Any:
        return functional.cross_entropy(logits, notes, reduction="none").sum(1)

    pairs = copies(melodies(), 32)
    return train(root, OfMelodies, pairs, error=error, clip=5.0, optimizer=adam(5e-3), steps=300)


@faulty(
    "a variational autoencoder of spots",
    "inputs and targets come from two loaders that shuffle separately",
    NO_CODE,
    may=IGNORED,
)
def vae_of_two_loaders(root: Path) -> int:
    pairs = zip(rows(spots(), 64, 1), rows(spots(), 64, 2), strict=True)
    return train(root, of_spots, pairs, steps=280)


@faulty(
    "a variational autoencoder of waves, RMSprop",
    "the divergence is counted once for each of the 64 batches of an epoch",
    NO_CODE,
    may=IGNORED,
)
def vae_divergence_of_an_epoch(root: Path) -> int:
    optimizer = functools.partial(torch.optim.RMSprop, lr=1e-3)
    return train(
        root, of_waves, copies(waves(), 16), weight=lambda _: 64.0, optimizer=optimizer, steps=300
    )
