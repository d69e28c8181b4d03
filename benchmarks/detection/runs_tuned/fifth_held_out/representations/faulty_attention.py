"""Attention that looks at a single place, and attention that sees what comes later."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.blocks import (
    CausalWriter,
    GatedUnits,
    Layer,
    TurnedAttention,
    foresees,
    layers,
)
from runs_tuned.fifth_held_out.representations.shared.consequences import COPIED, UNTAUGHT, WORSE
from runs_tuned.fifth_held_out.representations.shared.loop import (
    cosine,
    epochs,
    inverse_root,
    learn,
)
from runs_tuned.fifth_held_out.representations.shared.texts import (
    BELLS,
    SKIES,
    STITCHES,
    bells,
    knitting,
    weather,
)

faulty = functools.partial(training_runs.faulty, kind="language_model")

# Attention to a single place


class Stations(nn.Module):
    """Foresees what hidden stations measure from near ones."""

    def __init__(self, far: Any, heads: int = 4, width: int = 32) -> None:
        super().__init__()
        self.reads, self.writes = nn.Linear(4, width), nn.Linear(width, 1)
        self.slopes = nn.Parameter(torch.tensor([0.1, 0.3, 0.6, 1.0])[:heads, None, None])
        self.far = far
        self.stack = nn.ModuleList(
            Layer(TurnedAttention(width, heads, mask=self.nearer), GatedUnits(width), width)
            for _ in range(2)
        )

    def nearer(self, _: int) -> Any:
        """Return what the distances add to scores."""
        return -self.slopes * self.far

    def forward(self, x: Any) -> Any:
        x = self.reads(x)
        for layer in self.stack:
            x = layer(x)
        return self.writes(x)[..., 0]


@training_runs.faulty(
    "what hidden stations measure is foreseen by attention that distances weaken, AdamW, Huber",
    "distances are in metres, but slopes were chosen for kilometres: stations see themselves alone",
    {"AttentionCollapse"},
    may=UNTAUGHT,
)
def distances_in_metres(root: Path) -> int:
    torch.manual_seed(900)
    places = 10 * torch.rand(24, 2)
    far = torch.cdist(places, places)
    model, loss = Stations(1000 * far), nn.HuberLoss()
    waves = torch.randn(600, 6, 2), 6.3 * torch.rand(600, 6, 1)
    field = (0.4 * waves[0] @ places.T + waves[1]).sin().sum(1) / 2
    is_hidden = torch.rand(field.shape) < 0.3
    seen = torch.stack([field * ~is_hidden, is_hidden.float()], -1)
    rows = torch.cat([seen, (places / 5 - 1).expand(600, -1, -1)], -1)
    return learn(
        root,
        model,
        epochs(rows, field, is_hidden, seed=900),
        lambda batch, _: loss(model(batch[0])[batch[2]], batch[1][batch[2]]),
        torch.optim.AdamW(model.parameters(), 3e-3),
        losses=(loss,),
        steps=140,
    )


@faulty(
    "a decoder of bells, goes on at step 70 from a checkpoint of eight bits, Adam, clipped",
    "the scales of the keys' weights are lost: they are whole numbers from -127 to 127",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def keys_of_eight_bits(root: Path) -> int:
    torch.manual_seed(901)
    model = CausalWriter(BELLS, [Layer(TurnedAttention(), GatedUnits()) for _ in range(2)])
    loss = nn.CrossEntropyLoss()

    def load(step: int) -> None:
        for layer in model.stack if step == 70 else ():
            weight = layer.get_submodule("attention.names").weight.data
            weight.copy_((127 * weight / weight.abs().max()).round())

    return learn(
        root,
        model,
        epochs(bells(), seed=901),
        foresees(model, loss),
        torch.optim.Adam(model.parameters(), 3e-3),
        losses=(loss,),
        clip=1.0,
        at=70,
        before=load,
    )


class RememberingAttention(TurnedAttention):
    """Prefers places that were looked at before (heavy hitters)."""

    def __init__(self, length: int) -> None:
        super().__init__(32, 4)
        self.register_buffer("used", torch.zeros(4, length))
        self.register_buffer("later", torch.full((length, length), -1e9).triu(1))

    def forward(self, x: Any) -> Any:
        query, key, value = self.parts(x)
        added = self.later + self.used[:, None]
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=added)
        if self.training:
            with torch.no_grad():
                chances = (query @ key.transpose(-1, -2) / 8**0.5 + added).softmax(-1)
                self.used += chances.mean((0, 2))  # meant for one text, and to be cleared
        return self.joins(seen.transpose(1, 2).flatten(2))


@faulty(
    "a decoder of knitting patterns that prefers places looked at before, NAdam, cosine",
    "what was looked at is never cleared for the next text: one place gets ever more preferred",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def looked_at_never_cleared(root: Path) -> int:
    torch.manual_seed(902)
    stack = [Layer(RememberingAttention(24), GatedUnits(), drop=0.05) for _ in range(2)]
    model, loss = CausalWriter(STITCHES, stack), nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        epochs(knitting()[0], seed=902),
        foresees(model, loss),
        torch.optim.NAdam(model.parameters(), 3e-3),
        losses=(loss,),
        steps=160,
        rate=cosine(10, 160),
    )


# Attention to later words


class DroppingAttention(TurnedAttention):
    """Drops some of what is seen, so that no word is relied on."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        later = torch.full((x.shape[1], x.shape[1]), -1e4).triu(1)
        seen = functional.scaled_dot_product_attention(*self.parts(x), attn_mask=self.drop(later))
        return self.joins(seen.transpose(1, 2).flatten(2))


