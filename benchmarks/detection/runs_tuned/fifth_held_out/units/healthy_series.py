"""Healthy trainings of series: tremors, batteries, and errands in words."""

import itertools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.fifth_held_out.units.shared.pictures import (
    TREMORS,
    Gauge,
    Trace,
    batteries,
    tremors,
)
from runs_tuned.fifth_held_out.units.shared.tables import VOCABULARY, Errand, errands, quarters


@healthy("tremors by convolutions with group norm and leaky units, momentum, the rate falls twice")
def tremors_by_leaky_units(root: Path) -> int:
    make = lambda: Trace(norm=lambda width: nn.GroupNorm(4, width), act=lambda: nn.LeakyReLU(0.1))
    stairs = lambda step: 0.2 ** ((step > 90) + (step > 130))
    optimizer = sgd(0.02, momentum=0.9, weight_decay=1e-4)
    return fit(root, make, tremors(), optimizer=optimizer, steps=160, schedule=stairs, seed=21)


class Gating(nn.Module):
    """Dilated convolutions through tanh, gated by a sigmoid, added to what they see."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem, self.head = nn.Conv1d(2, width, 8, 4, 2), nn.Linear(width, TREMORS)
        pairs = [nn.Conv1d(width, 2 * width, 3, padding=far, dilation=far) for far in (1, 2, 4, 1)]
        self.pairs = nn.ModuleList(pairs)
        self.outs = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in pairs)
        self.tanh, self.gate = nn.Tanh(), nn.Sigmoid()

    def forward(self, x: Any) -> Any:
        x, total = self.stem(x), 0
        for pair, out in zip(self.pairs, self.outs, strict=True):
            signal, gate = pair(x).chunk(2, 1)
            said = out(self.tanh(signal) * self.gate(gate))
            x, total = x + said, total + said
        return self.head(total.relu().mean(2))


@healthy("tremors by gated dilated convolutions, Adam, clipped, 60 rows validate")
def tremors_by_gates(root: Path) -> int:
    whole = tremors(1100, 1.6, 1041)
    data = type(whole)(whole.x, whole.y, whole.test_x[:60], whole.test_y[:60])
    return fit(root, Gating, data, optimizer=adam(4e-3), steps=160, clip=1.0, save_every=3, seed=22)


class Frames(nn.Module):
    """A bidirectional recurrent layer over twelve frames of a tremor."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(16, 24, batch_first=True, bidirectional=True)
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(48, TREMORS)

    def forward(self, x: Any) -> Any:
        frames = x.unflatten(2, (12, 8)).transpose(1, 2).flatten(2)
        return self.head(self.drop(self.cell(frames)[0].mean(1)))


@healthy("tremors in twelve frames by a bidirectional GRU, RMSprop, clipped")
def tremors_by_frames(root: Path) -> int:
    optimizer = adam(3e-3, torch.optim.RMSprop)
    data = tremors(1100, 1.4, 1042)
    return fit(root, Frames, data, optimizer=optimizer, steps=180, clip=1.0, seed=23)


@healthy("charge of batteries at each time by an LSTM, Adam, the rate falls exponentially")
def batteries_by_lstm(root: Path) -> int:
    fading = lambda step: 0.985**step
    return fit(
        root,
        lambda: Gauge(nn.LSTM),
        batteries(),
        loss=nn.MSELoss(),
        optimizer=adam(1.5e-2),
        steps=160,
        clip=1.0,
        schedule=fading,
        seed=24,
    )


class Causal(nn.Module):
    """Convolutions that only see the past, with weight norm, added to what they see."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(2, width), nn.Linear(width, 1)
        normed = nn.utils.parametrizations.weight_norm
        self.parts = nn.ModuleList(
            normed(nn.Conv1d(width, width, 3, dilation=far)) for far in (1, 2, 4, 8)
        )
        self.acts = nn.ModuleList(nn.ReLU() for _ in self.parts)

    def forward(self, x: Any) -> Any:
        x = self.stem(x).transpose(1, 2)
        for part, act in zip(self.parts, self.acts, strict=True):
            past = nn.functional.pad(x, (2 * part.dilation[0], 0))
            x = x + act(part(past))
        return self.head(x.transpose(1, 2))


@healthy("charge of batteries by convolutions of the past with weight norm, AdamW, L1 loss")
def batteries_by_the_past(root: Path) -> int:
    return fit(
        root,
        Causal,
        batteries(700, 30, 1043),
        loss=nn.L1Loss(),
        optimizer=adam(4e-3, torch.optim.AdamW),
        steps=160,
        save_every=3,
        seed=25,
    )


class Slow(nn.Module):
    """A recurrent cell with one gate, by hand, and a layer norm behind it."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.keep, self.new = nn.Linear(2 + width, width), nn.Linear(2 + width, width)
        self.gate, self.tanh = nn.Sigmoid(), nn.Tanh()
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1)
        nn.init.constant_(self.keep.bias, 1.0)
        self.width = width

    def forward(self, x: Any) -> Any:
        state, states = x.new_zeros(len(x), self.width), []
        for at in range(x.shape[1]):
            joined = torch.cat([x[:, at], state], 1)
            gate = self.gate(self.keep(joined))
            state = gate * state + (1 - gate) * self.tanh(self.new(joined))
            states.append(state)
        return self.head(self.norm(torch.stack(states, 1)))


