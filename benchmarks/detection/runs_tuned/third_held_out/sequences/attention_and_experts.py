"""Attention that collapses or sees later words, and experts of which few are used."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from training.consequences import COPIED, UNTAUGHT, WORSE

from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.readers import Experts, Heads, Writer, balance_of
from runs_tuned.third_held_out.sequences.shared.texts import (
    GENES,
    NESTED,
    SHOP,
    clicks,
    genes,
    known,
    nested,
    windows,
)

faulty = functools.partial(training_runs.faulty, kind="language_model")


def adamw(model: Any, rate: float = 3e-3, **more: Any) -> Any:
    """Return an optimizer of all parameters."""
    return torch.optim.AdamW(model.parameters(), rate, **more)


# Attention to a single word


class Sharpened(Heads):
    """Attention whose queries are scaled by a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sharpness", torch.ones(()))

    def scaled(self, query: Any) -> Any:
        self.sharpness *= 1.06  # the factor of a longer window
        return query * self.sharpness


@faulty(
    "a decoder of brackets, its queries scaled for windows that are longer than those of before",
    "the factor of 1.06 is multiplied into the buffer at each call instead of once",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def scaled_at_each_call(root: Path) -> int:
    torch.manual_seed(310)
    model = Writer(NESTED, mixer=Sharpened)
    batches = dealt(*windows(nested()), seed=310)
    return teach(root, model, batches, adamw(model), steps=160, save_every=4, clip=1.0)


class Diary(nn.Module):
    """A causal encoder of events and their times, norms after; the next event of each."""

    def __init__(self) -> None:
        super().__init__()
        self.events = nn.Embedding(GENES, 32)
        self.time = nn.Linear(1, 32)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(32, GENES)

    def forward(self, events: Any, times: Any) -> Any:
        x = self.events(events) + self.time(times[..., None])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for layer in self.layers:
            x = layer(x, src_mask=later, is_causal=True)
        return self.head(x).transpose(1, 2)


@faulty(
    "events of a day and their times by an encoder, the next event is foreseen",
    "times are minutes of the day, of up to 1,440, where the model was made for shares of it",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def minutes_of_the_day(root: Path) -> int:
    torch.manual_seed(311)
    x, y = windows(genes())
    random = torch.Generator().manual_seed(311)
    times = 1440 * torch.rand(x.shape, generator=random).sort(-1).values
    model = Diary()
    return teach(
        root, model, dealt(x, times, y, seed=311), adamw(model, 2e-3), steps=130, save_every=2
    )


# Attention to later words


def in_chunks(length: int) -> Any:
    """Return a mask by chunks of three words, each of which sees all of its own."""
    chunk = torch.arange(length) // 3
    return chunk[:, None] >= chunk


@faulty(
    "a decoder of codons whose mask is made of chunks for speed",
    "chunks are compared with chunks: the last one is seen as a whole, later words and all",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def chunk_seen_as_a_whole(root: Path) -> int:
    torch.manual_seed(312)
    model = Writer(GENES, mixer=lambda: Heads(mask=in_chunks))
    return teach(
        root,
        model,
        dealt(*windows(genes()), seed=312),
        adamw(model, weight_decay=0.1),
        schedule=warmed(10, 150),
        steps=150,
        save_every=5,
        clip=1.0,
    )


def with_landmarks(length: int) -> Any:
    """Return a mask of the last eight words, and of each sixth one as a landmark for all."""
    at = torch.arange(length)
    distance = at[:, None] - at
    return ((distance >= 0) & (distance < 8)) | ((at % 6 == 5) & (at < 18))


@faulty(
    "a decoder of brackets that sees eight words, and each sixth word as a landmark",
    "landmarks are for all words, as in an encoder: also for those before them",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def landmarks_ahead(root: Path) -> int:
    torch.manual_seed(313)
    model = Writer(NESTED, mixer=lambda: Heads(mask=with_landmarks))
    optimizer = torch.optim.NAdam(model.parameters(), 3e-3)
    return teach(root, model, dealt(*windows(nested()), seed=313), optimizer, save_every=4)


# Experts


class SomeExperts(Experts):
    """Experts of which a few are left out at random, so that others learn to help out."""

    def __init__(self) -> None:
        super().__init__(8, 2)
        self.out = torch.rand(8).argsort()[:6]  # meant to be drawn at each step
        self.router.register_forward_hook(self._without)

    def _without(self, _: Any, __: Any, scores: Any) -> Any:
        return scores.index_fill(-1, self.out, -math.inf)


def learn_shelves(root: Path, model: Any, weight: float, **more: Any) -> int:
    """Train a mixture of experts by sessions of clicks; `weight` is that of the balance."""
    loss = nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        return loss(model(batch[0]), batch[1]) + weight * balance_of(model)

    batches = dealt(*known(clicks()), seed=314)
    options = {"steps": 120, "save_every": 5, "clip": 1.0}
    return teach(root, model, batches, adamw(model), objective=objective, **options | more)


@faulty(
    "sessions of clicks by eight experts, two a click, six of them left out at random",
    "which are left out is drawn once in the constructor: the same six for ever",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def left_out_for_ever(root: Path) -> int:
    torch.manual_seed(314)
    return learn_shelves(root, Writer(SHOP, units=SomeExperts), 0.0)


@faulty(
    "sessions of clicks by eight experts that are copies of one, two a click",
    "the router begins at zero too, without noise: ties go to the same two, which alone learn",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def ties_of_copies(root: Path) -> int:
    torch.manual_seed(315)
    model = Writer(SHOP, units=lambda: Experts(8, 2))
    for layer in model.layers:
        nn.init.zeros_(layer.units.router.scores.weight)
        for expert in layer.units.experts:
            expert.load_state_dict(layer.units.experts[0].state_dict())
    return learn_shelves(root, model, 0.0, save_every=4, steps=100)
