"""Healthy trainings of messages, opinions and numbers, and of points by diffusion."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.losses_and_optimizers.shared.data import (
    LETTERS,
    WORDS,
    backwards,
    messages,
    opinions,
    random,
)
from runs_held_out.losses_and_optimizers.shared.loop import (
    by,
    cosine,
    lambda_rate,
    linear,
    resumed,
    run,
    served,
)
from runs_held_out.losses_and_optimizers.shared.models import (
    Adder,
    LetterLstm,
    NanoGpt,
    WordCnn,
    WordMean,
    adapted,
    dense,
    taught,
)

healthy = training_runs.healthy
of_language = functools.partial(healthy, kind="language_model")


def groups(model: Any, decay: float = 0.1) -> list[dict[str, Any]]:
    """Return parameters with decay, and vectors without it, as nanoGPT does."""
    matrices = [each for each in model.parameters() if each.ndim > 1]
    vectors = [each for each in model.parameters() if each.ndim == 1]
    return [
        {"params": matrices, "weight_decay": decay},
        {"params": vectors, "weight_decay": 0.0},
    ]


@of_language(
    "short messages by a decoder of letters, AdamW, warm-up and cosine, clipped, four batches to "
    "an update"
)
def messages_by_gpt(root: Path) -> int:
    torch.manual_seed(8070)
    model = NanoGpt(len(LETTERS))
    optimizer = torch.optim.AdamW(groups(model), 8e-3, betas=(0.9, 0.95))
    return run(
        root,
        model,
        by(model),
        served(*messages(2400, 8070), size=8, seed=8070),
        optimizer,
        steps=400,
        every=2,
        schedule=lambda_rate(optimizer, cosine(10, 100, 0.1)),
        clip=1.0,
        accumulate=4,
        test=messages(300, 8071),
        test_every=80,
    )


@of_language("short messages by a decoder in bfloat16, dropout, AdamW, warm-up and a line down")
def messages_in_bfloat16(root: Path) -> int:
    torch.manual_seed(8072)
    model = NanoGpt(len(LETTERS), drop=0.1)
    optimizer = torch.optim.AdamW(groups(model, 0.01), 5e-3)
    return run(
        root,
        model,
        by(model),
        served(*messages(2000, 8072), size=20, seed=8072),
        optimizer,
        steps=200,
        every=2,
        schedule=lambda_rate(optimizer, linear(20, 205)),
        clip=1.0,
        half=torch.bfloat16,
        test=messages(300, 8073),
        test_every=50,
    )


@of_language("short messages by an LSTM over letters, Adam, clipped, dropout")
def messages_by_lstm(root: Path) -> int:
    torch.manual_seed(8074)
    model = LetterLstm(len(LETTERS), 64, 0.1)
    optimizer = torch.optim.Adam(model.parameters(), 8e-3)
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=10)
    fall = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 210)
    return run(
        root,
        model,
        by(model),
        served(*messages(2400, 8074), size=32, seed=8074),
        optimizer,
        steps=220,
        schedule=torch.optim.lr_scheduler.SequentialLR(optimizer, [warm, fall], [10]),
        clip=0.5,
        test=messages(300, 8075),
        test_every=55,
    )


@of_language("a decoder of short messages is adapted to letters to customers (LoRA), AdamW")
def messages_adapted(root: Path) -> int:
    torch.manual_seed(8076)
    model = NanoGpt(len(LETTERS))
    taught(model, by(model), served(*messages(1500, 8077), size=16, seed=8077), 150, 5e-3)
    adapted(model)
    adapters = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(adapters, 5e-3, weight_decay=0.01)
    return run(
        root,
        model,
        by(model),
        served(*messages(1500, 8076, style=1), size=16, seed=8076),
        optimizer,
        steps=180,
        schedule=lambda_rate(optimizer, cosine(10, 180)),
        clip=1.0,
        test=messages(200, 8078, style=1),
        test_every=45,
    )


@of_language("a decoder of short messages is tuned as a whole, a small rate, AdamW, a line down")
def messages_tuned(root: Path) -> int:
    torch.manual_seed(8080)
    model = NanoGpt(len(LETTERS))
    taught(model, by(model), served(*messages(1500, 8081), size=16, seed=8081), 150, 5e-3)
    optimizer = torch.optim.AdamW(groups(model, 0.01), 1e-3)
    return run(
        root,
        model,
        by(model),
        served(*messages(1500, 8080, style=1), size=16, seed=8080),
        optimizer,
        steps=150,
        schedule=lambda_rate(optimizer, linear(15, 155)),
        clip=1.0,
        test=messages(200, 8082, style=1),
        test_every=50,
    )


@of_language("short messages by a decoder go on from a checkpoint, AdamW, warm-up and cosine")
def messages_go_on(root: Path) -> int:
    torch.manual_seed(8084)
    model = NanoGpt(len(LETTERS))
    return resumed(
        root,
        model,
        by(model),
        messages(4000, 8084),
        torch.optim.AdamW(groups(model), 6e-3),
        stops=((140, 152),),
        steps=220,
        size=16,
        factor=cosine(15, 220, 0.1),
        clip=1.0,
    )


@healthy("opinions by the mean of words, dropout, Adam, a line down")
def opinions_by_means(root: Path) -> int:
    torch.manual_seed(8086)
    model = WordMean(WORDS, 2, drop=0.3)
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    return run(
        root,
        model,
        by(model),
        served(*opinions(2400, 8086, 0.3), size=48, seed=8086),
        optimizer,
        steps=250,
        schedule=lambda_rate(optimizer, linear(0, 260)),
        test=opinions(500, 8087, 0.3),
        test_every=50,
    )


@healthy("opinions by convolutions over words, Adagrad")
def opinions_by_convolutions(root: Path) -> int:
    torch.manual_seed(8088)
    model = WordCnn(WORDS, 2, drop=0.4)
    return run(
        root,
        model,
        by(model),
        served(*opinions(2000, 8088, 0.3), size=40, seed=8088),
        torch.optim.Adagrad(model.parameters(), 0.03),
        steps=200,
        every=2,
        test=opinions(400, 8089, 0.3),
        test_every=50,
    )


@healthy("numbers written backwards by an encoder and a decoder with attention, Adam, clipped")
def backwards_by_decoder(root: Path) -> int:
    torch.manual_seed(8090)
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    return run(
        root,
        model,
        by(model),
        served(*backwards(3000, 8090), size=50, seed=8090),
        optimizer,
        steps=300,
        every=3,
        schedule=lambda_rate(optimizer, cosine(0, 310, 0.02)),
        clip=1.0,
        test=backwards(400, 8091),
        test_every=60,
    )


class _Denoiser(nn.Module):
    """Tells the noise in points at a time of the diffusion."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = dense(2 + 16, 64, 64, 2, unit=nn.SiLU)

    def forward(self, x: Any, time: Any) -> Any:
        angles = time[:, None] * 2.0 ** torch.arange(8) * 0.5
        return self.layers(torch.cat([x, angles.sin(), angles.cos()], 1))


@healthy("points on two arcs by diffusion, AdamW, warm-up and cosine, clipped", kind="diffusion")
def arcs_by_diffusion(root: Path) -> int:
    torch.manual_seed(8092)
    model, chance = _Denoiser(), random(8093)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    angle = 3.14 * torch.rand(4000, generator=chance)
    side = torch.randint(0, 2, (4000,), generator=chance)
    x = torch.stack([angle.cos() + side - 0.5, (1 - 2 * side) * (angle.sin() - 0.25)], 1)
    x = x / x.std(0) + 0.05 * torch.randn(4000, 2, generator=chance)

    def loss(batch: Any) -> Any:
        time = torch.rand(len(batch[0]), generator=chance)
        noise = torch.randn(batch[0].shape, generator=chance)
        kept = (time * 1.57).cos()[:, None]
        mixed = kept * batch[0] + (1 - kept**2).sqrt() * noise
        return functional.mse_loss(model(mixed, time), noise)

    return run(
        root,
        model,
        loss,
        served(x, size=200, seed=8092),
        optimizer,
        steps=300,
        every=2,
        schedule=lambda_rate(optimizer, cosine(15, 300)),
        clip=1.0,
    )
