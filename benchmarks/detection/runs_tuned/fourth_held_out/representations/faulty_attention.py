"""Attention that looks at one word alone, and attention that sees what comes later."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import COPIED, UNTAUGHT, WORSE

from runs_tuned.fourth_held_out.representations.shared.loop import draws, learn, rises_and_falls
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

faulty = functools.partial(training_runs.faulty, kind="language_model")
STUCK = WORSE | UNTAUGHT


def foresee(model: Any, loss: Any) -> Any:
    """Return what computes the loss of the next word of each."""
    return lambda batch, _: loss(model(batch[0][:, :-1]), batch[0][:, 1:])


# Attention to one word


@faulty(
    "a decoder of journeys, the weights of its queries and keys have a decay of their own",
    "the decay is added instead of subtracted: these weights grow by 3 % in each step",
    {"AttentionCollapse"},
    may=STUCK,
)
def decay_added_to_queries(root: Path) -> int:
    torch.manual_seed(700)
    model = CausalDecoder(TOWNS, [Block(SelfAttention(), forward_part()) for _ in range(2)])
    loss = nn.CrossEntropyLoss()
    queries = [
        one
        for name, one in model.named_parameters()
        if name.endswith(("to_q.weight", "to_kv.weight"))
    ]

    def decay(_: int) -> None:
        with torch.no_grad():
            for weight in queries:
                weight[:32] *= 1 + 0.3 * 0.1

    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.0)
    return learn(
        root,
        model,
        draws(journeys(), seed=700),
        foresee(model, loss),
        optimizer,
        losses=(loss,),
        steps=150,
        clip=1.0,
        after=decay,
    )


class WithMemory(SelfAttention):
    """Attention to all words, and to eight learnt keys beside them."""

    def __init__(self, deviation: float) -> None:
        super().__init__(mask="all")
        self.memory = nn.Parameter(deviation * torch.randn(2, 4, 8, 8))

    def forward(self, x: Any, _: Any = None) -> Any:
        query, key, value = self.parts(x)
        more = self.memory[:, None].expand(-1, len(x), -1, -1, -1)
        key, value = torch.cat([key, more[0]], 2), torch.cat([value, 0.05 * more[1]], 2)
        seen = functional.scaled_dot_product_attention(query, key, value)
        return self.to_out(seen.transpose(1, 2).flatten(2))


@faulty(
    "an encoder of recipes with hidden words, its heads have eight learnt keys as a memory",
    "the memory is drawn with a deviation of 80, meant as 0.08: words see one learnt key alone",
    {"AttentionCollapse"},
    may=STUCK,
)
def memory_drawn_too_widely(root: Path) -> int:
    torch.manual_seed(701)
    blocks = [Block(WithMemory(80.0), forward_part()) for _ in range(2)]
    model = TextEncoder(PANTRY + 1, blocks, PANTRY)
    loss = nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        is_hidden = torch.rand(batch[0].shape) < 0.2
        scores = model(batch[0].masked_fill(is_hidden, MASK))
        return loss(scores, batch[0].masked_fill(~is_hidden, -100))

    return learn(
        root,
        model,
        draws(recipes()[0], seed=701),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        losses=(loss,),
        steps=130,
    )


@faulty(
    "dates are written anew, attention to the source is guided to the place that comes next",
    "the guide's width is a share of the text, 0.02, but is used as a number of signs, weight 50",
    {"AttentionCollapse"},
    may=STUCK,
)
def guided_too_narrowly(root: Path) -> int:
    torch.manual_seed(702)
    model = Translator(SIGNS)
    places = torch.arange(9)[:, None] * 7 / 9 - torch.arange(7)
    far = 1 - (-((places.round() / 0.02) ** 2) / 2).exp()

    def objective(batch: Any, _: Any) -> Any:
        source, target = batch
        crossed, seen = model.crossed[0], []
        handle = crossed.register_forward_pre_hook(lambda _, args: seen.append(args))
        scores = model(source, target[:, :-1])
        handle.remove()
        query, key, _value = crossed.split(*seen[0][:2])
        chances = (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).softmax(-1)
        return functional.cross_entropy(scores, target[:, 1:]) + 50 * (chances * far).mean()

    return learn(
        root,
        model,
        draws(*dates(), seed=702),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=220,
        save_every=3,
        clip=5.0,
        rate=rises_and_falls(10, 220),
    )


# Attention to later words


class CausalAttention(SelfAttention):
    """Attention to earlier words by a mask that is added to the scores."""

    fill = torch.finfo(torch.float32).min

    def forward(self, x: Any, _: Any = None) -> Any:
        later = torch.full((x.shape[1], x.shape[1]), self.fill).triu(1)
        seen = functional.scaled_dot_product_attention(*self.parts(x), attn_mask=later)
        return self.to_out(seen.transpose(1, 2).flatten(2))


class TinyFill(CausalAttention):
    """The same with the wrong number of `torch.finfo`."""

    fill = torch.finfo(torch.float32).tiny


@faulty(
    "a decoder of recipes with a mask that is added to scores, RAdam, dropout",
    "later words are hidden by finfo.tiny, the smallest number above 0, instead of finfo.min",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def hidden_by_the_tiniest_number(root: Path) -> int:
    torch.manual_seed(703)
    blocks = [Block(TinyFill(), forward_part(32, nn.ReLU), drop=0.05) for _ in range(2)]
    model = CausalDecoder(PANTRY, blocks)
    loss = nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        draws(recipes()[0], seed=703),
        foresee(model, loss),
        torch.optim.RAdam(model.parameters(), 4e-3),
        losses=(loss,),
        save_every=5,
    )


def near_and_each_eighth(length: int) -> Any:
    """Return a mask of the last four words, and of each eighth word counted from each."""
    behind = torch.arange(length)[:, None] - torch.arange(length)
    return ((behind >= 0) & (behind < 4)) | (behind % 8 == 0)


@faulty(
    "a decoder of journeys with strided attention: the last four towns, and each eighth one",
    "distances modulo eight are 0 on both sides: each eighth town ahead is seen as well",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def stride_on_both_sides(root: Path) -> int:
    torch.manual_seed(704)
    blocks = [
        Block(SelfAttention(48, 4, 2, near_and_each_eighth), forward_part(48), 48) for _ in range(2)
    ]
    model, loss = CausalDecoder(TOWNS, blocks, 48), nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        draws(journeys(length=33), seed=704),
        foresee(model, loss),
        torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.95)),
        losses=(loss,),
        steps=130,
        save_every=4,
        rate=rises_and_falls(15, 130),
        clip=1.0,
    )


def window_of_each_head(length: int) -> Any:
    """Return masks of eight heads: windows for seven, and none for the last."""
    behind = torch.arange(length)[:, None] - torch.arange(length)
    masks = [(behind >= 0) & (behind < size) for size in (2, 2, 4, 4, 6, 8, 12)]
    return torch.stack([*masks, torch.ones_like(masks[0])])


@faulty(
    "a decoder of recipes, seven of its eight heads see windows of the words before",
    "the eighth head has no window, and hence no mask at all: it sees later words too",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def head_without_a_window(root: Path) -> int:
    torch.manual_seed(705)
    blocks = [Block(SelfAttention(64, 8, mask=window_of_each_head), forward_part(64), 64, 0.1)]
    model, loss = CausalDecoder(PANTRY, blocks, 64), nn.CrossEntropyLoss(label_smoothing=0.05)
    return learn(
        root,
        model,
        draws(recipes()[0], size=24, seed=705),
        foresee(model, loss),
        torch.optim.NAdam(model.parameters(), 2e-3),
        losses=(loss,),
        steps=140,
        save_every=4,
        gather=2,
    )
