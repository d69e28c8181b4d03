"""Rates that do not fit, scales of the loss that fall, and gradients that add up."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.losses_and_optimizers.shared.consequences import BY_HEART, IDLE, THROWN
from runs_held_out.losses_and_optimizers.shared.data import (
    LETTERS,
    WORDS,
    beats,
    gestures,
    glyphs,
    houses,
    messages,
    opinions,
    subscribers,
)
from runs_held_out.losses_and_optimizers.shared.loop import (
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
    HousePrice,
    NanoGpt,
    WordCnn,
    adapted,
    conv1d,
    dense,
    resnet,
    taught,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")
OVERFLOWN = IDLE | THROWN

# Rates


@faulty(
    "glyphs by a residual network, SGD with momentum, warm-up and a line down to zero",
    "the length of the schedule is that of a first trial of half as many epochs: the second half "
    "has a rate of zero",
    {"LearningRate"},
    may=IDLE,
)
def schedule_of_a_shorter_trial(root: Path) -> int:
    torch.manual_seed(8120)
    model = resnet(8, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    return run(
        root,
        model,
        by(model),
        served(*glyphs(1280, 8120, noise=1.3), size=32, seed=8120),
        optimizer,
        steps=240,
        schedule=lambda_rate(optimizer, linear(10, 120)),
        test=glyphs(300, 8121, noise=1.3),
        test_every=40,
        fault_at=120,
    )


@faulty(
    "opinions by convolutions over words, AdamW, warm-up over 20 updates and a line down",
    "the schedule is never stepped: the rate is that of update 0, which is zero",
    {"LearningRate"},
    may=IDLE | BY_HEART,
)
def warm_up_never_stepped(root: Path) -> int:
    torch.manual_seed(8122)
    model = WordCnn(WORDS, 2)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    lambda_rate(optimizer, lambda step: min(step / 20, max(0.0, (200 - step) / 180)))
    return run(
        root,
        model,
        by(model),
        served(*opinions(1600, 8122), size=32, seed=8122),
        optimizer,
        steps=160,
        clip=1.0,
        test=opinions(400, 8123),
        test_every=50,
    )


@faulty(
    "kinds of heartbeats by convolutions, Adam, a cosine over all batches",
    "the cosine is told the number of batches, and stepped once an epoch: the rate hardly moves",
    {"LearningRate"},
    may=BY_HEART,
)
def cosine_stepped_by_epochs(root: Path) -> int:
    torch.manual_seed(8124)
    model = conv1d(4, drop=0.2)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    rates = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=240)

    def after(step: int) -> None:
        if (step + 1) % 24 == 0:
            rates.step()

    return run(
        root,
        model,
        by(model),
        served(*beats(960, 8124, noise=0.8), size=40, seed=8124),
        optimizer,
        steps=240,
        after=after,
        test=beats(300, 8125, noise=0.8),
        test_every=48,
    )


# Scales of the loss


@faulty(
    "which subscribers leave by dense layers in half precision, Adam, a scaler",
    "the loss is by hand in half precision: 1e-8 is zero there, and so is 1 - p of a sure answer, "
    "whose logarithm is infinite",
    {"LossScaleAtFloor", "LossNotDecreasing"},
    may=OVERFLOWN,
)
def smaller_than_half_precision(root: Path) -> int:
    torch.manual_seed(8126)
    model = dense(14, 64, 64, 1)

    def loss(batch: Any) -> Any:
        chance = model(batch[0]).half().sigmoid()
        left = batch[1].half()
        likely = left * (chance + 1e-8).log() + (1 - left) * (1 - chance + 1e-8).log()
        return -likely.mean()

    return run(
        root,
        model,
        loss,
        served(*subscribers(3000, 8126, noise=0.0), size=256, seed=8126),
        torch.optim.Adam(model.parameters(), 2e-2),
        steps=200,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=100),
    )


class _Masked(nn.Module):
    """The mean of words that attention chooses; padding gets a billion less."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.ask = nn.Embedding(WORDS, 24), nn.Linear(24, 1)
        self.head = dense(24, 32, 2)

    def forward(self, x: Any) -> Any:
        words = self.words(x)
        scores = self.ask(words)[..., 0].half()
        scores = scores + (x == 0).half() * torch.tensor(-1e9).half()
        weights = scores.softmax(1)
        return self.head((weights[..., None] * words).sum(1))