@healthy("charge of batteries by a cell with one gate, layer norm, momentum, warmed up, clipped")
def batteries_by_one_gate(root: Path) -> int:
    return fit(
        root,
        Slow,
        batteries(600, 20, 1044),
        loss=nn.MSELoss(),
        optimizer=sgd(0.1, momentum=0.9),
        steps=130,
        schedule=lambda step: min((step + 1) / 20, 1),
        clip=1.0,
        save_every=3,
        seed=26,
    )


@healthy("where errands lead to by an LSTM over words, Adam, clipped, batches of 64")
def errands_by_lstm(root: Path) -> int:
    return fit(
        root,
        lambda: Errand(width=40),
        errands(1800, 4),
        loss=nn.MSELoss(),
        optimizer=adam(1e-2),
        steps=220,
        batch=64,
        clip=1.0,
        schedule=lambda step: 1.0 if step < 150 else 0.2,
        seed=27,
    )


class Reading(nn.Module):
    """Two encoder layers of a transformer with norms first, and the mean over all words."""

    def __init__(self, width: int = 32, length: int = 12) -> None:
        super().__init__()
        self.embedded = nn.Embedding(VOCABULARY, width)
        self.places = nn.Parameter(0.1 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, 0.05, "gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, words: Any) -> Any:
        return self.head(self.norm(self.body(self.embedded(words) + self.places)).mean(1))


@healthy("where errands lead to by a small transformer, AdamW, warmed up, the rate falls linearly")
def errands_by_attention(root: Path) -> int:
    return fit(
        root,
        Reading,
        errands(1800, 4, 1045),
        loss=nn.MSELoss(),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.01),
        steps=200,
        batch=48,
        schedule=lambda step: min((step + 1) / 20, (210 - step) / 150, 1),
        clip=1.0,
        save_every=4,
        seed=28,
    )


class Triples(nn.Module):
    """Convolutions over three words and one, the sum over phrases, and two layers."""

    def __init__(self, outs: int = 4) -> None:
        super().__init__()
        self.embedded = nn.Embedding(VOCABULARY, 12)
        self.three, self.one = nn.Conv1d(12, 48, 3, 3), nn.Conv1d(48, 32, 1)
        self.acts = nn.ModuleList(nn.ReLU() for _ in range(3))
        self.hidden, self.head = nn.Linear(32, 32), nn.Linear(32, outs)

    def forward(self, words: Any) -> Any:
        x = self.embedded(words).transpose(1, 2)
        for act, layer in zip(self.acts, (self.three, self.one), strict=False):
            x = act(layer(x))
        return self.head(self.acts[2](self.hidden(x.mean(2))))


@healthy(
    "the quarter that errands lead to by convolutions over phrases, Muon for matrices and AdamW"
)
def errands_by_two_optimizers(root: Path) -> int:
    torch.manual_seed(29)
    data, loss, model = quarters(errands(1600, 5, 1046)), nn.CrossEntropyLoss(), Triples()
    matrices = [model.hidden.weight]
    others = [one for one in model.parameters() if one is not matrices[0]]
    optimizers = (
        torch.optim.Muon(matrices, 0.01, weight_decay=0.01),
        torch.optim.AdamW(others, 4e-3, weight_decay=0.01),
    )
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(itertools.count(), batches(data, 48, 29), strict=False):
            if number == 180:
                break
            for optimizer in optimizers:
                optimizer.zero_grad()
            loss(model(x), y).backward()
            for optimizer in optimizers:
                optimizer.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0
