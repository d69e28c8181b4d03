"""Healthy trainings that tag, hear, translate and forecast sequences."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.third_held_out.sequences.shared.decoders import Composer, Latent
from runs_tuned.third_held_out.sequences.shared.lessons import (
    NAMES,
    NOTES,
    SPOKEN,
    TAGS,
    judged,
    named,
    notes,
    spoken,
)
from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach, warmed
from runs_tuned.third_held_out.sequences.shared.readers import Experts, Layer, balance_of
from runs_tuned.third_held_out.sequences.shared.shapes import stack, tides
from runs_tuned.third_held_out.sequences.shared.speller import Speller
from runs_tuned.third_held_out.sequences.shared.texts import spelled, windows

healthy = training_runs.healthy
of_language = functools.partial(healthy, kind="language_model")


class Tagger(nn.Module):
    """Scores of tags by an LSTM in both directions, and of each tag after another (CRF)."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.dropout = nn.Embedding(NAMES, 24), nn.Dropout(0.2)
        self.cells = nn.LSTM(24, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, TAGS)
        self.moves = nn.Parameter(torch.zeros(TAGS, TAGS))

    def forward(self, x: Any) -> Any:
        return self.head(self.cells(self.dropout(self.embedding(x)))[0])

    def nats(self, x: Any, tags: Any) -> Any:
        """Return the negative logarithm of the chance of tags, a word."""
        scores = self(x)
        path = scores.gather(-1, tags[..., None]).sum((1, 2))
        path = path + self.moves[tags[:, :-1], tags[:, 1:]].sum(1)
        total = scores[:, 0]
        for at in range(1, x.shape[1]):
            total = (total[:, :, None] + self.moves).logsumexp(1) + scores[:, at]
        return (total.logsumexp(1) - path).mean() / x.shape[1]


@of_language("names in sentences, an LSTM in both directions and chances of moves (CRF), AdaDelta")
def names_by_moves(root: Path) -> int:
    torch.manual_seed(420)
    model = Tagger()
    optimizer = torch.optim.Adadelta(model.parameters(), 2.0)
    return teach(
        root,
        model,
        dealt(*named(), size=20, seed=420),
        optimizer,
        objective=lambda batch, _: model.nats(*batch),
        steps=150,
        save_every=3,
        clip=5.0,
    )


class Ear(nn.Module):
    """Convolutions and a GRU of frames; scores of letters and the blank."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(10, 32, 3, padding=1)
        self.norm = nn.GroupNorm(4, 32)
        self.cells = nn.GRU(32, 24, batch_first=True, bidirectional=True)
        self.head = nn.Linear(48, SPOKEN)

    def forward(self, x: Any) -> Any:
        found = functional.relu(self.norm(self.conv(x.transpose(1, 2)))).transpose(1, 2)
        return self.head(self.cells(found)[0])


@healthy("letters that are spoken, CTC: blanks alone at first, one cycle of AdamW's rate, clipped")
def letters_heard(root: Path) -> int:
    torch.manual_seed(421)
    model = Ear()

    def objective(batch: Any, _: Any) -> Any:
        x, y = batch
        scores = model(x).log_softmax(-1).transpose(0, 1)
        long = torch.full((len(x),), x.shape[1])
        return functional.ctc_loss(scores, y.clamp(min=0), long, (y > 0).sum(1))

    peak = lambda step: 0.1 + 0.9 * min(step / 50, (180 - step) / 130)
    return teach(
        root,
        model,
        dealt(*spoken(), seed=421),
        torch.optim.AdamW(model.parameters(), 8e-3),
        objective=objective,
        schedule=peak,
        steps=180,
        save_every=2,
        clip=5.0,
    )


@of_language("words spelled in reverse by GRUs, from step 60 on ever more after their own letters")
def spelled_after_its_own(root: Path) -> int:
    torch.manual_seed(422)
    model = Speller()
    source, target = spelled()
    x, y = target[:, :-1], target[:, 1:]

    def change(step: int) -> None:
        model.own = min(0.2, max(0, step - 60) / 500)

    return teach(
        root,
        model,
        dealt(source[:1100], x[:1100], y[:1100], size=32, seed=422),
        torch.optim.Adam(model.parameters(), 8e-3),
        loss=nn.CrossEntropyLoss(ignore_index=0),
        change=change,
        steps=170,
        save_every=3,
        clip=1.0,
        held_out=(source[1100:], x[1100:], y[1100:]),
    )


@of_language("which of two melodies was changed less: a reward for each, the difference is judged")
def rewards_of_pairs(root: Path) -> int:
    torch.manual_seed(423)
    body = Composer(NOTES, [Layer(Latent(), stack(32, 64, 32)) for _ in range(2)], outs=1)

    def objective(batch: Any, _: Any) -> Any:
        better, worse = (body(rows).mean((1, 2)) for rows in batch)
        return -functional.logsigmoid(better - worse).mean()

    return teach(
        root,
        body,
        dealt(*judged(), size=24, seed=423),
        torch.optim.AdamW(body.parameters(), 2e-3, weight_decay=0.05),
        objective=objective,
        schedule=warmed(10, 150),
        steps=150,
        save_every=3,
        clip=1.0,
    )


# Experts


@of_language("melodies, twelve small experts, three a note, and one for all; scores are kept small")
def notes_by_small_experts(root: Path) -> int:
    torch.manual_seed(424)
    units = [Experts(12, 3, inner=12, shared=True) for _ in range(2)]
    model = Composer(NOTES, [Layer(Latent(), each) for each in units])
    scores = list[Any]()
    for each in units:
        each.router.register_forward_hook(lambda _, __, found: scores.append(found))
    loss = nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        scores.clear()
        value = loss(model(batch[0]), batch[1]) + 0.02 * balance_of(model)
        return value + 1e-3 * sum(each.logsumexp(-1).pow(2).mean() for each in scores)

    return teach(
        root,
        model,
        dealt(*windows(notes()), size=12, seed=424),
        torch.optim.AdamW(model.parameters(), 4e-3, betas=(0.9, 0.98)),
        objective=objective,
        schedule=warmed(8, 100, 0.1),
        steps=100,
        save_every=2,
        clip=1.0,
    )


@healthy("tides foreseen with their spread by a GRU and four experts: a loss that passes zero")
def tides_with_spread(root: Path) -> int:
    class Forecast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cells = nn.GRU(3, 32, batch_first=True)
            self.units, self.norm = Experts(4, 2, noise=0.2), nn.LayerNorm(32)
            self.head = nn.Linear(32, 12)

        def forward(self, x: Any) -> Any:
            found = self.norm(self.cells(x)[0][:, -1:])
            return self.head((found + self.units(found))[:, 0]).chunk(2, -1)

    torch.manual_seed(425)
    model = Forecast()

    def objective(batch: Any, _: Any) -> Any:
        mean, spread = model(batch[0])
        value = functional.gaussian_nll_loss(mean, batch[1], functional.softplus(spread) ** 2)
        return value + 0.02 * balance_of(model)

    optimizer = torch.optim.NAdam(model.parameters(), 4e-3)
    return teach(
        root,
        model,
        dealt(*tides(), size=40, seed=425),
        optimizer,
        objective=objective,
        steps=180,
        save_every=2,
        clip=2.0,
    )
