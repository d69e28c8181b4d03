"""Experts that are not used, and latent codes that tell nothing."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.distributions import Normal
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.blocks import (
    CausalWriter,
    Experts,
    GatedUnits,
    Layer,
    TurnedAttention,
    foresees,
)
from runs_tuned.fifth_held_out.representations.shared.codes import Coder, code, divergence
from runs_tuned.fifth_held_out.representations.shared.consequences import ALIKE, UNTAUGHT, WORSE
from runs_tuned.fifth_held_out.representations.shared.loop import cosine, epochs, learn
from runs_tuned.fifth_held_out.representations.shared.shapes import GAIT, clocks, gaits, photographs
from runs_tuned.fifth_held_out.representations.shared.texts import BELLS, SKIES, bells, weather

faulty = functools.partial(training_runs.faulty, kind="language_model")
of_codes = functools.partial(training_runs.faulty, kind="autoencoder")

# Experts


class Centres(nn.Module):
    """Scores experts by the distances of words to their centres."""

    def __init__(self, experts: int, deviation: float, width: int = 32) -> None:
        super().__init__()
        self.centres = nn.Parameter(deviation * torch.randn(experts, width))

    def forward(self, x: Any) -> Any:
        return -(x[..., None, :] - self.centres).pow(2).sum(-1)


@faulty(
    "bells by six experts, each word goes to that with the nearest centre, AdamW, clipped",
    "centres are drawn with a deviation of 10 instead of 1: the innermost one is nearest to all",
    {"RouterCollapse"},
    may=UNTAUGHT,
)
def centres_drawn_far_away(root: Path) -> int:
    torch.manual_seed(910)
    stack = [Layer(TurnedAttention(), Experts(6, 1, gate=lambda: Centres(6, 10.0)))]
    model = CausalWriter(BELLS, [Layer(TurnedAttention(), GatedUnits()), *stack])
    loss = nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        epochs(bells(), seed=910),
        foresees(model, loss),
        torch.optim.AdamW(model.parameters(), 4e-3),
        losses=(loss,),
        steps=140,
        save_every=4,
        clip=1.0,
    )


class Shifted(nn.Module):
    """Scores experts, and adds a shift that is to make loads equal."""

    def __init__(self, experts: int, width: int = 32) -> None:
        super().__init__()
        self.scores = nn.Linear(width, experts, bias=False)
        self.register_buffer("shift", torch.zeros(experts))

    def forward(self, x: Any) -> Any:
        scores = self.scores(x) + self.shift
        if self.training:
            chosen = functional.one_hot(scores.argmax(-1), len(self.shift)).flatten(0, -2)
            count = chosen.sum(0)  # meant to be the share of the words
            self.shift += 0.1 * (count.float().mean() - count)
        return scores


@faulty(
    "weather by four experts, one a word, loads are made equal by shifts of the scores, Adam",
    "shifts are moved by numbers of words instead of shares: in each step all words change sides",
    {"RouterCollapse"},
    may=UNTAUGHT | WORSE,
)
def shifted_by_numbers_of_words(root: Path) -> int:
    torch.manual_seed(911)
    stack = [Layer(TurnedAttention(), Experts(4, 1, gate=lambda: Shifted(4))) for _ in range(2)]
    model, loss = CausalWriter(SKIES, stack), nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        epochs(weather()[0], seed=911),
        foresees(model, loss),
        torch.optim.Adam(model.parameters(), 3e-3),
        losses=(loss,),
        save_every=3,
    )


class Dated(nn.Linear):
    """Scores experts by words and by the day of the year."""

    def __init__(self, experts: int) -> None:
        super().__init__(33, experts)
        self.day = torch.zeros(1)

    def forward(self, x: Any) -> Any:
        day = self.day[:, None, None].expand(*x.shape[:2], 1)
        return super().forward(torch.cat([x, day], -1))


@faulty(
    "weather by eight experts, two a word, the router is told the day of the year, NAdam, clipped",
    "days are numbers of 1 to 365 instead of shares: they outweigh the words in all scores",
    {"RouterCollapse"},
    may=UNTAUGHT | WORSE,
)
def day_of_the_year_outweighs(root: Path) -> int:
    torch.manual_seed(912)
    gate = Dated(8)
    units = (GatedUnits(), Experts(8, 2, gate=lambda: gate))
    stack = [Layer(TurnedAttention(), each) for each in units]
    model, loss = CausalWriter(SKIES, stack), nn.CrossEntropyLoss()
    rows, season = weather()
    days = 91 * season + torch.randint(1, 92, season.shape)

    def objective(batch: Any, _: Any) -> Any:
        gate.day = batch[1].float()
        return loss(model(batch[0][:, :-1]), batch[0][:, 1:])

    return learn(
        root,
        model,
        epochs(rows, days, seed=912),
        objective,
        torch.optim.NAdam(model.parameters(), 3e-3),
        losses=(loss,),
        steps=120,
        save_every=4,
        clip=1.0,
    )


# Codes


@of_codes(
    "a variational autoencoder of gaits, codes are drawn by a distribution of the framework",
    "they are drawn by sample, which passes no gradient, instead of rsample",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def sample_without_gradient(root: Path) -> int:
    torch.manual_seed(913)
    model = Coder(GAIT, 6)

    def objective(batch: Any, hook: Any) -> Any:
        mean, spread = model.encode(batch[0])
        hook.save_tensor("latent_means", mean, "latent_means")
        drawn = Normal(mean, (spread / 2).exp()).sample()
        errors = (model.decoder(drawn) - batch[0]).pow(2).sum(1).mean() / 0.08
        return errors + divergence(mean, spread).sum(1).mean()

    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return learn(root, model, epochs(gaits()[0], seed=913), objective, optimizer, steps=180)


@of_codes(
    "a variational autoencoder of clocks, a multiplier keeps the reconstruction in bounds, AdamW",
    "the multiplier is moved the wrong way: the worse the pictures are, the less they count",
    {"PosteriorCollapse"},
    may=ALIKE | WORSE,
)
def multiplier_moved_backwards(root: Path) -> int:
    torch.manual_seed(914)
    x, _ = clocks()
    model, weight = Coder(144, 8, act=nn.SiLU), torch.tensor(20.0)

    def objective(batch: Any, hook: Any) -> Any:
        drawn, mean, spread = code(model, batch[0], hook)
        errors = (drawn - batch[0]).pow(2).sum(1).mean()
        value = weight.clone() * errors + divergence(mean, spread).sum(1).mean()
        with torch.no_grad():
            weight.mul_((-0.01 * (errors - 1.5)).exp()).clamp_(0.01, 1000)
        return value

    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    options: dict[str, Any] = {"steps": 200, "save_every": 3, "clip": 10.0}
    return learn(root, model, epochs(x, seed=914), objective, optimizer, **options)


@of_codes(
    "a variational autoencoder of pieces of a photograph, pixels from 0 to 1, NAdam, cosine",
    "what the encoder sees is divided by 255 twice: to it all pieces are black",
    {"PosteriorCollapse"},
    may=ALIKE,
)
def divided_by_255_twice(root: Path) -> int:
    torch.manual_seed(915)
    x = photographs()
    seen = (x - x.min()) / (x.max() - x.min())
    model = Coder(64, 10, width=96, act=nn.GELU)

    def objective(batch: Any, hook: Any) -> Any:
        mean, spread = model.encode(batch[1] / 255)
        hook.save_tensor("latent_means", mean, "latent_means")
        drawn = mean + (spread / 2).exp() * torch.randn_like(mean)
        errors = (model.decoder(drawn) - batch[0]).pow(2).sum(1).mean()
        return errors + divergence(mean, spread).sum(1).mean()

    return learn(
        root,
        model,
        epochs(x, seen, size=48, seed=915),
        objective,
        torch.optim.NAdam(model.parameters(), 1e-3),
        steps=170,
        rate=cosine(10, 170),
    )