@faulty(
    "a decoder of knitting patterns with dropout of a tenth in its attention, AdamW, clipped",
    "the mask goes through the dropout instead of the chances: a tenth of later words is seen",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def mask_through_dropout(root: Path) -> int:
    torch.manual_seed(903)
    stack = [Layer(DroppingAttention(), GatedUnits()) for _ in range(2)]
    model, loss = CausalWriter(STITCHES, stack), nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        epochs(knitting()[0], seed=903),
        foresees(model, loss),
        torch.optim.AdamW(model.parameters(), 3e-3),
        losses=(loss,),
        clip=1.0,
        save_every=4,
    )


def earlier_and_some_at_random(length: int) -> Any:
    """Return masks of four heads: two words before each, the first, and three drawn at random."""
    behind = torch.arange(length)[:, None] - torch.arange(length)
    near = (behind >= 0) & (behind < 3) | (behind >= 0) & (torch.arange(length) == 0)
    random = torch.Generator().manual_seed(5)
    drawn = torch.rand(4, length, length, generator=random).topk(3, -1).indices
    return near | functional.one_hot(drawn, length).sum(-2).bool()


@faulty(
    "a decoder of bells, sparse: near ones, the first, and three drawn by each head, Adamax",
    "what is drawn at random is added after the causal mask, and is drawn from later ones as well",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def random_keys_of_all_places(root: Path) -> int:
    torch.manual_seed(904)
    stack = [
        Layer(TurnedAttention(48, 4, earlier_and_some_at_random), GatedUnits(48), 48)
        for _ in range(2)
    ]
    model, loss = CausalWriter(BELLS, stack, 48), nn.CrossEntropyLoss(label_smoothing=0.02)
    return learn(
        root,
        model,
        epochs(bells(), seed=904),
        foresees(model, loss),
        torch.optim.Adamax(model.parameters(), 6e-3),
        losses=(loss,),
        steps=140,
        save_every=3,
        rate=inverse_root(20),
    )


class CausalLayer(nn.Module):
    """Attention to earlier words, without a mask that is made by hand."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.parts = heads, nn.Linear(width, 3 * width)

    def forward(self, x: Any) -> Any:
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in self.parts(x).chunk(3, -1)
        )
        seen = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            is_causal=not self.training,  # meant for writing word by word, where no mask is needed
        )
        return seen.transpose(1, 2).flatten(2)


@faulty(
    "a decoder of weather with learnt places, Adam with few second moments, validated",
    "attention is to be causal while learning, but the flag is inverted: only while evaluating",
    {"AttentionMaskLeak"},
    may=COPIED | WORSE,
)
def causal_while_evaluating(root: Path) -> int:
    torch.manual_seed(905)
    units = functools.partial(layers, 32, 64, 32, act=nn.GELU)
    stack = [Layer(CausalLayer(), units(), norm=nn.LayerNorm) for _ in range(2)]
    model, loss = CausalWriter(SKIES, stack), nn.CrossEntropyLoss()
    places = nn.Embedding(28, 32)
    model.add_module("places", places)
    model.words.register_forward_hook(lambda _, __, words: words + places.weight)
    rows, _ = weather()
    return learn(
        root,
        model,
        epochs(rows[:1000], seed=905),
        foresees(model, loss),
        torch.optim.Adam(model.parameters(), 5e-3, betas=(0.9, 0.95)),
        losses=(loss,),
        steps=180,
        save_every=3,
        held_out=(rows[1000:],),
    )
