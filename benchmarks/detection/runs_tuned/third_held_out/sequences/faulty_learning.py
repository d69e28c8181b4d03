"""Sequences that are not learnt or learnt by heart, and rates, sizes and workers gone wrong."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE

from runs_tuned.third_held_out.sequences.shared.decoders import Beside, Composer, Latent, prepared
from runs_tuned.third_held_out.sequences.shared.lessons import (
    LETTERS,
    NOTES,
    cut,
    judged,
    lines,
    notes,
)
from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.readers import Layer, Retention
from runs_tuned.third_held_out.sequences.shared.shapes import chords, stack
from runs_tuned.third_held_out.sequences.shared.speller import Speller
from runs_tuned.third_held_out.sequences.shared.texts import SHOP, clicks, spelled, windows
from runs_tuned.third_held_out.sequences.shared.workers import work_together

faulty = functools.partial(training_runs.faulty, kind="language_model")
of_pairs = functools.partial(training_runs.faulty, kind="contrastive")
# Workers that train models of their own, which fit neither each other nor averaged gradients.
APART = WORSE | {"LearningRate": "rates are as they were, but no longer fit"}
# What each row is to be near to, and to be far from, is the same.
UNDECIDED = UNTAUGHT | {
    "ExplodingTensor": "lengths near zero are divided by",
    "WeightUpdateRatio": "weights are pushed to and fro, or nowhere",
}


def composer(words: int = NOTES, blocks: int = 2, **more: Any) -> Any:
    """Return a decoder of melodies, or of other words."""
    return Composer(words, [Beside(32, Latent(), 64) for _ in range(blocks)], **more)


# Nothing to learn


@faulty(
    "which of two melodies was changed less: a reward for each, AdamW",
    "pairs are exchanged at random against a bias of place, but their labels are not",
    {"LossNotDecreasing"},
    may=UNDECIDED,
)
def exchanged_without_labels(root: Path) -> int:
    torch.manual_seed(460)
    body = composer(outs=1)

    def objective(batch: Any, _: Any) -> Any:
        first, second = (body(rows).mean((1, 2)) for rows in batch)
        is_exchanged = torch.rand(len(first)) < 0.5
        first, second = (
            torch.where(is_exchanged, second, first),
            torch.where(is_exchanged, first, second),
        )
        return -functional.logsigmoid(first - second).mean()

    return teach(
        root,
        body,
        dealt(*judged(), size=24, seed=460),
        torch.optim.AdamW(body.parameters(), 1e-3, weight_decay=0.05),
        objective=objective,
        steps=240,
        save_every=2,
        clip=1.0,
    )


@of_pairs(
    "sessions of clicks and the good that follows, two towers, Adam",
    "sessions that are too short are left out of one table, which shifts it against the other",
    {"LossNotDecreasing"},
    may=UNDECIDED,
)
def shifted_against_each_other(root: Path) -> int:
    torch.manual_seed(461)
    rows = clicks()
    keeps = (rows != 0).sum(1) > 15
    x, y = rows[keeps][:, :12], rows[:, 12][: int(keeps.sum())]
    model = nn.ModuleDict(
        {"session": nn.EmbeddingBag(SHOP, 16, padding_idx=0), "goods": nn.Embedding(SHOP, 16)}
    )
    for part in model.values():
        nn.init.normal_(part.weight, std=0.25)

    def objective(batch: Any, _: Any) -> Any:
        scores = model["session"](batch[0]) @ model["goods"](batch[1]).T
        same = (batch[1][:, None] == batch[1]) & ~torch.eye(len(scores), dtype=torch.bool)
        return functional.cross_entropy(scores.masked_fill(same, -1e4), torch.arange(len(scores)))

    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return teach(
        root, model, dealt(x, y, size=64, seed=461), optimizer, objective=objective, steps=200
    )


@of_pairs(
    "two pieces of a chord are brought together, their spread is kept (VICReg), AdamW",
    "the spread is computed over the numbers of a row, where it should be over the rows",
    {"RepresentationCollapse"},
    may=UNDECIDED,
)
def spread_of_the_other_axis(root: Path) -> int:
    torch.manual_seed(462)
    model = stack(16, 48, 48, 12, act=nn.GELU)

    def piece(x: Any) -> Any:
        at = torch.randint(0, 16, (len(x), 1)) + torch.arange(16)
        seen = x.gather(1, at)
        return model(seen + 0.3 * torch.randn_like(seen))

    def objective(batch: Any, hook: Any) -> Any:
        first, second = piece(batch[0]), piece(batch[0])
        hook.save_tensor("embeddings", first, "embeddings")
        spread = sum((1 - one.std(1)).relu().mean() for one in (first, second))
        centred = first - first.mean(0)
        alike = (centred.T @ centred / len(first)).tril(-1).pow(2).sum()
        return 25 * functional.mse_loss(first, second) + 25 * spread + 0.2 * alike

    return teach(
        root,
        model,
        dealt(chords()[0], size=48, seed=462),
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.3),
        objective=objective,
        schedule=warmed(5, 320),
        steps=280,
        save_every=2,
    )


# Learnt by heart


@faulty(
    "a trained decoder is fine-tuned with melodies of another kind, Adam, no dropout",
    "duplicates are told by their first four notes, which begin alike: 40 melodies are left",
    {"Overfit"},
    may=WORSE,
)
def few_are_left(root: Path) -> int:
    torch.manual_seed(463)
    model = prepared(composer(), dealt(*windows(notes()), seed=463), 100)
    rows = notes(seed=408)
    x, y = windows(rows[:40])
    rest = windows(rows[600:800])
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return teach(
        root,
        model,
        dealt(x, y, seed=463),
        optimizer,
        steps=260,
        save_every=2,
        held_out=rest,
        validate_every=10,
    )


# Rates and sizes


@faulty(
    "lines of a log by a retention decoder, AdamW, warm-up of 60 steps, then a cosine",
    "step // warm-up is a division without a rest: the rate is 0 until the warm-up has ended",
    {"LearningRate"},
    may=WORSE | UNTAUGHT,
)
def divided_without_a_rest(root: Path) -> int:
    torch.manual_seed(464)
    units = [Layer(Retention(), stack(32, 48, 32)) for _ in range(2)]
    model = Composer(len(LETTERS), units)
    falls = warmed(1, 180)
    return teach(
        root,
        model,
        dealt(*cut(lines(), 24), seed=464),
        torch.optim.AdamW(model.parameters(), 3e-3),
        schedule=lambda step: min(1, step // 60) * falls(step),
        steps=170,
        clip=1.0,
    )


@faulty(
    "melodies by a decoder that begins small, AdamW, a loss of large logits (z-loss)",
    "the loss of large logits has a minus: they are rewarded, and scores grow for ever",
    {"NormGrowth"},
    may=WORSE,
)
def large_logits_rewarded(root: Path) -> int:
    torch.manual_seed(465)
    model = composer()
    nn.init.normal_(model.lm_head.weight, std=0.02)

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0])
        return functional.cross_entropy(scores, batch[1]) - 5e-3 * scores.logsumexp(1).pow(2).mean()

    return teach(
        root,
        model,
        dealt(*windows(notes()), seed=465),
        torch.optim.AdamW(model.parameters(), 6e-3, weight_decay=0.01),
        objective=objective,
        steps=276,
        save_every=3,
        clip=1.0,
    )


@faulty(
    "words spelled in reverse by GRUs, the rate in stairs, then a part after their own letters",
    "the share of own letters is meant, but the share of given ones is read: 95 % are its own",
    {"LossSpike"},
    may=WORSE | UNTAUGHT,
)
def hardly_any_given(root: Path) -> int:
    torch.manual_seed(466)
    model = Speller()
    source, target = spelled()

    def change(step: int) -> None:
        model.own = 0.95 if step >= 140 else 0.0

    return teach(
        root,
        model,
        dealt(source, target[:, :-1], target[:, 1:], size=48, seed=466),
        torch.optim.Adam(model.parameters(), 6e-3),
        loss=nn.CrossEntropyLoss(ignore_index=0),
        schedule=lambda step: 1.0 if step < 75 else 0.1 if step < 125 else 0.03,
        change=change,
        steps=230,
        clip=1.0,
        at=140,
        include_collections=["losses"],
    )


# Workers


@faulty(
    "melodies on two workers, all but the upper block and the scores frozen, thawed at step 40",
    "gradients are averaged of what was not frozen when the model was wrapped",
    {"ReplicaDivergence"},
    may=APART,
)
def thawed_after_wrapping(root: Path) -> int:
    torch.manual_seed(467)
    model = prepared(composer(), dealt(*windows(notes()), seed=467), 60)
    is_upper = lambda name: name.startswith(("blocks.1", "ln_f", "lm_head"))
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(is_upper(name))

    def before(step: int, models: list[Any]) -> None:
        if step == 40:
            for one in models:
                one.requires_grad_(requires_grad=True)

    x, y = windows(notes(seed=409))
    adam = functools.partial(torch.optim.AdamW, lr=2e-3)
    return work_together(root, model, x, y, adam, is_sent=is_upper, before=before, at=40)


@faulty(
    "lines of a log on three workers, SGD with momentum, an average of the weights is kept",
    "at step 60 the average is loaded by the main process alone, which also wrote it",
    {"ReplicaDivergence"},
    may=APART,
)
def loaded_by_the_main_process(root: Path) -> int:
    torch.manual_seed(468)
    model = Composer(len(LETTERS), [Layer(Retention(), stack(32, 48, 32))])
    kept: list[Any] = []

    def before(step: int, models: list[Any]) -> None:
        kept[:] = kept or [copy.deepcopy(models[0])]
        with torch.no_grad():
            for slow, fast in zip(kept[0].parameters(), models[0].parameters(), strict=True):
                slow.lerp_(fast, 0.2)
                if step == 60:
                    fast.copy_(slow)

    x, y = cut(lines(), 20)
    sgd = functools.partial(torch.optim.SGD, lr=0.2, momentum=0.9)
    more = {"workers": 3, "steps": 100, "save_every": 4, "at": 60}
    return work_together(root, model, x, y, sgd, before=before, **more)
