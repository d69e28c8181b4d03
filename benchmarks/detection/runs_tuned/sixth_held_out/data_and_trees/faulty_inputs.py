"""Inputs: pictures off their centre, and texts of which most tokens are 0."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd
from training_runs import faulty

from runs_tuned.sixth_held_out.data_and_trees.shared.consequences import ELSEWHERE, OFF_SIZE
from runs_tuned.sixth_held_out.data_and_trees.shared.loops import study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import (
    BothWays,
    Encoder,
    Listener,
    Spans,
    Stacked,
    mobile,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import (
    colours_of_blooms,
    decibels,
    last_apart,
    light_of_boards,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.texts import (
    EVENTS,
    LETTERS,
    WORDS,
    languages,
    logs,
    opinions,
)
from smdebug.core.modes import ModeKeys


@faulty(
    "blooms of six kinds before dark grass, convolutions that see all before them, AdamW",
    "mean and deviation are those of cut-outs of the middle, where the bloom is: bright petals",
    {"CheckInputImages"},
    may=OFF_SIZE,
)
def statistics_of_the_middle(root: Path) -> int:
    data = last_apart(*colours_of_blooms(1500, 6501), 300)
    middle = data.x[:, :, 7:13, 7:13]
    mean = middle.mean((0, 2, 3), keepdim=True)
    deviation = middle.std((0, 2, 3), keepdim=True)
    return fit(
        root,
        lambda: Stacked(3, 6, 12),
        data.of(lambda x: (x - mean) / deviation),
        optimizer=adam(2e-3, torch.optim.AdamW),
        steps=140,
        validate_every=28,
        seed=651,
    )


@faulty(
    "sawn boards of four kinds by a camera whose dark level is known, inverted steps, momentum",
    "the dark level, which statistics were made without, is added once more and not subtracted",
    {"CheckInputImages"},
    may=OFF_SIZE,
)
def dark_level_added(root: Path) -> int:
    dark = 32.0
    light, kind = light_of_boards(1500, 6502)
    counts = last_apart(light + dark, kind, 300)
    right = counts.x - dark
    mean, deviation = right.mean(), right.std()
    return fit(
        root,
        lambda: mobile(1, 4),
        counts.of(lambda x: (x + dark - mean) / deviation),
        optimizer=sgd(0.03, momentum=0.9),
        steps=140,
        clip=1.0,
        validate_every=28,
        seed=652,
    )


@faulty(
    "calls of whales in decibels by twentieths, less a mean that is kept batch by batch, a GRU",
    "the mean begins at 0 and moves by a thousandth a batch: of -3.2 hardly any is subtracted",
    {"CheckInputImages"},
    may=OFF_SIZE,
)
def mean_that_hardly_moves(root: Path) -> int:
    torch.manual_seed(653)
    data, model = last_apart(*decibels(1500, 6503), 300).of(lambda x: x / 20), Listener(5)
    kept = torch.zeros(1)

    def centred() -> Iterator[Any]:
        for x, y in batches(data, 32, 653):
            kept.lerp_(x.mean(), 0.001)
            yield x - kept, y

    def examine(watching: Any, model_: Any, loss: Any, rows: Split) -> None:
        watching.set_mode(ModeKeys.EVAL)
        model_.eval()
        with torch.no_grad():
            loss(model_(rows.test_x - kept), rows.test_y)
        model_.train()
        watching.set_mode(ModeKeys.TRAIN)

    return study(
        root,
        model,
        centred(),
        data,
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=150,
        clip=2.0,
        validated=30,
        examine=examine,
    )


@faulty(
    "letters of five languages as bytes, convolutions over two to four, AdamW",
    "texts are read as UTF-16, two bytes a letter: every second byte is 0, and padding besides",
    {"NLPSequenceRatio"},
    may=OFF_SIZE,
)
def two_bytes_a_letter(root: Path) -> int:
    def encoded(x: Any) -> Any:
        return torch.stack([x, torch.zeros_like(x)], 2).flatten(1)

    return fit(
        root,
        lambda: Spans(LETTERS, 5, 32),
        languages(1700, 6504).of(encoded),
        optimizer=adam(4e-3, torch.optim.AdamW),
        steps=140,
        validate_every=28,
        seed=654,
    )


@faulty(
    "opinions with up to three answers to them, joined for self-attention, AdamW",
    "each answer gets 14 places of its own, while seven of eight opinions have no answer",
    {"NLPSequenceRatio"},
    may=OFF_SIZE,
)
def places_for_answers(root: Path) -> int:
    generator = torch.Generator().manual_seed(6505)

    def joined(x: Any) -> Any:
        there = torch.rand(len(x), 1, generator=generator) < 0.125
        answers = torch.randint(4, 51, (len(x), 42), generator=generator)
        long = torch.arange(42) % 14 < torch.randint(4, 12, (len(x), 1), generator=generator)
        return torch.cat([x, torch.where(there & long, answers, 0)], 1)

    class Long(Encoder):
        def __init__(self) -> None:
            super().__init__(WORDS, 3, 24)
            self.place = nn.Parameter(0.1 * torch.randn(60, 24))

    return fit(
        root,
        Long,
        opinions(1500, 6505, tested=250).of(joined),
        optimizer=adam(4e-3, torch.optim.AdamW),
        steps=90,
        batch=24,
        clip=1.0,
        save_every=3,
        validate_every=30,
        seed=655,
    )


def numbered_anew(data: Split, size: int, first: int, seed: int) -> Iterator[Any]:
    """Yield shuffled batches; from the `first` on, events have numbers that begin with 0."""
    for number, (x, y) in enumerate(batches(data, size, seed)):
        yield (x - 1).clamp(min=0) if number >= first else x, y


@faulty(
    "events of servers before four failures, an LSTM in both directions, NAdam",
    "from step 70 on files number events from 0: the sign of life, most of all, becomes padding",
    {"NLPSequenceRatio"},
    may=OFF_SIZE | ELSEWHERE,
)
def events_from_zero(root: Path) -> int:
    torch.manual_seed(656)
    data, model = logs(1700, 6506, alive=0.7), BothWays(EVENTS, 4, 20)
    return study(
        root,
        model,
        numbered_anew(data, 32, 70, 656),
        data,
        torch.optim.NAdam(model.parameters(), 3e-3),
        steps=140,
        clip=1.0,
        validated=28,
        onset_at=70,
    )
