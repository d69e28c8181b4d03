"""Healthy trainings of codes, of diffusion, and of pairs that draw and judge."""

import copy
import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import watched

from runs_tuned.third_held_out.sequences.shared.codes import Coder, learn_codes
from runs_tuned.third_held_out.sequences.shared.lessons import NOTES, notes
from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.shapes import chords, rings, stack, tides
from runs_tuned.third_held_out.sequences.shared.texts import GENES, genes

of_codes = functools.partial(training_runs.healthy, kind="autoencoder")
of_diffusion = functools.partial(training_runs.healthy, kind="diffusion")
of_samples = functools.partial(training_runs.healthy, kind="adversarial")

# Codes


@of_codes("a variational autoencoder of rings, NAdam, the weight rises in an S to 1, large batches")
def rings_by_codes(root: Path) -> int:
    rises = lambda step: 1 / (1 + math.exp((80 - step) / 15))
    return learn_codes(
        root,
        Coder(100, 8),
        rings()[0],
        weight=rises,
        kind=torch.optim.NAdam,
        rate=2e-3,
        seed=440,
        size=96,
        save_every=3,
    )


@of_codes(
    "a variational autoencoder of chords, half of the weight, codes bounded, Adamax, noise 0.4"
)
def chords_by_codes(root: Path) -> int:
    model = Coder(32, 10, limit=lambda spread: spread.clamp(-8, 4))
    return learn_codes(
        root,
        model,
        chords()[0],
        weight=lambda _: 0.5,
        noise=0.4,
        kind=torch.optim.Adamax,
        rate=8e-3,
        seed=441,
        steps=220,
        clip=20.0,
    )


