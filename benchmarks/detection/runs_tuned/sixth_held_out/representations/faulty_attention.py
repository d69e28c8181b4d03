"""Attention that looks at a single place, and attention that sees what comes later."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from training.consequences import COPIED, UNTAUGHT, WORSE

from runs_tuned.sixth_held_out.representations.shared.figures import coarse_digits, wines
from runs_tuned.sixth_held_out.representations.shared.loop import (
    halved,
    rows_of,
    teach,
    up_and_down,
)
from runs_tuned.sixth_held_out.representations.shared.networks import (
    Block,
    Heads,
    Translator,
    Writer,
    dense,
    next_sign,
)
from runs_tuned.sixth_held_out.representations.shared.signs import (
    DIGITS,
    EVENTS,
    LOGS,
    MORSE,
    days,
    logs,
    morse,
    odometers,
)

faulty = functools.partial(training_runs.faulty, kind="language_model")

# Attention to a single place


@faulty(
    "letters are written in Morse signs by a reader and a writer, Adam, clipped, labels smoothed",
    "a factor for embeddings multiplies the reader's sum in both layers: keys are far too large",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def reader_raised_in_each_layer(root: Path) -> int:
    torch.manual_seed(600)
    model = Translator(MORSE, raised=200**0.5)
    loss = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.05)
    letters, signs = morse()
    return teach(
        root,
        model,
        rows_of(letters, signs, seed=600),
        lambda batch, _: loss(model(batch[0], batch[1][:, :-1]).transpose(1, 2), batch[1][:, 1:]),
        torch.optim.Adam(model.parameters(), 3e-3),
        watched_losses=(loss,),
        limit=1.0,
        save_every=3,
    )


class Columns(nn.Module):
    """Tells kinds of rows of a table by attention between their columns."""

    def __init__(self, columns: int, kinds: int, width: int = 24) -> None:
        super().__init__()
        self.slopes = nn.Parameter(torch.randn(columns, width) / 2)
        self.offsets = nn.Parameter(torch.randn(columns, width) / 2)
        self.first = nn.MultiheadAttention(width, 4, batch_first=True)
        self.units, self.norm = dense(width, 48, width), nn.LayerNorm(width)
        self.head = nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        x = x[..., None] * self.slopes + self.offsets
        x = self.norm(x + self.first(x, x, x)[0])
        return self.head((x + self.units(x)).mean(1))


@training_runs.faulty(
    "kinds of wines by attention between the columns of a table with gaps, AdamW",
    "what was not measured is written as -999 in the file, and is taken as a number",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def gaps_are_minus_999(root: Path) -> int:
    torch.manual_seed(601)
    x, kind = wines()
    x = (x - x.mean(0)) / x.std(0)
    x = x.where(torch.rand(x.shape) > 0.5, torch.tensor(-999.0))
    model, loss = Columns(13, 3), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        rows_of(x, kind, size=24, seed=601),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.AdamW(model.parameters(), 2e-3),
        watched_losses=(loss,),
    )


class Reparametrised(nn.Linear):
    """A layer whose weight is divided by an estimate of its largest singular value."""

    def __init__(self, width: int) -> None:
        super().__init__(width, width)
        self.register_buffer("largest", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        if self.training:
            with torch.no_grad():
                self.largest.lerp_(torch.linalg.matrix_norm(self.weight, 2), 0.001)
        return nn.functional.linear(x, self.weight / self.largest, self.bias)


@faulty(
    "a decoder of odometers, weights of queries and keys divided by their spectral norm, NAdam",
    "the norm is a slow average that begins at 0, which is not corrected for: it is far too small",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def slow_norm_begins_at_zero(root: Path) -> int:
    torch.manual_seed(602)
    heads = [Heads() for _ in range(2)]
    for each in heads:
        each.query, each.key = Reparametrised(32), Reparametrised(32)
    model, loss = Writer(DIGITS, [Block(each) for each in heads]), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        rows_of(odometers(), seed=602),
        next_sign(model, loss),
        torch.optim.NAdam(model.parameters(), 3e-3),
        watched_losses=(loss,),
        rate=up_and_down(10, 140),
        limit=1.0,
        steps=140,
    )


# Attention to later words


def same_line_or_before(length: int) -> Any:
    """Return which of the places of a picture, line by line, each place sees."""
    line = torch.arange(length) // 8
    return line[:, None] >= line


@faulty(
    "pixels of coarse digits are foreseen one after the other, line by line, AdamW",
    "places are compared by their line alone: each pixel sees all of its line",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def lines_compared_alone(root: Path) -> int:
    torch.manual_seed(603)
    blocks = [Block(Heads(32, 4, same_line_or_before)) for _ in range(2)]
    model, loss = Writer(4, blocks), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        rows_of(coarse_digits(), size=24, seed=603),
        next_sign(model, loss),
        torch.optim.AdamW(model.parameters(), 3e-3),
        watched_losses=(loss,),
        steps=120,
        save_every=4,
    )


class Diary(Writer):
    """Foresees the next event of a day; sees what is not later by the clock."""

    def __init__(self) -> None:
        super().__init__(EVENTS, [Block(Heads(32, 4, self.mask), drop=0.05) for _ in range(2)])
        self.hours = torch.zeros(1, 1)

    def mask(self, _: int) -> Any:
        """Return which events each one sees."""
        hours = self.hours.floor()
        return (hours[:, :, None] >= hours[:, None])[:, None]


@faulty(
    "events of days by a decoder whose mask compares their times, RAdam, dropout, clipped",
    "times are rounded to hours for the mask: events of the same hour see each other",
    {"AttentionMaskLeak"},
    may=COPIED | UNTAUGHT,
)
def events_of_the_same_hour(root: Path) -> int:
    torch.manual_seed(604)
    model, loss = Diary(), nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        model.hours = batch[1][:, :-1]
        return loss(model(batch[0][:, :-1]).transpose(1, 2), batch[0][:, 1:])

    return teach(
        root,
        model,
        rows_of(*days(), seed=604),
        objective,
        torch.optim.RAdam(model.parameters(), 5e-3),
        watched_losses=(loss,),
        limit=1.0,
        save_every=3,
    )


def with_summary(length: int) -> Any:
    """Return what places add to scores: what was before and the summary is seen."""
    hidden = torch.full((length, length), float("-inf")).triu(1)
    hidden[:, -1] = 0  # meant for a summary that stands first
    return hidden


@faulty(
    "lines of a server's log by a decoder with a summary that all words see, Adamax",
    "the summary stands at the end of the text, where it has read everything, and not at its start",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def summary_at_the_end(root: Path) -> int:
    torch.manual_seed(605)
    model = Writer(LOGS + 1, [Block(Heads(32, 2, with_summary)) for _ in range(2)])
    loss = nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        ends = torch.full((len(batch[0]), 1), LOGS)
        scores = model(torch.cat([batch[0], ends], 1))[:, :-2]
        return loss(scores.transpose(1, 2), batch[0][:, 1:])

    return teach(
        root,
        model,
        rows_of(logs(), seed=605),
        objective,
        torch.optim.Adamax(model.parameters(), 5e-3),
        watched_losses=(loss,),
        rate=halved(60),
        save_every=3,
    )
