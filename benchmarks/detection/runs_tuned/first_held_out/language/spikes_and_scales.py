"""Held-out runs whose losses or gradients spike, or whose loss scale falls to its floor."""

import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from training.learnt_data import Split
from training.torch_loop import adam, fit, scaled_fit, sgd

from runs_tuned.first_held_out.language.attention_and_routers import nothing
from runs_tuned.first_held_out.language.consequences import DAMAGED, STILL
from runs_tuned.first_held_out.language.networks import (
    Decoder,
    DilatedConvolutions,
    LetterLstm,
    RecurrentTranslator,
)
from runs_tuned.first_held_out.language.texts import (
    CHARACTERS,
    SOURCE,
    WORDS,
    english,
    grammar,
    translations,
)

faulty = functools.partial(training_runs.faulty, kind="language_model")


def in_order(data: Split, steps: int, size: int = 16, seed: int = 2) -> Any:
    """Return the rows of shuffled batches, one after the other, for as many steps."""
    generator = torch.Generator().manual_seed(seed)
    epochs = itertools.repeat(len(data.x), -(-steps * size // len(data.x)) + 1)
    order = torch.cat([torch.randperm(count, generator=generator) for count in epochs])
    return order[: steps * size].reshape(steps, size)


def weighted(weights: Callable[[int], float]) -> Callable[[Any], None]:
    """Return a backward whose loss has a weight by the number of its call."""
    calls = itertools.count()
    return lambda loss: (loss * weights(next(calls))).backward()


# Losses.


@faulty(
    "convolutions of sentences",
    "a race in the loader: from step 60 on each twelfth batch has the targets of another one",
    {"LossSpike"},
    may=DAMAGED,
)
def targets_of_another_batch(root: Path) -> int:
    data = grammar()
    steps = in_order(data, 200)
    y = data.y[steps]
    for number in range(60, 200, 12):
        y[number] = y[number - 1].flip(0)
    mixed = Split(data.x[steps].flatten(0, 1), y.flatten(0, 1), data.test_x, data.test_y)
    return fit(
        root,
        lambda: DilatedConvolutions(WORDS),
        mixed,
        optimizer=adam(6e-3),
        clip=1.0,
        batch=16,
        steps=200,
        shuffle=False,
        save_every=1,
        at=60,
        change=nothing,
    )


@faulty(
    "a decoder of sentences, Adam with a rate that falls",
    "at step 120 the tokenizer is replaced: some words have each other's numbers",
    {"LossSpike"},
    may=DAMAGED,
)
def tokenizer_replaced(root: Path) -> int:
    data = grammar()
    steps = in_order(data, 220)
    order = torch.arange(WORDS)
    order[[15, 17, 36, 42]] = torch.tensor([36, 42, 15, 17])
    is_new = (torch.arange(220) >= 120)[:, None, None]
    x, y = (torch.where(is_new, order[one[steps]], one[steps]) for one in (data.x, data.y))
    replaced = Split(x.flatten(0, 1), y.flatten(0, 1), data.test_x, data.test_y)
    schedule = lambda step: min((step + 1) / 10, max(0.01, 1 - step / 125))
    return fit(
        root,
        lambda: Decoder(WORDS),
        replaced,
        optimizer=adam(4e-3),
        schedule=schedule,
        clip=1.0,
        batch=16,
        steps=220,
        shuffle=False,
        save_every=1,
        at=120,
        change=nothing,
    )


@faulty(
    "an LSTM of sentences, Adam with a rate that falls",
    "at step 130 weights are rounded to multiples of 2 / 3, as only an exported copy should be",
    {"LossSpike"},
    may=DAMAGED,
)
def weights_rounded(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for parameter in model.parameters():
            parameter.data = (parameter.data * 1.5).round() / 1.5

    schedule = lambda step: max(0.003, 1 - step / 130)
    return fit(
        root,
        lambda: LetterLstm(WORDS, drop=0.0),
        grammar(),
        optimizer=adam(0.01),
        schedule=schedule,
        clip=1.0,
        batch=20,
        steps=220,
        save_every=1,
        at=130,
        change=change,
    )


# Gradients.


@faulty(
    "a GRU translates, SGD with momentum, not clipped",
    "from step 60 on each twentieth batch is of a source whose weight is 16 instead of 1.6",
    {"GradientNormSpike"},
    may=DAMAGED,
)
def source_of_a_wrong_weight(root: Path) -> int:
    weights = lambda call: 16.0 if call >= 60 and call % 20 == 0 else 1.0
    return fit(
        root,
        RecurrentTranslator,
        translations(),
        optimizer=sgd(0.1, momentum=0.9),
        backward=weighted(weights),
        steps=200,
        save_every=1,
        at=60,
        change=nothing,
    )


@faulty(
    "a decoder of sentences and one layer, AdamW, not clipped",
    "at step 80 second moments are restored as zeros, moments and the count of steps are not",
    {"GradientNormSpike"},
    may=DAMAGED,
)
def second_moments_zeroed(root: Path) -> int:
    def change(model: Any, optimizer: Any) -> None:
        for parameter in model.parameters():
            optimizer.state[parameter]["exp_avg_sq"].zero_()

    return fit(
        root,
        lambda: Decoder(WORDS, layers=1),
        grammar(),
        optimizer=adam(3e-3, torch.optim.AdamW),
        batch=16,
        steps=150,
        save_every=1,
        at=80,
        change=change,
    )


@faulty(
    "an LSTM of letters, SGD, not clipped",
    "from step 100 on each 25th update sums the gradients of 16 batches instead of averaging",
    {"GradientNormSpike"},
    may=DAMAGED,
)
def updates_summed(root: Path) -> int:
    weights = lambda call: 16.0 if call >= 100 and call % 25 == 0 else 1.0
    return fit(
        root,
        lambda: LetterLstm(drop=0.0),
        english(),
        optimizer=sgd(4.0),
        backward=weighted(weights),
        batch=20,
        steps=220,
        save_every=1,
        at=100,
        change=nothing,
    )


# Loss scales.

SKIPPED = DAMAGED | STILL


@faulty(
    "a GRU translates in half precision",
    "one sentence in twenty is empty: its attention is a softmax of nothing",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=SKIPPED | {"GradientNormZero": "all gradients are replaced by zero"},
)
def empty_sentences(root: Path) -> int:
    data = translations()
    is_empty = (torch.arange(len(data.x)) % 20 == 7)[:, None]
    emptied = Split(
        torch.where(is_empty & (torch.arange(2 * SOURCE) < SOURCE), 0, data.x),
        data.y,
        data.test_x,
        data.test_y,
    )
    optimizer = adam(5e-3, torch.optim.AdamW)
    return scaled_fit(root, RecurrentTranslator, emptied, optimizer=optimizer, steps=120)


@faulty(
    "a decoder of letters in half precision",
    "the rate is that of plain SGD, 0.5, but the optimizer is Adam: numbers run over",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=SKIPPED,
)
def rate_of_sgd_in_half(root: Path) -> int:
    return scaled_fit(root, lambda: Decoder(CHARACTERS), english(), optimizer=adam(0.5), steps=110)
