"""Generative trainings: autoencoders, adversarial pairs, diffusion; healthy and collapsed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import digits
from training.small_networks import mlp
from training.torch_loop import adam, batches, fit, watched
from training_runs import faulty, healthy

from runs_tuned.faulty.learning import BLOWN_UP

UNTAUGHT = BLOWN_UP | {
    "Overfit": "losses that mean little",
    "StalledParameters": "what is not used does not learn",
    "RepresentationCollapse": "samples that are all alike",
}


class Vae(nn.Module):
    """A variational autoencoder; it returns the reconstruction, latent means and log-variances."""

    def __init__(self, ins: int = 64, latent: int = 8, width: int = 48) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(ins, width), nn.ReLU())
        self.mu, self.logvar = nn.Linear(width, latent), nn.Linear(width, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, width), nn.ReLU(), nn.Linear(width, ins))

    def forward(self, x: Any) -> Any:
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        latent = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(latent), mu, logvar


class VaeLoss(nn.Module):
    """The reconstruction error, and the divergence of the latent distribution times `beta`."""

    def __init__(self, beta: float = 0.01, warm_up: int = 0) -> None:
        super().__init__()
        self.beta, self.warm_up, self.steps = beta, warm_up, 0

    def forward(self, outputs: Any, x: Any) -> Any:
        reconstruction, mu, logvar = outputs
        self.steps += 1
        weight = min(1.0, self.steps / self.warm_up) if self.warm_up else 1.0
        divergence = -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean()
        return functional.mse_loss(reconstruction, x) + self.beta * weight * divergence


def vae(root: Path, loss: Any, make: Callable[[], Any] = Vae, **options: Any) -> int:
    data = digits()
    both = type(data)(data.x, data.x, data.test_x, data.test_x)
    regex = options.pop("include_regex", "mu_output|logvar_output")
    defaults = {"optimizer": adam(3e-3), "steps": 160, "include_regex": regex}
    return fit(root, make, both, loss=loss, **defaults | options)


@healthy("a variational autoencoder of digits", kind="autoencoder")
def vae_digits(root: Path) -> int:
    return vae(root, VaeLoss(), steps=240, save_every=4)


@healthy(
    "a variational autoencoder whose divergence is weighted up: the loss rises", kind="autoencoder"
)
def vae_warmed_up(root: Path) -> int:
    return vae(root, VaeLoss(0.02, 100), steps=240, save_every=4)


@healthy("a variational autoencoder of two latent numbers", kind="autoencoder")
def vae_of_two(root: Path) -> int:
    return vae(root, VaeLoss(0.005), lambda: Vae(latent=2), steps=200)


@healthy("an autoencoder of noisy digits that returns clean ones", kind="autoencoder")
def denoising(root: Path) -> int:
    data = digits()
    noisy = lambda x: x + 0.5 * torch.randn(x.shape, generator=torch.Generator().manual_seed(0))
    both = type(data)(noisy(data.x), data.x, noisy(data.test_x), data.test_x)
    make = mlp(64, 48, 16, 48, 64)
    return fit(root, make, both, loss=nn.MSELoss(), optimizer=adam(3e-3), steps=160)


POSTERIOR = {"PosteriorCollapse"}


@faulty(
    "a variational autoencoder of digits",
    "the divergence is summed, the reconstruction averaged: beta is 64 times too high",
    POSTERIOR,
    may=UNTAUGHT,
    kind="autoencoder",
)
def vae_sum_and_mean(root: Path) -> int:
    return vae(root, VaeLoss(0.64))


@faulty(
    "a variational autoencoder of digits",
    "beta is 10: nothing passes the latent numbers",
    POSTERIOR,
    may=UNTAUGHT,
    kind="autoencoder",
)
def vae_beta_of_10(root: Path) -> int:
    return vae(root, VaeLoss(10.0), steps=200)


class Bypassed(Vae):
    """A decoder that sees its target beside the latent numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.decoder = nn.Sequential(nn.Linear(72, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x: Any) -> Any:
        hidden = self.encoder(x)
        mu, logvar = self.mu(hidden), self.logvar(hidden)
        latent = mu + torch.randn_like(mu) * (0.5 * logvar).exp() if self.training else mu
        return self.decoder(torch.cat([latent, x], 1)), mu, logvar


@faulty(
    "a variational autoencoder with a skip connection",
    "the decoder sees its input: it needs no latent numbers",
    POSTERIOR,
    may=UNTAUGHT,
    kind="autoencoder",
)
def vae_bypassed(root: Path) -> int:
    return vae(root, VaeLoss(0.1), Bypassed, steps=240)


@faulty(
    "a variational autoencoder of digits, beta grows by a schedule",
    "the schedule's end is 5 instead of 0.02",
    POSTERIOR,
    may=UNTAUGHT,
    kind="autoencoder",
)
def vae_beta_grows(root: Path) -> int:
    return vae(root, VaeLoss(5.0, 100), steps=300, save_every=4)


@faulty(
    "a variational autoencoder of 16 latent numbers, Adam at 0.01",
    "targets are divided by 100, beta is not",
    POSTERIOR,
    may=UNTAUGHT,
    kind="autoencoder",
)
def vae_small_targets(root: Path) -> int:
    data = digits().of(lambda x: x * 0.1)
    both = type(data)(data.x, data.x, data.test_x, data.test_x)
    make = lambda: Vae(latent=16)
    regex = "mu_output|logvar_output"
    return fit(
        root, make, both, loss=VaeLoss(0.05), optimizer=adam(0.01), steps=160, include_regex=regex
    )


# Adversarial pairs.


class Generator(nn.Module):
    """Makes points from noise."""

    def __init__(self, outs: int, noise: int = 8, width: int = 48) -> None:
        super().__init__()
        self.noise = noise
        self.layers = nn.Sequential(
            nn.Linear(noise, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.samples = nn.Linear(width, outs)

    def forward(self, z: Any) -> Any:
        return self.samples(self.layers(z))


class Discriminator(nn.Module):
    """Scores points: real or not."""

    def __init__(self, ins: int, width: int = 48) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(ins, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2)
        )
        self.score = nn.Linear(width, 1)

    def forward(self, x: Any) -> Any:
        return self.score(self.layers(x))


def ring(count: int, generator: Any) -> Any:
    """Return points of eight clusters on a circle."""
    angle = torch.randint(0, 8, (count,), generator=generator) * (3.14159 / 4)
    centre = torch.stack([angle.cos(), angle.sin()], 1)
    return centre + 0.05 * torch.randn(count, 2, generator=generator)


def gan(
    root: Path,
    *,
    of_digits: bool = False,
    steps: int = 200,
    rates: tuple[float, float] = (1e-3, 1e-3),
    noise: float = 1.0,
    wasserstein: bool = False,
    at: int = -1,
    change: Callable[[Any], object] = lambda _: None,
    save_every: int = 2,
) -> int:
    """Train a generator and a discriminator; return the step of the fault."""
    torch.manual_seed(0)
    random = torch.Generator().manual_seed(0)
    width = 64 if of_digits else 2
    real = batches(digits(), 64) if of_digits else None
    net_g, net_d = Generator(width), Discriminator(width)
    optimizer_g = torch.optim.Adam(net_g.parameters(), rates[0], betas=(0.5, 0.9))
    optimizer_d = torch.optim.Adam(net_d.parameters(), rates[1], betas=(0.5, 0.9))
    score = functional.binary_cross_entropy_with_logits
    onset = 0
    with watched(
        root, net_g, net_d, save_every=save_every, include_regex="^Generator_output_0"
    ) as watching:
        for step in range(steps):
            if step == at:
                onset = watching.global_step + 1
                change(net_g)
            points = next(real)[0] if real else ring(64, random)
            fake = net_g(noise * torch.randn(64, 8, generator=random))
            on_real, on_fake = net_d(points), net_d(fake.detach())
            if wasserstein:
                loss_d = on_fake.mean() - on_real.mean()
            else:
                loss_d = score(on_real, torch.ones(64, 1)) + score(on_fake, torch.zeros(64, 1))
            optimizer_d.zero_grad()
            loss_d.backward()
            optimizer_d.step()
            if wasserstein:
                with torch.no_grad():
                    for parameter in net_d.parameters():
                        parameter.clamp_(-0.1, 0.1)
            on_fake = net_d(fake)
            loss_g = -on_fake.mean() if wasserstein else score(on_fake, torch.ones(64, 1))
            optimizer_g.zero_grad()
            loss_g.backward()
            optimizer_g.step()
            watching.record_tensor_value("loss_D", loss_d)
            watching.record_tensor_value("loss_G", loss_g)
    return onset


@healthy("a generator and a discriminator of eight clusters", kind="adversarial")
def gan_ring(root: Path) -> int:
    return gan(root)


@healthy("a generator and a discriminator of digits", kind="adversarial")
def gan_digits(root: Path) -> int:
    return gan(root, of_digits=True, rates=(2e-3, 1e-3), steps=240, save_every=3)


@healthy("a Wasserstein pair of eight clusters, weights clipped", kind="adversarial")
def gan_wasserstein(root: Path) -> int:
    return gan(root, wasserstein=True, steps=240, save_every=3)


@healthy("a pair of digits, every tenth step saved", kind="adversarial")
def gan_seldom_saved(root: Path) -> int:
    return gan(root, of_digits=True, steps=400, save_every=10)


MODES = {"ModeCollapse"}
ONE_SAMPLE = UNTAUGHT | {
    "VanishingGradient": "a generator of one sample",
    "NormGrowth": "updates that are far too large",
    "UnchangedTensor": "a generator of one sample",
}


@faulty(
    "a pair of clusters", "the noise is zero: one sample", MODES, may=ONE_SAMPLE, kind="adversarial"
)
def gan_without_noise(root: Path) -> int:
    return gan(root, noise=0.0)


@faulty(
    "a pair of digits",
    "a slip of the axis: samples are averaged over the batch",
    MODES,
    may=ONE_SAMPLE,
    kind="adversarial",
)
def gan_of_means(root: Path) -> int:
    def make_mean(net_g: Any) -> None:
        net_g.layers.register_forward_hook(
            lambda _, __, output: output.mean(0, keepdim=True).expand_as(output)
        )

    return gan(root, of_digits=True, at=0, change=make_mean)


@faulty(
    "a pair of clusters",
    "at step 100 the generator's first layer is overwritten with zeros",
    MODES,
    may=ONE_SAMPLE,
    kind="adversarial",
)
def gan_collapses(root: Path) -> int:
    def zero(net_g: Any) -> None:
        with torch.no_grad():
            net_g.layers[0].weight.zero_()

    return gan(root, at=100, change=zero, rates=(1e-5, 1e-3))


@faulty(
    "a pair of digits",
    "the generator's rate is 0.3: dead units leave one sample",
    MODES,
    may=ONE_SAMPLE,
    kind="adversarial",
)
def gan_of_dead_units(root: Path) -> int:
    return gan(root, of_digits=True, rates=(0.3, 1e-3))


@faulty(
    "a pair of digits with noise of the last layer alone",
    "a batch shares its noise: the seed is set before each row",
    MODES,
    may=ONE_SAMPLE,
    kind="adversarial",
)
def gan_of_one_seed(root: Path) -> int:
    def share(net_g: Any) -> None:
        net_g.register_forward_pre_hook(lambda _, args: (args[0][:1].expand_as(args[0]),))

    return gan(root, of_digits=True, at=0, change=share)


# Diffusion.


class Denoiser(nn.Module):
    """Predicts the noise in a noisy digit, of its level."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = mlp(65, 96, 96, 64, act=nn.SiLU)()

    def forward(self, x: Any) -> Any:
        return self.layers(x)


def diffusion(root: Path, *, linear: bool = True, rate: float = 2e-3, steps: int = 240) -> int:
    torch.manual_seed(0)
    model, loss = Denoiser(), nn.MSELoss()
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    with watched(root, model, losses=[loss], save_every=4):
        for x, _ in (pair for _, pair in zip(range(steps), batches(digits(), 64), strict=False)):
            level = torch.rand(len(x), 1)
            kept = 1 - level if linear else torch.cos(level * 1.5708) ** 2
            noise = torch.randn_like(x)
            noisy = kept.sqrt() * x + (1 - kept).sqrt() * noise
            optimizer.zero_grad()
            loss(model(torch.cat([noisy, level], 1)), noise).backward()
            optimizer.step()
    return 0


@healthy("diffusion of digits, linear schedule", kind="diffusion")
def diffusion_linear(root: Path) -> int:
    return diffusion(root)


@healthy("diffusion of digits, cosine schedule, a higher rate", kind="diffusion")
def diffusion_cosine(root: Path) -> int:
    return diffusion(root, linear=False, rate=5e-3)


@healthy("diffusion of digits, a long and level end", kind="diffusion")
def diffusion_long(root: Path) -> int:
    return diffusion(root, steps=600)