class Levels(nn.Module):
    """An autoencoder whose codes are rounded to five levels, straight through."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = stack(30 * 3, 80, 9, act=nn.GELU)
        self.decoder = stack(9, 80, 30 * 3, act=nn.GELU)

    def forward(self, x: Any) -> Any:
        code = 2 * torch.tanh(self.encoder(x))
        return self.decoder(code + (code.round() - code).detach())


@of_codes("tides by nine numbers of five levels each, straight through, RAdam, mean absolute error")
def tides_by_levels(root: Path) -> int:
    torch.manual_seed(442)
    hours, later = tides()
    x = torch.cat([hours.flatten(1), later, later, later], 1)
    model = Levels()
    return teach(
        root,
        model,
        dealt(x[:620], x[:620], seed=442, size=31),
        torch.optim.RAdam(model.parameters(), 4e-3),
        loss=nn.L1Loss(),
        steps=200,
        save_every=2,
        held_out=(x[620:], x[620:]),
    )


# Diffusion


@of_diffusion("tides from noise of widely drawn strengths (EDM), a slow average, warm-up")
def tides_from_noise(root: Path) -> int:
    torch.manual_seed(443)
    model = stack(72 + 1, 128, 128, 72)
    slow = copy.deepcopy(model)
    x = tides()[0].flatten(1)
    x = (x - x.mean()) / (2 * x.std())

    def objective(batch: Any, _: Any) -> Any:
        strength = (1.1 * torch.randn(len(batch[0]), 1) - 0.8).exp()
        spoiled = batch[0] + strength * torch.randn_like(batch[0])
        whole = (strength**2 + 0.25).sqrt()
        goal = (batch[0] - 0.25 / whole**2 * spoiled) / (strength * 0.5 / whole)
        found = model(torch.cat([spoiled / whole, strength.log() / 4], 1))
        return functional.mse_loss(found, goal)

    def after(_: int) -> None:
        with torch.no_grad():
            for kept, fast in zip(slow.parameters(), model.parameters(), strict=True):
                kept.lerp_(fast, 0.02)

    return teach(
        root,
        model,
        dealt(x, size=64, seed=443),
        torch.optim.Adam(model.parameters(), 3e-3),
        objective=objective,
        after=after,
        schedule=lambda step: min(1.0, (step + 1) / 20),
        steps=220,
        save_every=2,
        clip=1.0,
    )


@of_diffusion(
    "rings of a given size from noise: the velocity is foreseen, a tenth without the size"
)
def rings_of_a_size(root: Path) -> int:
    torch.manual_seed(444)
    model = stack(100 + 4 + 2, 160, 160, 100, act=nn.SiLU, norm=nn.LayerNorm)

    def objective(batch: Any, _: Any) -> Any:
        x, size = batch
        size = torch.where(torch.rand(len(x)) < 0.1, 3, size)
        angle = math.pi / 2 * torch.rand(len(x), 1)
        noise = torch.randn_like(x)
        known = torch.cat([angle.cos(), angle.sin(), functional.one_hot(size, 4)], 1)
        found = model(torch.cat([angle.cos() * x + angle.sin() * noise, known], 1))
        errors = (found - angle.cos() * noise + angle.sin() * x).pow(2).mean(1)
        signal = (angle.cos() / angle.sin().clamp(min=1e-3)).pow(2)[:, 0]
        return (errors * signal.clamp(max=5) / (signal + 1)).mean()

    return teach(
        root,
        model,
        dealt(*rings(), size=50, seed=444),
        torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01),
        objective=objective,
        schedule=warmed(10, 240),
        steps=240,
        save_every=3,
    )


class Filler(nn.Module):
    """An encoder that fills in hidden words; the share of them is known."""

    def __init__(self, words: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(max(words, hidden + 1), 32)
        self.places = nn.Parameter(0.1 * torch.randn(24, 32))
        self.share = nn.Linear(1, 32)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.head = nn.Linear(32, words)

    def forward(self, x: Any, share: Any) -> Any:
        x = self.embedding(x) + self.places + self.share(share)[:, None]
        for layer in self.layers:
            x = layer(x)
        return self.head(x).transpose(1, 2)


def learn_to_fill(root: Path, model: Any, rows: Any, optimizer: Any, **more: Any) -> int:
    """Train a model to fill in a share of the words that is drawn for each row."""

    def objective(batch: Any, _: Any) -> Any:
        share = 0.1 + 0.9 * torch.rand(len(batch[0]), 1)
        is_hidden = torch.rand(batch[0].shape) < share
        scores = model(batch[0].masked_fill(is_hidden, model.hidden), share)
        errors = functional.cross_entropy(scores, batch[0], reduction="none") * is_hidden
        return (errors / share).mean()

    return teach(root, model, dealt(rows, seed=445), optimizer, objective=objective, **more)


@of_diffusion(
    "codons are hidden and foreseen, any share of them (masked diffusion), AdamW, clipped"
)
def hidden_codons(root: Path) -> int:
    torch.manual_seed(445)
    model = Filler(GENES, GENES)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    more = {"schedule": warmed(10, 170), "steps": 170, "save_every": 3, "clip": 1.0}
    return learn_to_fill(root, model, genes(), optimizer, **more)


@of_diffusion(
    "melodies are hidden and foreseen, any share of them, three batches accumulated, Adam"
)
def hidden_melodies(root: Path) -> int:
    torch.manual_seed(446)
    model = Filler(NOTES, NOTES - 1)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    more = {"accumulate": 3, "steps": 300, "save_every": 6}
    return learn_to_fill(root, model, notes(), optimizer, **more)


# Samples


@of_samples(
    "chords of a given tone, a critic with a penalty of slopes, a slow average of what draws"
)
def chords_drawn(root: Path) -> int:
    torch.manual_seed(447)
    torch.set_num_threads(1)
    generator = stack(16 + 4, 64, 64, 32, act=nn.ReLU)
    critic = stack(32 + 4, 64, 64, 1, act=lambda: nn.LeakyReLU(0.2))
    slow = copy.deepcopy(generator)
    drawing = torch.optim.Adam(generator.parameters(), 1e-3, betas=(0.0, 0.95))
    judging = torch.optim.Adam(critic.parameters(), 2e-3, betas=(0.0, 0.95))
    with watched(root, save_every=4) as hook:
        for part in (generator, critic):
            hook.register_module(part, counts_steps=False)
        for _, (real, tone) in zip(range(320), dealt(*chords(), size=48, seed=447), strict=False):
            hook.begin_step()
            kind = functional.one_hot(tone, 4).float()
            fake = generator(torch.cat([torch.randn(48, 16), kind], 1))
            x = real.clone().requires_grad_()
            judged = critic(torch.cat([x, kind], 1))
            (slope,) = torch.autograd.grad(judged.sum(), x, create_graph=True)
            of_fake = critic(torch.cat([fake.detach(), kind], 1))
            value = functional.softplus(of_fake).mean() + functional.softplus(-judged).mean()
            judging.zero_grad()
            (value + 0.3 * slope.pow(2).sum(1).mean()).backward()
            judging.step()
            drawn = functional.softplus(-critic(torch.cat([fake, kind], 1))).mean()
            drawing.zero_grad()
            drawn.backward()
            drawing.step()
            with torch.no_grad():
                for kept, fast in zip(slow.parameters(), generator.parameters(), strict=True):
                    kept.lerp_(fast, 0.05)
            hook.record_tensor_value("critic_loss", value)
            hook.record_tensor_value("generator_loss", drawn)
            hook.save_tensor("samples", fake, "samples")
            hook.step()
    return 0
