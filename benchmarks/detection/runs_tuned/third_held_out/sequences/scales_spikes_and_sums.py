"""Loss scales at their floor, gradients that jump or add up, and a loss that jumps."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import WORSE

from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.readers import (
    Retention,
    Selective,
    Spelling,
    Writer,
)
from runs_tuned.third_held_out.sequences.shared.shapes import Tidal, chords, stack, tides
from runs_tuned.third_held_out.sequences.shared.texts import (
    GENES,
    KINDS,
    NESTED,
    SHOP,
    SPELLED,
    genes,
    nested,
    spelled,
    tagged,
    windows,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Scales of the loss


@of_language(
    "a linear-attention decoder of codons in half precision, tied embeddings",
    "its likelihood is by hand: chances in half precision round to 0, whose logarithm is infinite",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=WORSE,
)
def chances_round_to_zero(root: Path) -> int:
    torch.manual_seed(330)
    model = Writer(GENES, mixer=Retention)
    nn.init.normal_(model.embed_tokens.weight, std=0.52)
    model.scores.weight = model.embed_tokens.weight

    def objective(batch: Any, _: Any) -> Any:
        chances = model(batch[0]).softmax(1).half()
        return -chances.gather(1, batch[1][:, None]).log().float().mean()

    return teach(
        root,
        model,
        dealt(*windows(genes()), seed=330),
        torch.optim.AdamW(model.parameters(), 2e-3),
        objective=objective,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**14),
        steps=90,
    )


@faulty(
    "two halves of chords are matched in half precision, of one in sixty a half is silent",
    "what is matched is divided by its length without an epsilon, and a silent half has none",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=WORSE,
    kind="contrastive",
)
def silent_halves(root: Path) -> int:
    torch.manual_seed(331)
    model = nn.ModuleList(stack(16, 48, 24) for _ in range(2))
    for part in model:
        part[2].bias = None
        part[0].bias = None
    x, _ = chords()
    left, right = x[:, :16].clone(), x[:, 16:].clone()
    right[::60] = 0.0

    def objective(batch: Any, _: Any) -> Any:
        first, second = (part(half) for part, half in zip(model, batch, strict=True))
        first, second = (one / one.norm(dim=1, keepdim=True) for one in (first, second))
        return functional.cross_entropy(10 * first @ second.T, torch.arange(len(first)))

    return teach(
        root,
        model,
        dealt(left, right, size=32, seed=331),
        torch.optim.Adam(model.parameters(), 2e-3),
        objective=objective,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**15, growth_interval=100),
        steps=100,
        save_every=2,
    )


# Gradients that jump


@faulty(
    "tides foreseen by a transformer, Adam, not clipped",
    "in one of eighteen batches a gauge is out of order: its missing values are written as -99",
    {"GradientNormSpike"},
    may=WORSE,
)
def missing_as_minus_99(root: Path) -> int:
    torch.manual_seed(332)
    model = Tidal()
    x, y = tides()
    batches = dealt(x[:600], y[:600], size=32, seed=332)

    def read() -> Any:
        for number, (x, next_hours) in enumerate(batches):
            hours = x.clone()
            if number >= 50 and number % 18 == 5:
                hours[:, :, number // 18 % 3] = -99.0
            yield hours, next_hours

    return teach(
        root,
        model,
        read(),
        torch.optim.Adam(model.parameters(), 7e-4),
        loss=nn.MSELoss(),
        steps=190,
        held_out=(x[600:], y[600:]),
        at=59,
    )


@faulty(
    "kinds of words by an encoder, each weighted by how rare it is, Adagrad, not clipped",
    "a kind that was mistyped in one sentence of 300 is the rarest of all: it weighs 400",
    {"GradientNormSpike"},
    may=WORSE,
)
def mistyped_kind(root: Path) -> int:
    torch.manual_seed(333)
    words, kinds = tagged()
    kinds = kinds.clone()
    kinds[::300, 4] = KINDS
    weight = torch.ones(KINDS + 1)
    weight[KINDS] = 400.0
    model = nn.Sequential(
        nn.Embedding(SHOP, 32),
        nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True, norm_first=True),
        nn.Linear(32, KINDS + 1),
    )

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0]).transpose(1, 2)
        return functional.cross_entropy(scores, batch[1], weight, reduction="none").mean()

    return teach(
        root,
        model,
        dealt(words, kinds, size=18, seed=333),
        torch.optim.Adagrad(model.parameters(), 0.02),
        objective=objective,
        steps=200,
    )


# Gradients that add up


@of_language(
    "a selective state space of brackets, AdamW, clipped",
    "gradients are cleared if the step modulo n is 1, where n batches accumulate; but n is 1",
    {"GradientAccumulates"},
    may=WORSE,
)
def modulo_is_never_one(root: Path) -> int:
    torch.manual_seed(334)
    model = Writer(NESTED, mixer=Selective, layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    accumulate = 1

    def clear(step: int) -> None:
        if step % accumulate == 1:
            optimizer.zero_grad()

    batches = dealt(*windows(nested()), seed=334)
    return teach(root, model, batches, optimizer, clear=clear, steps=110, save_every=3, clip=1.0)


@of_language(
    "words spelled in reverse by an encoder and a decoder, SGD with momentum, clipped",
    "parameters to clear are kept as an iterator, which is at its end after the first step",
    {"GradientAccumulates"},
    may=WORSE,
)
def iterator_at_its_end(root: Path) -> int:
    torch.manual_seed(335)
    model = Spelling(SPELLED)
    parameters = model.parameters()

    def clear(_: int) -> None:
        for parameter in parameters:
            parameter.grad = None

    source, target = spelled()
    batches = dealt(source, *_spelled_pairs(target), size=24, seed=335)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.8)
    loss = nn.CrossEntropyLoss(ignore_index=0)
    return teach(
        root, model, batches, optimizer, loss=loss, clear=clear, steps=120, save_every=2, clip=1.0
    )


def _spelled_pairs(target: Any) -> tuple[Any, Any]:
    return target[:, :-1].contiguous(), target[:, 1:].contiguous()


# A loss that jumps


@of_language(
    "words spelled in reverse by an encoder and a decoder, dropout of 0.05",
    "from step 170 on a schedule of dropout gives per cent: 42 % is dropped instead of 0.42 %",
    {"LossSpike"},
    may=WORSE | {"ValidationInTrainingMode": "training and validation are far apart"},
)
def dropout_in_per_cent(root: Path) -> int:
    torch.manual_seed(336)
    model = Spelling(SPELLED, drop=0.05)
    source, target = spelled()
    x, y = _spelled_pairs(target)

    def change(step: int) -> None:
        for part in model.modules():
            if isinstance(part, nn.Dropout) and step == 170:
                part.p = 0.42

    return teach(
        root,
        model,
        dealt(source[:1000], x[:1000], y[:1000], size=64, seed=336),
        torch.optim.Adam(model.parameters(), 4e-3),
        loss=nn.CrossEntropyLoss(ignore_index=0),
        schedule=warmed(20, 280),
        steps=250,
        held_out=(source[1000:], x[1000:], y[1000:]),
        at=170,
        change=change,
        include_collections=["losses"],
    )
