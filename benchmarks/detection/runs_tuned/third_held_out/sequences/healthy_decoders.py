"""Healthy trainings of decoders of other makes, and of what is learnt after a first training."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.third_held_out.sequences.shared.decoders import (
    Adapted,
    Beside,
    Composer,
    Gates,
    Latent,
    OneKey,
    prepared,
)
from runs_tuned.third_held_out.sequences.shared.lessons import (
    LETTERS,
    NOTES,
    cut,
    judged,
    lines,
    notes,
)
from runs_tuned.third_held_out.sequences.shared.loops import dealt, teach
from runs_tuned.third_held_out.sequences.shared.readers import Heads, Layer, Writer
from runs_tuned.third_held_out.sequences.shared.texts import GENES, genes, windows

healthy = functools.partial(training_runs.healthy, kind="language_model")


class Both:
    """Two optimizers, each of some of the parameters."""

    def __init__(self, *parts: Any) -> None:
        self.parts = parts
        self.param_groups = [group for part in parts for group in part.param_groups]

    def step(self) -> None:
        for part in self.parts:
            part.step()

    def zero_grad(self) -> None:
        for part in self.parts:
            part.zero_grad()


@healthy("melodies, keys and values made from ten numbers of each note, Muon beside AdamW")
def notes_by_latents(root: Path) -> int:
    torch.manual_seed(410)
    model = Composer(NOTES, [Beside(32, Latent(), 64) for _ in range(2)])
    inner = [one for one in model.blocks.parameters() if one.ndim == 2]
    others = [one for one in model.parameters() if all(one is not other for other in inner)]
    optimizer = Both(
        torch.optim.Muon(inner, 0.01, weight_decay=0.05), torch.optim.AdamW(others, 3e-3)
    )
    x, y = windows(notes())
    return teach(
        root,
        model,
        dealt(x[:900], y[:900], seed=410),
        optimizer,
        schedule=lambda step: min(1.0, (step + 1) / 10, (150 - step) / 60),
        steps=150,
        save_every=3,
        held_out=(x[900:], y[900:]),
    )


class Carried(nn.Module):
    """Two LSTM layers that go on where the last piece of the log ended."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(LETTERS), 24)
        self.cells = nn.LSTM(24, 40, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(40, len(LETTERS))
        self.state: Any = None

    def forward(self, x: Any) -> Any:
        found, state = self.cells(self.embedding(x), self.state if self.training else None)
        if self.training:
            self.state = tuple(part.detach() for part in state)
        return self.head(found).transpose(1, 2)


@healthy("lines of a log, in order, an LSTM whose state is carried from piece to piece, clipped")
def log_with_carried_state(root: Path) -> int:
    torch.manual_seed(411)
    model = Carried()
    x, y = cut(lines(), 20)
    x, y, rest = x[:1440], y[:1440], (x[1440:1500], y[1440:1500])
    read = lambda part: part.view(12, 120, 20).transpose(0, 1)
    batches = zip(read(x), read(y), strict=True)
    optimizer = torch.optim.RMSprop(model.parameters(), 4e-3)
    return teach(root, model, batches, optimizer, steps=120, save_every=2, clip=0.5, held_out=rest)


@healthy("melodies, one key for three queries, norms and a cap of scores, a loss of large logits")
def notes_with_capped_scores(root: Path) -> int:
    torch.manual_seed(412)
    blocks = [Beside(36, OneKey(), 72, 0.05) for _ in range(2)]
    model = Composer(NOTES, blocks, 36)

    def objective(batch: Any, hook: Any) -> Any:
        scores = model(batch[0])
        large = scores.logsumexp(1).pow(2).mean()
        hook.save_scalar("z_loss", large)
        return functional.cross_entropy(scores, batch[1]) + 1e-4 * large

    stable = lambda step: min(1.0, (step + 1) / 12, 0.05 + max(0, 170 - step) / 50)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, betas=(0.9, 0.95), weight_decay=0.1)
    return teach(
        root,
        model,
        dealt(*windows(notes()), size=20, seed=412),
        optimizer,
        objective=objective,
        schedule=stable,
        steps=170,
        save_every=2,
        clip=1.0,
        half=torch.bfloat16,
    )