@faulty(
    "opinions by attention to words in half precision, AdamW, a scaler, clipped",
    "padding gets -1e9, which is minus infinity in half precision, and some opinions are empty: "
    "their weights are no numbers",
    {"LossScaleAtFloor", "LossNotDecreasing"},
    may=OVERFLOWN,
)
def billion_in_half_precision(root: Path) -> int:
    torch.manual_seed(8128)
    model = _Masked()
    words, praise = opinions(1600, 8128)
    words[::9] = 0
    return run(
        root,
        model,
        by(model),
        served(words, praise, size=40, seed=8128),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=120,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu"),
        clip=1.0,
    )


class _Levelled(nn.Module):
    """Standardises each picture by its own mean and spread before a network."""

    def __init__(self) -> None:
        super().__init__()
        self.network = Cnn(8, norm=False)

    def forward(self, x: Any) -> Any:
        x = x.half()
        mean = x.mean((2, 3), keepdim=True)
        variance = (x - mean).square().mean((2, 3), keepdim=True)
        return self.network((x - mean) / (variance + 1e-12).sqrt())


@faulty(
    "glyphs by convolutions in half precision, each picture is standardised by itself, SGD with "
    "momentum, a scaler",
    "the least variance of 1e-12 is zero in half precision: blank pictures are zero through zero",
    {"LossScaleAtFloor", "LossNotDecreasing"},
    may=OVERFLOWN,
)
def least_variance_of_1e_12(root: Path) -> int:
    torch.manual_seed(8130)
    model = _Levelled()
    x, kind = glyphs(1400, 8130)
    x[::12] = 0.0
    return run(
        root,
        model,
        by(model),
        served(x, kind, size=48, seed=8130),
        torch.optim.SGD(model.parameters(), 0.05, momentum=0.9),
        steps=100,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**14),
    )


# Gradients that add up


@faulty(
    "prices of houses by embeddings and dense layers, Adam",
    "`optimizer.zero_grad` has no brackets, and is never called",
    {"GradientAccumulates"},
    may=THROWN,
)
def zero_grad_without_brackets(root: Path) -> int:
    torch.manual_seed(8132)
    model = HousePrice()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return run(
        root,
        model,
        by(model, functional.mse_loss),
        served(*houses(2000, 8132), size=40, seed=8132),
        optimizer,
        steps=160,
        clear=lambda: optimizer.zero_grad,
    )


@faulty(
    "gestures by a transformer encoder, AdamW, clipped, two batches to an update",
    "gradients are set to zero as an epoch begins, not after each update",
    {"GradientAccumulates"},
    may=THROWN,
)
def cleared_as_an_epoch_begins(root: Path) -> int:
    torch.manual_seed(8134)
    model = Encoder(3, 6)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)

    def before(step: int) -> None:
        if step % 40 == 0:
            optimizer.zero_grad()

    return run(
        root,
        model,
        by(model),
        served(*gestures(960, 8134), size=24, seed=8134),
        optimizer,
        steps=200,
        clip=1.0,
        accumulate=2,
        before=before,
        clear=lambda: None,
    )


@of_language(
    "a decoder of letters that learnt short messages gets adapters for letters to customers, "
    "AdamW, warm-up and cosine, clipped",
    "`zero_grad` is called on the optimizer of the training before, which has none of the adapters",
    {"GradientAccumulates"},
    may=THROWN,
)
def cleared_by_the_optimizer_before(root: Path) -> int:
    torch.manual_seed(8136)
    model = NanoGpt(len(LETTERS))
    taught(model, by(model), served(*messages(1500, 8137), size=16, seed=8137), 150, 5e-3)
    first = torch.optim.AdamW(model.parameters(), 5e-3)
    adapted(model)
    adapters = [each for each in model.parameters() if each.requires_grad]
    optimizer = torch.optim.AdamW(adapters, 3e-3)
    return run(
        root,
        model,
        by(model),
        served(*messages(1500, 8136, style=1), size=16, seed=8136),
        optimizer,
        steps=150,
        schedule=lambda_rate(optimizer, cosine(10, 150)),
        clip=1.0,
        clear=first.zero_grad,
    )
