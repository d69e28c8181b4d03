"""Healthy autoencoders: plain, denoising, variational, sparse and masked."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.seventh_held_out.representations.shared.data import digits, shapes, signals, tumours
from runs_tuned.seventh_held_out.representations.shared.loop import loader, teach, warmup_cosine
from runs_tuned.seventh_held_out.representations.shared.networks import Vae, mlp

of_codes = functools.partial(training_runs.healthy, kind="autoencoder")


@of_codes("a denoising autoencoder of digits, mean squares, Adam, validated")
def denoised_digits(root: Path) -> int:
    torch.manual_seed(10)
    x, _, test_x, _ = digits()
    model = nn.Sequential(mlp(64, 96, 24), nn.ReLU(), mlp(24, 96, 64), nn.Sigmoid())
    loss = nn.MSELoss()

    def objective(batch: Any, _: Any) -> Any:
        clean = batch[0].flatten(1)
        return loss(model(clean + 0.2 * torch.randn_like(clean)), clean)

    return teach(
        root,
        model,
        loader(x, seed=10),
        objective,
        torch.optim.Adam(model.parameters(), 2e-3),
        losses=(loss,),
        steps=180,
        test=(test_x,),
    )


@of_codes("a variational autoencoder of black and white digits, cross entropy summed, Adam")
def vae_of_digits(root: Path) -> int:
    torch.manual_seed(11)
    x, _, test_x, _ = ((part > 0.4).float() for part in digits())
    model = Vae(64, 8)
    model.fc_mu.register_forward_hook(lambda *args: model.__dict__.update(mean=args[2]))

    def objective(batch: Any, hook: Any) -> Any:
        rows = batch[0].flatten(1)
        logits, divergence = model(rows)
        hook.save_tensor("latent_means", model.mean, "latent_means")
        errors = functional.binary_cross_entropy_with_logits(logits, rows, reduction="none")
        return (errors.sum(1) + divergence).mean()

    return teach(
        root,
        model,
        loader(x, size=64, seed=11),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=320,
        save_every=4,
        test=(test_x,),
    )


@of_codes("a variational autoencoder of signals, the divergence warms up to 1, AdamW, clipped")
def vae_with_a_warm_up(root: Path) -> int:
    torch.manual_seed(12)
    x, _ = signals(seed=12)
    model, count = Vae(48, 6, act=nn.SiLU), [0]

    def objective(batch: Any, _: Any) -> Any:
        count[0] += 1
        drawn, divergence = model(batch[0])
        errors = (drawn - batch[0]).pow(2).sum(1) / (2 * 0.3**2)
        return (errors + min(1.0, count[0] / 80) * divergence).mean()

    return teach(
        root,
        model,
        loader(x, size=48, seed=12),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3),
        clip=50.0,
        steps=200,
    )


class ConvolutionalVae(nn.Module):
    """Codes of pictures by convolutions, and pictures by transposed ones."""

    def __init__(self, codes: int = 8) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Conv2d(16, 32, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.Flatten(),
        )
        self.mu, self.logvar = nn.Linear(512, codes), nn.Linear(512, codes)
        self.decoder = nn.Sequential(
            nn.Linear(codes, 512),
            nn.LeakyReLU(0.1),
            nn.Unflatten(1, (32, 4, 4)),
            nn.ConvTranspose2d(32, 16, 4, stride=2, padding=1),
            nn.LeakyReLU(0.1),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.encoder(x)
        mean, logvar = self.mu(hidden), self.logvar(hidden)
        code = mean + (logvar / 2).exp() * torch.randn_like(mean)
        return self.decoder(code), (mean.pow(2) + logvar.exp() - 1 - logvar).sum(1) / 2


@of_codes("a convolutional variational autoencoder of shapes, cross entropy, beta 1, Adam")
def convolutional_vae_of_shapes(root: Path) -> int:
    torch.manual_seed(13)
    x, _ = shapes(seed=13)
    model = ConvolutionalVae()

    def objective(batch: Any, _: Any) -> Any:
        logits, divergence = model(batch[0])
        errors = functional.binary_cross_entropy_with_logits(logits, batch[0], reduction="none")
        return (errors.sum((1, 2, 3)) + divergence).mean()

    return teach(
        root,
        model,
        loader(x[:1100], size=32, seed=13),
        objective,
        torch.optim.Adam(model.parameters(), 1e-3),
        steps=150,
        save_every=3,
        test=(x[1100:],),
    )


@of_codes("an autoencoder of signals by convolutions, smooth L1, Adam, one cycle of the rate")
def convolutional_codes_of_signals(root: Path) -> int:
    torch.manual_seed(14)
    x, _ = signals(seed=14)
    encoder = nn.Sequential(
        nn.Unflatten(1, (1, 48)),
        nn.Conv1d(1, 16, 5, stride=2, padding=2),
        nn.GELU(),
        nn.Conv1d(16, 16, 5, stride=2, padding=2),
        nn.GELU(),
        nn.Flatten(),
        nn.Linear(192, 10),
    )
    model, loss = nn.Sequential(encoder, mlp(10, 96, 48, act=nn.GELU)), nn.SmoothL1Loss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, 6e-3, total_steps=201)
    return teach(
        root,
        model,
        loader(x[:1100], size=48, seed=14),
        lambda batch, _: loss(model(batch[0]), batch[0]),
        optimizer,
        losses=(loss,),
        after=lambda _: cycle.step(),
        steps=200,
        test=(x[1100:],),
    )


class MaskedPatches(nn.Module):
    """Draws the hidden patches of pictures by a transformer encoder."""

    def __init__(self, size: int, count: int, width: int = 48) -> None:
        super().__init__()
        self.embed, self.head = nn.Linear(size, width), nn.Linear(width, size)
        self.hidden = nn.Parameter(0.02 * torch.randn(width))
        self.places = nn.Parameter(0.02 * torch.randn(count, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 96, 0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Any, is_hidden: Any) -> Any:
        x = torch.where(is_hidden[..., None], self.hidden, self.embed(x))
        return self.head(self.encoder(x + self.places))


@of_codes("half of the patches of digits are drawn from the others by a transformer, AdamW")
def masked_patches_of_digits(root: Path) -> int:
    torch.manual_seed(15)
    x = digits()[0]
    patches = functional.unfold(x, 2, stride=2).transpose(1, 2)
    patches = (patches - patches.mean()) / patches.std()
    model = MaskedPatches(4, 16)

    def objective(batch: Any, _: Any) -> Any:
        is_hidden = torch.rand(batch[0].shape[:2]).argsort(1) < 8
        drawn = model(batch[0], is_hidden)
        return (drawn - batch[0])[is_hidden].pow(2).mean()

    return teach(
        root,
        model,
        loader(patches, seed=15),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05),
        factor=warmup_cosine(15, 180),
        clip=1.0,
        steps=180,
        save_every=3,
    )


@of_codes("a sparse autoencoder of a table, an L1 penalty of codes, SGD with momentum")
def sparse_codes_of_tumours(root: Path) -> int:
    torch.manual_seed(16)
    x, _ = tumours()
    encoder, decoder = nn.Sequential(nn.Linear(30, 48), nn.ReLU()), nn.Linear(48, 30)
    model = nn.Sequential(encoder, decoder)

    def objective(batch: Any, _: Any) -> Any:
        code = encoder(batch[0])
        return functional.mse_loss(decoder(code), batch[0]) + 1e-3 * code.abs().sum(1).mean()

    return teach(
        root,
        model,
        loader(x[:480], size=32, seed=16),
        objective,
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        steps=200,
        save_every=4,
        test=(x[480:],),
    )