@healthy("lines of a log by gates that see two letters, Adam looks ahead for five steps")
def log_looks_ahead(root: Path) -> int:
    torch.manual_seed(413)
    gates = [Layer(Gates(32), nn.Sequential(nn.Linear(32, 48), nn.GELU(), nn.Linear(48, 32)))]
    model = Composer(len(LETTERS), gates)
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    slow = [one.detach().clone() for one in model.parameters()]

    def after(step: int) -> None:
        if step % 5 == 4:
            with torch.no_grad():
                for kept, fast in zip(slow, model.parameters(), strict=True):
                    fast.copy_(kept.lerp_(fast, 0.6))

    x, y = cut(lines(), 24)
    return teach(
        root,
        model,
        dealt(x[:1200], y[:1200], seed=413),
        optimizer,
        after=after,
        steps=160,
        save_every=4,
        held_out=(x[1200:1280], y[1200:1280]),
    )


@healthy("a trained decoder goes on with other codons, updates of low rank of queries and values")
def low_rank_of_queries(root: Path) -> int:
    torch.manual_seed(414)
    model = prepared(Writer(GENES), dealt(*windows(genes()), seed=414), 120)
    model.requires_grad_(requires_grad=False)
    for layer in model.layers:
        layer.mixer.query, layer.mixer.value = (
            Adapted(layer.mixer.query, 6),
            Adapted(layer.mixer.value, 6),
        )
    model.scores = Adapted(model.scores, 6)
    learnt = [one for one in model.parameters() if one.requires_grad]
    x, y = windows(genes(seed=406))
    falls = lambda step: min(1.0, (step + 1) / 8) * (1 - step / 160)
    return teach(
        root,
        model,
        dealt(x[:800], y[:800], seed=415),
        torch.optim.AdamW(learnt, 8e-3, weight_decay=0.0),
        schedule=falls,
        steps=150,
        save_every=3,
        held_out=(x[800:], y[800:]),
    )


class Prompted(nn.Module):
    """A frozen body after six learnt states, with a new vocabulary."""

    def __init__(self, body: Any) -> None:
        super().__init__()
        self.body = body.requires_grad_(requires_grad=False)
        self.prompt = nn.Parameter(0.3 * torch.randn(1, 6, 32))
        self.embed, self.head = nn.Embedding(NOTES, 32), nn.Linear(32, NOTES)

    def forward(self, x: Any) -> Any:
        states = torch.cat([self.prompt.expand(len(x), -1, -1), self.embed(x)], 1)
        return self.head(self.body.read(states)[:, 6:]).transpose(1, 2)


@healthy("a frozen decoder reads six learnt states first, its notes have other numbers now")
def learnt_prompt(root: Path) -> int:
    torch.manual_seed(416)
    blocks = [Layer(Heads(), nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)))]
    batches = dealt(*windows(notes()), seed=416)
    model = Prompted(prepared(Composer(NOTES, blocks), batches, 150))
    x, y = windows(torch.randperm(NOTES)[notes(seed=407)])
    learnt = [one for one in model.parameters() if one.requires_grad]
    return teach(
        root,
        model,
        dealt(x[:900], y[:900], size=24, seed=417),
        torch.optim.Adam(learnt, 6e-3),
        steps=140,
        save_every=2,
        held_out=(x[900:], y[900:]),
    )


def chance_of(model: Any, rows: Any) -> Any:
    """Return the logarithm of the chance of each row."""
    x, y = windows(rows)
    return -functional.cross_entropy(model(x), y, reduction="none").sum(1)


@healthy("a trained decoder of melodies learns which of two is preferred (DPO), low rate, clipped")
def preferred_melodies(root: Path) -> int:
    torch.manual_seed(418)
    model = Composer(NOTES, [Beside(32, Latent(), 64) for _ in range(2)])
    model = prepared(model, dealt(*windows(notes()), seed=418), 150)
    before = copy.deepcopy(model)

    def objective(batch: Any, hook: Any) -> Any:
        with torch.no_grad():
            known = [chance_of(before, rows) for rows in batch]
        gains = [chance_of(model, rows) - old for rows, old in zip(batch, known, strict=True)]
        hook.save_scalar("rewards/margins", (gains[0] - gains[1]).mean())
        return -functional.logsigmoid(0.1 * (gains[0] - gains[1])).mean()

    return teach(
        root,
        model,
        dealt(*judged(), size=20, seed=418),
        torch.optim.RMSprop(model.parameters(), 3e-4),
        objective=objective,
        schedule=lambda step: min(1.0, (step + 1) / 15),
        steps=130,
        save_every=2,
        clip=10.0,
    )
