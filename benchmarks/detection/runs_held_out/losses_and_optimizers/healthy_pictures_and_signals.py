"""Healthy trainings of glyphs, coins, heartbeats, gestures and electric load."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.losses_and_optimizers.shared.data import (
    beats,
    coins,
    gestures,
    glyphs,
    load,
    random,
)
from runs_held_out.losses_and_optimizers.shared.loop import (
    Patience,
    by,
    cosine,
    lambda_rate,
    linear,
    run,
    served,
)
from runs_held_out.losses_and_optimizers.shared.models import (
    Cnn,
    Encoder,
    Recurrent,
    UNet,
    conv1d,
    dense,
    resnet,
    taught,
)

healthy = training_runs.healthy


@healthy("glyphs by convolutions with batch norm and dropout, SGD with momentum, one cycle")
def glyphs_in_one_cycle(root: Path) -> int:
    torch.manual_seed(8030)
    model = Cnn(8, drop=0.2)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    return run(
        root,
        model,
        by(model),
        served(*glyphs(1600, 8030, noise=0.9), size=40, seed=8030),
        optimizer,
        steps=200,
        every=2,
        schedule=torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=200),
        test=glyphs(400, 8031, noise=0.9),
        test_every=40,
    )


@healthy("glyphs by a residual network, smoothed labels, AdamW, warm-up and cosine")
def glyphs_by_resnet(root: Path) -> int:
    torch.manual_seed(8032)
    model = resnet(8, 10)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05)
    return run(
        root,
        model,
        by(model, nn.CrossEntropyLoss(label_smoothing=0.1)),
        served(*glyphs(1600, 8032, noise=1.1), size=40, seed=8032),
        optimizer,
        steps=160,
        schedule=lambda_rate(optimizer, cosine(16, 160)),
        clip=1.0,
        test=glyphs(300, 8033, noise=1.1),
        test_every=40,
        test_loss=by(model),
    )


@healthy("glyphs by convolutions in half precision, a scaler, clipped after unscaling, NAdam")
def glyphs_in_half_precision(root: Path) -> int:
    torch.manual_seed(8034)
    model = Cnn(8, 10, drop=0.1)
    return run(
        root,
        model,
        by(model),
        served(*glyphs(1500, 8034, noise=1.0), size=32, seed=8034),
        torch.optim.NAdam(model.parameters(), 2e-3),
        steps=180,
        clip=2.0,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", growth_interval=100),
        test=glyphs(300, 8035, noise=1.0),
        test_every=46,
    )


@healthy("glyphs by a network of eight kinds that learnt five: head first, then all, Adam")
def glyphs_thawed(root: Path) -> int:
    torch.manual_seed(8036)
    model = Cnn(5, drop=0.2)
    x, kind = glyphs(2400, 8037, noise=0.9)
    early = served(x[kind < 5], kind[kind < 5], size=40, seed=8037)
    taught(model, by(model), early, 120)
    model.head = nn.Linear(18 * 12, 8)
    model.body.requires_grad_(requires_grad=False)
    groups = [
        {"params": model.body.parameters(), "lr": 3e-4},
        {"params": model.head.parameters(), "lr": 3e-3},
    ]

    def before(step: int) -> None:
        if step == 60:
            model.body.requires_grad_(requires_grad=True)

    return run(
        root,
        model,
        by(model),
        served(*glyphs(1500, 8036, noise=0.9), size=30, seed=8036),
        torch.optim.Adam(groups),
        steps=200,
        before=before,
        test=glyphs(400, 8038, noise=0.9),
        test_every=50,
    )


@healthy("glyphs by a small network that a larger one teaches (distillation), AdamW")
def glyphs_distilled(root: Path) -> int:
    torch.manual_seed(8040)
    x, kind = glyphs(1600, 8040, noise=1.0)
    teacher = resnet(8, 12)
    taught(teacher, by(teacher), served(x, kind, size=40, seed=8041), 120)
    teacher.eval()
    model = Cnn(8, 6)

    def loss(batch: Any) -> Any:
        scores = model(batch[0])
        with torch.no_grad():
            told = (teacher(batch[0]) / 2).log_softmax(1)
        given = (scores / 2).log_softmax(1)
        alike = functional.kl_div(given, told, reduction="batchmean", log_target=True)
        return 0.5 * functional.cross_entropy(scores, batch[1]) + 0.5 * 4 * alike

    return run(
        root,
        model,
        loss,
        served(x, kind, size=40, seed=8040),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=200,
        test=glyphs(300, 8042, noise=1.0),
        test_every=40,
        test_loss=by(model),
    )


@healthy("masks of coins by a small U-Net, cross entropy and dice, Adam, a line down")
def coins_by_unet(root: Path) -> int:
    torch.manual_seed(8042)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)

    def loss(batch: Any) -> Any:
        scores, mask = model(batch[0]).float(), batch[1]
        chance = scores.sigmoid()
        shared = (chance * mask).sum((1, 2, 3))
        dice = 1 - (2 * shared + 1) / (chance.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
        return functional.binary_cross_entropy_with_logits(scores, mask) + dice.mean()

    return run(
        root,
        model,
        loss,
        served(*coins(640, 8042, noise=0.8), size=16, seed=8042),
        optimizer,
        steps=160,
        every=2,
        schedule=lambda_rate(optimizer, linear(0, 170)),
        test=coins(160, 8043, noise=0.8),
        test_every=40,
    )


@healthy("glyphs without their noise by an autoencoder, Adam, clipped", kind="autoencoder")
def glyphs_without_noise(root: Path) -> int:
    torch.manual_seed(8044)
    model = nn.Sequential(nn.Flatten(), dense(144, 64, 24, 64, 144, unit=nn.GELU))
    chance = random(8045)
    x, _ = glyphs(1500, 8044, noise=0.1)
    test_x, _ = glyphs(300, 8046, noise=0.1)
    noisy = test_x + 0.6 * torch.randn(test_x.shape, generator=chance)

    def read() -> Any:
        for (clean,) in served(x, size=50, seed=8044):
            yield clean + 0.6 * torch.randn(clean.shape, generator=chance), clean.flatten(1)

    return run(
        root,
        model,
        by(model, functional.mse_loss),
        read(),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=240,
        clip=1.0,
        test=(noisy, test_x.flatten(1)),
        test_every=60,
    )


@healthy("two noisy looks at glyphs by convolutions, SimCLR, AdamW, warm-up", kind="contrastive")
def glyphs_looked_at_twice(root: Path) -> int:
    torch.manual_seed(8048)
    model = nn.Sequential(Cnn(48), nn.ReLU(), nn.Linear(48, 24))
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=1e-4)
    chance = random(8049)

    def look(x: Any) -> Any:
        scale = 0.8 + 0.4 * torch.rand(len(x), 1, 1, 1, generator=chance)
        return scale * x + 0.4 * torch.randn(x.shape, generator=chance)

    def loss(batch: Any) -> Any:
        codes = functional.normalize(model(torch.cat([look(batch[0]), look(batch[0])])), dim=1)
        alike = codes @ codes.T / 0.2
        alike.fill_diagonal_(-1e9)
        half = len(batch[0])
        return functional.cross_entropy(alike, torch.arange(2 * half).roll(half))

    return run(
        root,
        model,
        loss,
        served(*glyphs(2000, 8048, kinds=24, noise=0.4), size=64, seed=8048),
        optimizer,
        steps=140,
        schedule=lambda_rate(optimizer, cosine(10, 140)),
    )


@healthy("kinds of heartbeats by convolutions, AdamW, the rate falls on plateaus, stopped early")
def heartbeats_stopped_early(root: Path) -> int:
    torch.manual_seed(8050)
    model = conv1d(4, drop=0.3)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.02)
    plateaus = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=1)
    patience = Patience(model, 4)

    def validated(loss: float) -> bool:
        plateaus.step(loss)
        return patience(loss)

    return run(
        root,
        model,
        by(model),
        served(*beats(1500, 8050, noise=1.0), size=50, seed=8050),
        optimizer,
        steps=600,
        every=3,
        test=beats(500, 8051, noise=1.0),
        test_every=30,
        validated=validated,
    )


@healthy("gestures by an LSTM, Adam, clipped, the rate is halved by steps")
def gestures_by_lstm_in_steps(root: Path) -> int:
    torch.manual_seed(8052)
    model = Recurrent(nn.LSTM, 3, 6, 40)
    optimizer = torch.optim.Adam(model.parameters(), 8e-3)
    return run(
        root,
        model,
        by(model),
        served(*gestures(1600, 8052), size=40, seed=8052),
        optimizer,
        steps=240,
        every=2,
        schedule=torch.optim.lr_scheduler.StepLR(optimizer, 80, 0.5),
        clip=1.0,
        test=gestures(400, 8053),
        test_every=40,
    )


@healthy("gestures by a transformer encoder in bfloat16, AdamW, warm-up and cosine, clipped")
def gestures_in_bfloat16(root: Path) -> int:
    torch.manual_seed(8054)
    model = Encoder(3, 6)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.01)
    return run(
        root,
        model,
        by(model),
        served(*gestures(1500, 8054), size=32, seed=8054),
        optimizer,
        steps=180,
        schedule=lambda_rate(optimizer, cosine(18, 180)),
        clip=1.0,
        half=torch.bfloat16,
        test=gestures(300, 8055),
        test_every=46,
    )


@healthy(
    "gestures by a transformer encoder, four batches to an update, SGD with momentum, a cosine"
)
def gestures_accumulated(root: Path) -> int:
    torch.manual_seed(8056)
    model = Encoder(3, 6, 24, 0.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    return run(
        root,
        model,
        by(model),
        served(*gestures(1280, 8056), size=16, seed=8056),
        optimizer,
        steps=320,
        schedule=lambda_rate(optimizer, cosine(8, 80)),
        clip=1.0,
        accumulate=4,
        test=gestures(300, 8057),
        test_every=80,
    )


@healthy("electric load of the next hours by a GRU, Huber's loss, RMSprop, clipped")
def load_by_gru(root: Path) -> int:
    torch.manual_seed(8058)
    model = Recurrent(nn.GRU, 1, 3, 28)
    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)
    return run(
        root,
        model,
        by(model, functional.huber_loss),
        served(*load(1500, 8058), size=30, seed=8058),
        optimizer,
        steps=220,
        schedule=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99),
        clip=1.0,
        test=load(300, 8059),
        test_every=44,
    )
