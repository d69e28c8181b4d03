"""Healthy trainings of language models, encoders, and encoders with decoders."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd
from training_runs import healthy

from runs_tuned.second_held_out.shared.tables import taught
from runs_tuned.second_held_out.shared.words import (
    DIGITS,
    LENGTH,
    WORDS,
    Listener,
    Speaker,
    chatter,
    moods,
    padded,
)

language = functools.partial(training_runs.healthy, kind="language_model")
adamw = functools.partial(adam, kind=torch.optim.AdamW, weight_decay=0.05)


def warm_cosine(steps: int, warm_up: int = 12) -> Any:
    """Return factors that rise for some steps, and fall to a twentieth."""
    return lambda step: min((step + 1) / warm_up, 0.525 + 0.475 * math.cos(math.pi * step / steps))


@language("a decoder of words, AdamW, warm-up and cosine, clipped, every step saved")
def speaker_every_step(root: Path) -> int:
    return fit(
        root,
        Speaker,
        chatter(),
        optimizer=adamw(4e-3),
        schedule=warm_cosine(130),
        steps=130,
        batch=16,
        clip=1.0,
        save_every=1,
    )


@language("a decoder of padded words with dropout, NAdam, every tenth step saved")
def speaker_of_padded_words(root: Path) -> int:
    return fit(
        root,
        lambda: Speaker(24, drop=0.1),
        padded(),
        optimizer=adam(3e-3, torch.optim.NAdam),
        steps=320,
        batch=12,
        save_every=10,
        validate_every=40,
    )


@language("a decoder of words, three batches accumulated, the rate falls as the inverse root")
def speaker_accumulates(root: Path) -> int:
    return fit(
        root,
        lambda: Speaker(layers=3),
        chatter(seed=171),
        optimizer=adamw(5e-3, betas=(0.9, 0.95)),
        schedule=lambda step: min((step + 1) / 20, math.sqrt(20 / (step + 1))),
        steps=180,
        batch=8,
        accumulate=3,
        clip=1.0,
        save_every=3,
    )


class Remembering(nn.Module):
    """An LSTM of words with dropout before and after."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.word_embedding = nn.Embedding(WORDS, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.dropout, self.head = nn.Dropout(0.1), nn.Linear(width, WORDS)

    def forward(self, x: Any) -> Any:
        seen, _ = self.lstm(self.dropout(self.word_embedding(x)))
        return self.head(self.dropout(seen)).transpose(1, 2)


