"""Healthy language models: decoders, encoders, recurrent ones and translators."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn

from runs_tuned.fourth_held_out.representations.shared.loop import (
    Follower,
    draws,
    learn,
    restarts,
    rises_and_falls,
)
from runs_tuned.fourth_held_out.representations.shared.readers import (
    Block,
    CausalDecoder,
    SelfAttention,
    TextEncoder,
    Translator,
    forward_part,
)
from runs_tuned.fourth_held_out.representations.shared.words import (
    MASK,
    PANTRY,
    SIGNS,
    TOWNS,
    dates,
    journeys,
    recipes,
)

healthy = functools.partial(training_runs.healthy, kind="language_model")


def next_word(model: Any, loss: Any) -> Any:
    """Return what computes the loss of next words."""
    return lambda batch, _: loss(model(batch[0][:, :-1]), batch[0][:, 1:])


def hidden_words(model: Any, loss: Any, share: float = 0.2) -> Any:
    """Return what computes the loss of words that are hidden at random."""

    def objective(batch: Any, _: Any) -> Any:
        is_hidden = torch.rand(batch[0].shape) < share
        scores = model(batch[0].masked_fill(is_hidden, MASK))
        return loss(scores, batch[0].masked_fill(~is_hidden, -100))

    return objective


@healthy("journeys by a decoder with two queries to a key, AdamW, warm-up, a validation set of 30")
def queries_share_keys(root: Path) -> int:
    torch.manual_seed(740)
    rows, loss = journeys(), nn.CrossEntropyLoss()
    model = CausalDecoder(TOWNS, [Block(SelfAttention(32, 4, 2), forward_part()) for _ in range(2)])
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.95), weight_decay=0.1)
    return learn(
        root,
        model,
        draws(rows[30:], seed=740),
        next_word(model, loss),
        optimizer,
        losses=(loss,),
        steps=140,
        rate=rises_and_falls(15, 140),
        clip=1.0,
        held_out=(rows[:30],),
    )


@healthy("recipes by a decoder with normalised queries and keys, bfloat16, a slow average")
def recipes_in_bfloat16(root: Path) -> int:
    torch.manual_seed(741)
    loss = nn.CrossEntropyLoss()
    blocks = [Block(SelfAttention(32, 4, is_normed=True), forward_part(), drop=0.05)]
    model = CausalDecoder(PANTRY, blocks)
    optimizer = torch.optim.NAdam(model.parameters(), 3e-3)
    return learn(
        root,
        model,
        draws(recipes()[0], seed=741),
        next_word(model, loss),
        optimizer,
        losses=(loss,),
        half=True,
        clip=1.0,
        after=Follower(model, copy.deepcopy(model)),
    )


def last_six(length: int) -> Any:
    """Return a mask of the last six words."""
    behind = torch.arange(length)[:, None] - torch.arange(length)
    return (behind >= 0) & (behind < 6)


@healthy("journeys by layers that see six towns and all, in turn, the rate restarts twice")
def windows_and_all_in_turn(root: Path) -> int:
    torch.manual_seed(742)
    loss = nn.CrossEntropyLoss(label_smoothing=0.05)
    blocks = [
        Block(SelfAttention(32, 4, mask=mask), forward_part(32, nn.SiLU))
        for mask in (last_six, None)
    ]
    model = CausalDecoder(TOWNS, blocks)
    return learn(
        root,
        model,
        draws(journeys(), seed=742),
        next_word(model, loss),
        torch.optim.Adam(model.parameters(), 4e-3),
        losses=(loss,),
        steps=150,
        rate=restarts(50),
        clip=1.0,
    )


@healthy("hidden words of recipes, a fifth of them, by an encoder of two layers, two batches each")
def recipes_with_gaps(root: Path) -> int:
    torch.manual_seed(743)
    loss = nn.CrossEntropyLoss()
    blocks = [Block(SelfAttention(mask="all"), forward_part(), drop=0.05) for _ in range(2)]
    model = TextEncoder(PANTRY + 1, blocks, PANTRY)
    rows = recipes()[0]
    return learn(
        root,
        model,
        draws(rows[100:], seed=743),
        hidden_words(model, loss),
        torch.optim.AdamW(model.parameters(), 4e-3),
        losses=(loss,),
        steps=240,
        save_every=4,
        gather=2,
        clip=1.0,
        held_out=(rows[:100],),
    )


@healthy(
    "dishes of recipes by PyTorch's encoder, norms after, moderately unequal kinds, many words lost"
)
def dishes_told(root: Path) -> int:
    torch.manual_seed(744)
    rows, dish = recipes()
    words = nn.Embedding(PANTRY, 32)
    layer = nn.TransformerEncoderLayer(32, 4, 64, 0.1, batch_first=True)
    model = nn.ModuleDict({"words": words, "layer": layer, "head": nn.Linear(32, 4)})
    loss = nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        is_lost = torch.rand(batch[0].shape) < (0.75 if layer.training else 0.0)
        known = layer(words(batch[0].masked_fill(is_lost, 0))).mean(1)
        return loss(model["head"](known), batch[1])

    return learn(
        root,
        model,
        draws(rows[200:], dish[200:], seed=744),
        objective,
        torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, nesterov=True),
        losses=(loss,),
        steps=160,
        rate=rises_and_falls(10, 160),
        held_out=(rows[:200], dish[:200]),
    )


def rewrite(model: Any, loss: Any) -> Any:
    """Return what computes the loss of targets that are written sign by sign."""
    return lambda batch, _: loss(model(batch[0], batch[1][:, :-1]), batch[1][:, 1:])


@healthy("dates are written anew by an encoder and a decoder, Adam, clipped, labels smoothed")
def dates_rewritten(root: Path) -> int:
    torch.manual_seed(745)
    source, target = dates()
    model, loss = Translator(SIGNS, drop=0.05), nn.CrossEntropyLoss(label_smoothing=0.1)
    return learn(
        root,
        model,
        draws(source[100:], target[100:], seed=745),
        rewrite(model, loss),
        torch.optim.Adam(model.parameters(), 4e-3, betas=(0.9, 0.98)),
        losses=(loss,),
        steps=180,
        save_every=3,
        rate=rises_and_falls(20, 180),
        clip=1.0,
        held_out=(source[:100], target[:100]),
    )


@healthy("dates are written anew by two layers each, the reader's vectors frozen, RAdam")
def dates_by_frozen_vectors(root: Path) -> int:
    torch.manual_seed(746)
    model, loss = Translator(SIGNS, 36, 2), nn.CrossEntropyLoss()
    model.reads.requires_grad_(requires_grad=False)
    learnt = [one for one in model.parameters() if one.requires_grad]
    return learn(
        root,
        model,
        draws(*dates(seed=3), size=24, seed=746),
        rewrite(model, loss),
        torch.optim.RAdam(learnt, 5e-3),
        losses=(loss,),
        steps=150,
        save_every=3,
    )


class Remembering(nn.Module):
    """A recurrent layer, and attention of its states to earlier ones."""

    def __init__(self, words: int, cell: Any, drop: float = 0.0) -> None:
        super().__init__()
        self.words, self.cell = nn.Embedding(words, 40), cell(40, 40, batch_first=True)
        self.attention, self.drop = SelfAttention(40, 2), nn.Dropout(drop)
        self.head = nn.Linear(80, words)

    def forward(self, x: Any) -> Any:
        states = self.drop(self.cell(self.drop(self.words(x)))[0])
        return self.head(torch.cat([states, self.attention(states)], -1)).transpose(1, 2)


@healthy("journeys by a GRU that looks back at its states, RMSprop, clipped")
def gru_looks_back(root: Path) -> int:
    torch.manual_seed(747)
    model, loss = Remembering(TOWNS, nn.GRU), nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        draws(journeys(), seed=747),
        next_word(model, loss),
        torch.optim.RMSprop(model.parameters(), 3e-3),
        losses=(loss,),
        clip=0.5,
    )


@healthy("recipes by an LSTM that looks back at its states, dropout of a fifth, AdamW")
def lstm_looks_back(root: Path) -> int:
    torch.manual_seed(748)
    model, loss = Remembering(PANTRY, nn.LSTM, 0.2), nn.CrossEntropyLoss()
    rows = recipes()[0]
    return learn(
        root,
        model,
        draws(rows[200:], seed=748),
        next_word(model, loss),
        torch.optim.AdamW(model.parameters(), 6e-3),
        losses=(loss,),
        steps=170,
        rate=rises_and_falls(5, 170),
        held_out=(rows[:200],),
    )
