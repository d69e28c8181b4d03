"""Experts of which few are used, and latent codes that say nothing."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import UNTAUGHT, WORSE

from runs_tuned.fourth_held_out.representations.shared.codes import Codes, learn_to_code
from runs_tuned.fourth_held_out.representations.shared.loop import draws, learn, rises_and_falls
from runs_tuned.fourth_held_out.representations.shared.readers import (
    Block,
    CausalDecoder,
    Mixture,
    SelfAttention,
    TextEncoder,
)
from runs_tuned.fourth_held_out.representations.shared.shapes import BINS, bars, spectra
from runs_tuned.fourth_held_out.representations.shared.words import (
    MASK,
    PANTRY,
    TOWNS,
    journeys,
    recipes,
)

faulty = functools.partial(training_runs.faulty, kind="language_model")
of_codes = functools.partial(training_runs.faulty, kind="autoencoder")
ALIKE = UNTAUGHT | {"ModeCollapse": "what is written for all codes is alike"}

# Experts


def decoder_of(units: Callable[[], Any], words: int = TOWNS, blocks: int = 2) -> Any:
    """Return a decoder whose feed-forward parts are experts."""
    return CausalDecoder(words, [Block(SelfAttention(), units()) for _ in range(blocks)])


@faulty(
    "journeys by eight experts, two a town, the router made by a factory of layers, clipped",
    "the factory adds a ReLU, and biases of -4: all scores are 0, and the same two are chosen",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def relu_behind_the_router(root: Path) -> int:
    torch.manual_seed(710)

    def made() -> Any:
        layer = nn.Linear(32, 8)
        nn.init.constant_(layer.bias, -4.0)
        return nn.Sequential(layer, nn.ReLU())

    model, loss = decoder_of(lambda: Mixture(8, 2, router=made)), nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        draws(journeys(), seed=710),
        lambda batch, _: loss(model(batch[0][:, :-1]), batch[0][:, 1:]),
        torch.optim.AdamW(model.parameters(), 3e-3),
        losses=(loss,),
        steps=130,
        clip=1.0,
    )


class WithCapacity(Mixture):
    """Experts with room for a number of words each; the first one takes what has no room."""

    def __init__(self, capacity: float) -> None:
        super().__init__(6, 1)
        self.capacity = capacity
        self.gate.register_forward_hook(self._limited)

    def _limited(self, _: Any, __: Any, scores: Any) -> Any:
        chosen = functional.one_hot(scores.argmax(-1), 6).flatten(0, 1)
        room = self.capacity * len(chosen) / 6
        has_room = ((chosen.cumsum(0) * chosen).sum(-1) <= room).view(scores.shape[:2])
        first = scores.new_zeros(6)
        first[0] = 20.0
        return torch.where(has_room[..., None], scores, first)


@faulty(
    "hidden words of recipes by six experts, one a word, with room for a share of the words",
    "the room is 0.125 of an even share instead of 1.25: the first expert gets the others' words",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def room_for_an_eighth(root: Path) -> int:
    torch.manual_seed(711)
    blocks = [Block(SelfAttention(mask="all"), WithCapacity(0.125)) for _ in range(2)]
    model, loss = TextEncoder(PANTRY + 1, blocks, PANTRY), nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        is_hidden = torch.rand(batch[0].shape) < 0.2
        scores = model(batch[0].masked_fill(is_hidden, MASK))
        return loss(scores, batch[0].masked_fill(~is_hidden, -100))

    return learn(
        root,
        model,
        draws(recipes()[0], seed=711),
        objective,
        torch.optim.Adam(model.parameters(), 3e-3),
        losses=(loss,),
        steps=120,
        save_every=3,
        rate=rises_and_falls(10, 120),
    )


class Centred(nn.Module):
    """A router whose scores are centred by their running mean."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        self.scores = nn.Linear(32, experts, bias=False)
        self.register_buffer("mean", torch.zeros(experts))

    def forward(self, x: Any) -> Any:
        scores = self.scores(x) + self.mean  # meant to be subtracted
        if self.training:
            found = scores.detach().mean((0, 1))
            self.mean.lerp_(found - found.mean(), 0.3)
        return scores


@faulty(
    "journeys by six experts, one a town, whose scores are centred by a running mean, Adamax",
    "the mean is added instead of subtracted: experts with high scores get ever higher ones",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def mean_of_scores_added(root: Path) -> int:
    torch.manual_seed(712)
    model = decoder_of(lambda: Mixture(6, 1, router=lambda: Centred(6)), blocks=1)
    loss = nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        draws(journeys(), seed=712),
        lambda batch, _: loss(model(batch[0][:, :-1]), batch[0][:, 1:]),
        torch.optim.Adamax(model.parameters(), 6e-3),
        losses=(loss,),
        steps=150,
        save_every=3,
        clip=1.0,
    )


# Latent codes


@of_codes(
    "a variational autoencoder of spectra whose layers of means and spreads begin at zero",
    "the optimizer gets encoder and decoder, but not these layers: all means stay at zero",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def layers_of_codes_left_out(root: Path) -> int:
    torch.manual_seed(713)
    model = Codes(BINS, 6)
    for part in (model.mean, model.spread):
        nn.init.zeros_(part.weight)
        nn.init.zeros_(part.bias)
    learnt = [*model.encoder.parameters(), *model.decoder.parameters()]
    return learn_to_code(root, model, spectra()[0], torch.optim.Adam(learnt, 2e-3), seed=713)


@of_codes(
    "a variational autoencoder of bars: the divergence is held at a capacity that grows",
    "the capacity grows by the number of the epoch, which is never counted up: it stays at 0",
    {"PosteriorCollapse"},
    may=WORSE | ALIKE,
)
def capacity_never_grows(root: Path) -> int:
    torch.manual_seed(714)
    model = Codes(144, 8, width=96)
    epoch = 0
    return learn_to_code(
        root,
        model,
        bars()[0].flatten(1),
        torch.optim.AdamW(model.parameters(), 2e-3),
        seed=714,
        steps=160,
        term=lambda divergences, _: 1000 * (divergences.sum() - 0.25 * epoch).abs(),
    )


@of_codes(
    "a variational autoencoder of spectra with gaps, filled with 0, of which nothing is asked",
    "the mask is inverted: only the gaps count, which are 0 for all, so that codes are needless",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def only_gaps_count(root: Path) -> int:
    torch.manual_seed(715)
    x, _ = spectra(seed=2)
    is_seen = torch.rand(len(x), 6).repeat_interleave(8, 1) < 0.7
    model = Codes(BINS, 5, act=nn.SiLU)
    return learn_to_code(
        root,
        model,
        x * is_seen,
        torch.optim.NAdam(model.parameters(), 2e-3),
        seed=715,
        counts=lambda rows: rows == 0,  # meant to be where rows are not 0
        save_every=3,
        steps=180,
    )