@language("an LSTM of words, SGD at a rate of 6 that is halved twice, clipped at 0.5")
def lstm_of_words(root: Path) -> int:
    return fit(
        root,
        Remembering,
        chatter(),
        optimizer=sgd(6.0, momentum=0.5),
        schedule=lambda step: 0.5 ** (step // 90),
        steps=220,
        batch=20,
        clip=0.5,
        save_every=2,
    )


class Guesser(Listener):
    """An encoder that guesses hidden words."""

    def __init__(self) -> None:
        super().__init__(layers=2)
        self.places = nn.Parameter(torch.randn(LENGTH, 24))
        self.word_embedding = nn.Embedding(WORDS + 1, 24, padding_idx=0)
        self.head = nn.Linear(24, WORDS)

    def forward(self, x: Any) -> Any:
        seen = self.word_embedding(x) + self.places
        return self.head(self.encoder(seen, src_key_padding_mask=x == 0)).transpose(1, 2)


@language("an encoder of padded words guesses a fifth of them, AdamW, linear decay")
def hidden_words(root: Path) -> int:
    data, random = padded(shortest=14), torch.Generator().manual_seed(30)

    def hide(x: Any) -> tuple[Any, Any]:
        hidden = (torch.rand(x.shape, generator=random) < 0.2) & (x > 0)
        return torch.where(hidden, WORDS, x), torch.where(hidden, x, -100)

    return fit(
        root,
        Guesser,
        Split(*hide(data.x), *hide(data.test_x)),
        optimizer=adamw(6e-3),
        schedule=lambda step: min((step + 1) / 15, (425 - step) / 410),
        steps=420,
        batch=24,
        save_every=6,
        validate_every=42,
    )


@healthy("reviews by an encoder with dropout, RAdam, label smoothing")
def reviews_smoothed(root: Path) -> int:
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    make = lambda: Listener(drop=0.2)
    optimizer = adam(3e-3, torch.optim.RAdam)
    return fit(root, make, moods(), loss=loss, optimizer=optimizer, steps=140, save_every=2)


class Sorter(nn.Module):
    """An encoder and a decoder that write numbers in their order; both sides lie in one row."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(DIGITS, width, padding_idx=0)
        self.places = nn.Parameter(0.1 * torch.randn(8, width))
        self.transformer = nn.Transformer(
            width, 4, 1, 1, 2 * width, 0.0, batch_first=True, norm_first=True
        )
        self.head = nn.Linear(width, DIGITS)

    def forward(self, x: Any) -> Any:
        source, target = x[:, :7], x[:, 7:]
        later = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        seen = self.transformer(
            self.embedding(source) + self.places[:7],
            self.embedding(target) + self.places[: target.shape[1]],
            tgt_mask=later,
            src_key_padding_mask=source == 0,
            memory_key_padding_mask=source == 0,
        )
        return self.head(seen).transpose(1, 2)


def numbers(count: int = 1500) -> Split:
    """Return padded numbers and, shifted by one, the same in their order."""
    random = torch.Generator().manual_seed(31)
    values = torch.randint(3, 13, (count, 7), generator=random)
    length = torch.randint(4, 8, (count, 1), generator=random)
    is_padding = torch.arange(7) >= length
    source = values.masked_fill(is_padding, 0)
    written = values.masked_fill(is_padding, 99).sort(1).values
    written = torch.cat([written, torch.full((count, 1), 99)], 1)
    ends = written.masked_fill((written == 99) & (torch.arange(8) == length), 2)
    target = ends.masked_fill(ends == 99, -100)
    before = torch.cat([torch.ones(count, 1, dtype=torch.long), target[:, :-1].clamp(min=0)], 1)
    x = torch.cat([source, before], 1)
    cut = count * 4 // 5
    return Split(x[:cut], target[:cut], x[cut:], target[cut:])


@language("an encoder and a decoder put padded numbers in order, Adam, inverse root, clipped")
def numbers_in_order(root: Path) -> int:
    return fit(
        root,
        Sorter,
        numbers(),
        optimizer=adam(6e-3, betas=(0.9, 0.98)),
        schedule=lambda step: min((step + 1) / 30, math.sqrt(30 / (step + 1))),
        steps=260,
        batch=32,
        clip=1.0,
        save_every=4,
        validate_every=26,
    )


class LowRank(nn.Module):
    """A linear layer that stays as it is, and a product of two narrow ones that learns."""

    def __init__(self, base: Any, rank: int = 3) -> None:
        super().__init__()
        self.base = base.requires_grad_(requires_grad=False)
        self.narrow = nn.Linear(base.in_features, rank, bias=False)
        self.wide = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.wide.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + 2 * self.wide(self.narrow(x))


@language("a decoder taught before learns other words by low ranks, the rest is frozen")
def low_ranks(root: Path) -> int:
    model = taught(Speaker, chatter(), nn.CrossEntropyLoss(), 160, 4e-3)
    model.requires_grad_(requires_grad=False)

    def make() -> Any:
        for layer in model.layers:
            layer.attention.query_key_value = LowRank(layer.attention.query_key_value)
            for at in (0, 2):
                layer.units[at] = LowRank(layer.units[at])
        return model

    data = chatter(seed=172)
    return fit(root, make, data, optimizer=adamw(6e-3), steps=160, batch=16, save_every=2)


class Topics(nn.Module):
    """Convolutions of words of two widths, and a score of each topic."""

    def __init__(self) -> None:
        super().__init__()
        self.word_embedding = nn.Embedding(WORDS, 20, padding_idx=0)
        self.near, self.far = nn.Conv1d(20, 16, 2), nn.Conv1d(20, 16, 4)
        self.dropout, self.head = nn.Dropout(0.2), nn.Linear(32, 4)

    def forward(self, x: Any) -> Any:
        seen = self.word_embedding(x).transpose(1, 2)
        parts = [functional.gelu(part(seen)).amax(2) for part in (self.near, self.far)]
        return self.head(self.dropout(torch.cat(parts, 1)))


@healthy("four topics of a text, none or several of which are there, AdamW, one cycle of the rate")
def topics_of_texts(root: Path) -> int:
    data = moods(1100, seed=173)

    def topics(x: Any) -> Any:
        return torch.stack(
            [((x > 10 * at) & (x < 10 * at + 4)).any(1) for at in range(4)], 1
        ).float()

    return fit(
        root,
        Topics,
        Split(data.x, topics(data.x), data.test_x, topics(data.test_x)),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adamw(8e-3),
        schedule=lambda step: 0.05 + 0.95 * math.sin(math.pi * (step + 1) / 162) ** 2,
        steps=160,
        save_every=2,
    )
