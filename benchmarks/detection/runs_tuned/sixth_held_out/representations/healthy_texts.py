"""Healthy writers, readers and translators, of their own and adapted from others."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn

from runs_tuned.sixth_held_out.representations.shared.loop import (
    halved,
    in_turns,
    rows_of,
    teach,
    up_and_down,
)
from runs_tuned.sixth_held_out.representations.shared.networks import (
    Block,
    Heads,
    Translator,
    Writer,
    next_sign,
)
from runs_tuned.sixth_held_out.representations.shared.signs import (
    CALLS,
    DIGITS,
    EVENTS,
    MORSE,
    ROMAN,
    calls,
    days,
    morse,
    odometers,
    romans,
)

of_texts = functools.partial(training_runs.healthy, kind="language_model")


@of_texts("a decoder of odometers, AdamW, a rate that begins anew, clipped, 200 to validate")
def odometers_written(root: Path) -> int:
    torch.manual_seed(640)
    rows, loss = odometers(seed=2), nn.CrossEntropyLoss()
    model = Writer(DIGITS, [Block(Heads(), drop=0.05) for _ in range(2)])
    return teach(
        root,
        model,
        rows_of(rows[:1300], seed=640),
        next_sign(model, loss),
        torch.optim.AdamW(model.parameters(), 3e-3),
        watched_losses=(loss,),
        rate=in_turns(50),
        limit=1.0,
        save_every=3,
        test=(rows[1300:],),
    )


@of_texts("letters are written in Morse signs by a reader and a writer in bfloat16, NAdam, clipped")
def morse_in_bfloat16(root: Path) -> int:
    torch.manual_seed(641)
    model, loss = Translator(MORSE), nn.CrossEntropyLoss(ignore_index=0)
    letters, signs = morse(seed=3)
    return teach(
        root,
        model,
        rows_of(letters, signs, seed=641),
        lambda batch, _: loss(model(batch[0], batch[1][:, :-1]).transpose(1, 2), batch[1][:, 1:]),
        torch.optim.NAdam(model.parameters(), 2e-3),
        watched_losses=(loss,),
        in_bfloat16=True,
        rate=up_and_down(15, 130),
        limit=1.0,
        steps=130,
        save_every=4,
    )


class Spells(nn.Module):
    """Reads text by a GRU, and writes by another one that looks back at what was read."""

    def __init__(self, signs: int, width: int = 40) -> None:
        super().__init__()
        self.signs = nn.Embedding(signs, width)
        self.reader = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.writer = nn.GRU(width, width, batch_first=True)
        self.looks = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(2 * width, signs)

    def forward(self, source: Any, written: Any) -> Any:
        read, _ = self.reader(self.signs(source))
        state, _ = self.writer(self.signs(written))
        seen = self.looks(state, read, read)[0]
        return self.head(torch.cat([state, seen], -1))


@of_texts(
    "letters are read out of Morse signs by GRUs with attention, Adam, three batches gathered"
)
def morse_read_by_gru(root: Path) -> int:
    torch.manual_seed(642)
    letters, signs = morse(seed=4)
    begun = torch.cat([torch.ones(len(letters), 1, dtype=torch.long), letters], 1)
    model, loss = Spells(MORSE), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        rows_of(signs, begun, size=24, seed=642),
        lambda batch, _: loss(model(batch[0], batch[1][:, :-1]).transpose(1, 2), batch[1][:, 1:]),
        torch.optim.Adam(model.parameters(), 1e-2),
        watched_losses=(loss,),
        limit=5.0,
        parts=3,
        steps=240,
        save_every=3,
    )


class Reader(nn.Module):
    """Reads padded text by PyTorch's encoder, and tells of the whole, or of each place."""

    def __init__(
        self, signs: int, told: int, *, of_places: bool = False, drop: float = 0.1
    ) -> None:
        super().__init__()
        self.signs = nn.Embedding(signs + 1, 32, padding_idx=0)
        self.places, self.of_places = nn.Embedding(32, 32), of_places
        layer = nn.TransformerEncoderLayer(
            32, 4, 64, drop, batch_first=True, norm_first=True, activation="gelu"
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, told)

    def forward(self, x: Any) -> Any:
        is_padding = x == 0
        seen = self.signs(x) + self.places(torch.arange(x.shape[1]))
        seen = self.encoder(seen, src_key_padding_mask=is_padding)
        if self.of_places:
            return self.head(seen)
        kept = (~is_padding)[..., None].float()
        return self.head((seen * kept).sum(1) / kept.sum(1))


@training_runs.healthy(
    "Roman numerals are read digit by digit by an encoder, padded, Adamax, dropout"
)
def romans_read(root: Path) -> int:
    torch.manual_seed(643)
    x, digits = romans()
    model, loss = Reader(ROMAN, 30), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        rows_of(x[:1300], digits[:1300], seed=643),
        lambda batch, _: loss(model(batch[0]).unflatten(1, (3, 10)).transpose(1, 2), batch[1]),
        torch.optim.Adamax(model.parameters(), 5e-3),
        watched_losses=(loss,),
        steps=180,
        save_every=3,
        test=(x[1300:], digits[1300:]),
    )


@of_texts("a sixth of the notes of birds are hidden and guessed by an encoder, AdamW, warm-up")
def hidden_notes_guessed(root: Path) -> int:
    torch.manual_seed(644)
    x, _ = calls(seed=1)
    model, loss = Reader(CALLS, CALLS, of_places=True, drop=0.05), nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        is_hidden = (torch.rand(batch[0].shape) < 1 / 6) & (batch[0] > 0)
        scores = model(batch[0].masked_fill(is_hidden, CALLS))
        return loss(scores[is_hidden], batch[0][is_hidden])

    return teach(
        root,
        model,
        rows_of(x, size=48, seed=644),
        objective,
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05),
        watched_losses=(loss,),
        rate=up_and_down(20, 180),
        limit=1.0,
        steps=180,
        save_every=3,
    )


@training_runs.healthy(
    "which of three birds calls, by an encoder of padded notes with noise, a rarer bird, RMSprop"
)
def birds_told_by_calls(root: Path) -> int:
    torch.manual_seed(645)
    x, bird = calls(seed=2)
    other = (torch.rand(x.shape) < 0.5) & (x > 0)  # calls of other birds nearby
    x = x.where(~other, torch.randint(1, CALLS, x.shape))
    model, loss = Reader(CALLS, 3), nn.CrossEntropyLoss(label_smoothing=0.05)
    return teach(
        root,
        model,
        rows_of(x[:1380], bird[:1380], size=24, seed=645),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.RMSprop(model.parameters(), 1e-3),
        watched_losses=(loss,),
        steps=120,
        test=(x[1380:], bird[1380:]),
    )


@of_texts("events of days by a decoder of a single layer, AdamW, halved, dropout")
def events_of_days_foreseen(root: Path) -> int:
    torch.manual_seed(650)
    rows, _ = days(seed=1)
    model, loss = Writer(EVENTS, [Block(Heads(32, 2), drop=0.1)]), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        rows_of(rows, seed=650),
        next_sign(model, loss),
        torch.optim.AdamW(model.parameters(), 5e-3),
        watched_losses=(loss,),
        rate=halved(70),
        steps=180,
        save_every=3,
    )
