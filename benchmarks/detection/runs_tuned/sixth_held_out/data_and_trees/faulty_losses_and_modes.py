"""Losses that expect other numbers, and modes that are not what they should be."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate
from training_runs import faulty

from runs_tuned.sixth_held_out.data_and_trees.shared.consequences import (
    ELSEWHERE,
    LEARNT_OFF,
    OFF_SIZE,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.loops import study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import (
    Encoder,
    Spans,
    Stacked,
    mobile,
    normed,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import blooms, boards, last_apart
from runs_tuned.sixth_held_out.data_and_trees.shared.tables import hives, ore
from runs_tuned.sixth_held_out.data_and_trees.shared.texts import (
    LETTERS,
    WORDS,
    languages,
    opinions,
)
from smdebug.core.modes import ModeKeys


class FamilyAndKind(nn.Module):
    """The chance of a family times that of a kind within it: three families of two."""

    def __init__(self) -> None:
        super().__init__()
        self.see = Stacked(3, 9, 12)

    def forward(self, x: Any) -> Any:
        scores = self.see(x)
        family = scores[:, :3].softmax(1)
        within = scores[:, 3:].unflatten(1, (3, 2)).softmax(2)
        return (family[:, :, None] * within).flatten(1)


@faulty(
    "blooms by the number of petals and then by their heart, a chance for each of six kinds, AdamW",
    "chances of petals and hearts are multiplied, and cross entropy takes the products for scores",
    {"ProbabilitiesAsLogits"},
    may=OFF_SIZE,
)
def petals_times_hearts(root: Path) -> int:
    return fit(
        root,
        FamilyAndKind,
        blooms(1500, 6911),
        optimizer=adam(2e-3, torch.optim.AdamW),
        steps=150,
        validate_every=25,
        seed=701,
    )


class Alike(nn.Module):
    """How much two texts are alike, from 0 to 1: half the cosine of their vectors and a half."""

    def __init__(self) -> None:
        super().__init__()
        self.read = Spans(LETTERS, 24, 24, drop=0.0)

    def forward(self, x: Any) -> Any:
        half = x.shape[1] // 2
        first, second = self.read(x[:, :half]), self.read(x[:, half:])
        return 0.5 + 0.5 * nn.functional.cosine_similarity(first, second)


@faulty(
    "whether two texts are of one language, by the cosine of their vectors, Adam",
    "half the cosine and a half is from 0 to 1, and is given to binary cross entropy with logits",
    {"ProbabilitiesAsLogits"},
    may=OFF_SIZE,
)
def cosine_from_zero_to_one(root: Path) -> int:
    texts = languages(3000, 6912, kinds=4, sharp=2.4, tested=10)
    generator = torch.Generator().manual_seed(69)
    other = torch.randperm(len(texts.x), generator=generator)
    same = texts.y == texts.y[other]
    kept = same | (torch.rand(len(same), generator=generator) < 1 / 3)
    pairs = torch.cat([texts.x, texts.x[other]], 1)[kept]
    return fit(
        root,
        Alike,
        last_apart(pairs, same[kept].float(), 300),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(3e-3),
        steps=150,
        validate_every=25,
        seed=702,
    )


class InSteps(nn.Module):
    """Chances of ordered grades: one score, and three limits that it may exceed."""

    def __init__(self) -> None:
        super().__init__()
        self.score = normed(12, 1, 24)
        self.limits = nn.Parameter(torch.tensor([-1.0, 0.0, 1.0]))

    def forward(self, x: Any) -> Any:
        above = torch.sigmoid(self.score(x) - self.limits.sort().values)
        ends = above.new_ones(len(x), 1), above.new_zeros(len(x), 1)
        return (torch.cat([ends[0], above], 1) - torch.cat([above, ends[1]], 1)).clamp(min=1e-6)


@faulty(
    "four grades of ore in their order, by a score and limits, negative log-likelihood, momentum",
    "the chance of a grade is what lies between two limits; its logarithm was not taken",
    {"ProbabilitiesAsLogits"},
    may=OFF_SIZE,
)
def between_two_limits(root: Path) -> int:
    return fit(
        root,
        InSteps,
        ore(1700, 6913),
        loss=nn.NLLLoss(),
        optimizer=sgd(0.05, momentum=0.9),
        steps=160,
        clip=2.0,
        validate_every=20,
        seed=703,
    )


def with_precise_norms(copied: Any, data: Split, first: int) -> Callable[..., None]:
    """Return an evaluation that, from the `first` time on, measures norms anew before it.

    They are measured by a copy, which no hook watches.
    """
    times = 0

    def evaluate(watching: Any, model: Any, loss: Any, rows: Split) -> None:
        nonlocal times
        times += 1
        model.eval()
        if times >= first:
            copied.load_state_dict(model.state_dict())
            copied.train()
            with torch.no_grad():
                for _, (x, _) in zip(range(6), batches(data, 64, times), strict=False):
                    copied(x)
            model.load_state_dict(copied.state_dict())
            model.train(copied.training)
        validate(watching, model, loss, rows, is_mode_set=False)

    return evaluate


@faulty(
    "sawn boards of four kinds, inverted steps with batch norm and dropout, NAdam",
    "from the third evaluation on norms are measured anew before it, which ends in training mode",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE,
)
def norms_measured_anew(root: Path) -> int:
    torch.manual_seed(704)
    model, data = mobile(1, 4, 14, 0.3), boards(1500, 6914)
    return study(
        root,
        model,
        batches(data, 32, 704),
        data,
        torch.optim.NAdam(model.parameters(), 2e-3),
        steps=150,
        validated=20,
        onset_at=59,
        examine=with_precise_norms(copy.deepcopy(model), data, 3),
    )


@faulty(
    "opinions by self-attention, layer norms, a third of the units dropped, AdamW",
    "the mode to go back to is noted after eval(): from the first evaluation on nothing is dropped",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE | LEARNT_OFF,
)
def mode_noted_too_late(root: Path) -> int:
    def evaluate(watching: Any, model: Any, loss: Any, data: Split) -> None:
        watching.set_mode(ModeKeys.EVAL)
        model.eval()
        before = model.training
        with torch.no_grad():
            loss(model(data.test_x), data.test_y)
        model.train(before)
        watching.set_mode(ModeKeys.TRAIN)

    torch.manual_seed(705)
    model, data = Encoder(WORDS, 3, drop=0.3), opinions(2400, 6915)
    return study(
        root,
        model,
        batches(data, 32, 705),
        data,
        torch.optim.AdamW(model.parameters(), 2e-3),
        steps=150,
        clip=1.0,
        validated=25,
        onset_at=25,
        examine=evaluate,
    )


class HeldStill(nn.Module):
    """A network whose norms are held still in training."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def train(self, mode: bool = True) -> Any:
        """Set the mode; then set norms to evaluation, and with them all else."""
        super().train(mode)
        return self.eval() if mode else self

    def forward(self, x: Any) -> Any:
        return self.inner(x)


@faulty(
    "hives of another country by a network that knows some, norms held still, half dropped, AdamW",
    "train() holds norms still by eval() of the whole network: nothing is dropped in training",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE | LEARNT_OFF,
)
def held_still_as_a_whole(root: Path) -> int:
    torch.manual_seed(706)
    inner, before = normed(14, 1, 48, 0.5), hives(1500, 6916)
    loss = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(inner.parameters(), 3e-3)
    for _, (x, y) in zip(range(10), batches(before, 32, 706), strict=False):
        optimizer.zero_grad()
        loss(inner(x), y).backward()
        optimizer.step()
    model, data = HeldStill(inner), hives(900, 6917, noise=0.5)
    model.train()
    return study(
        root,
        model,
        batches(data, 32, 706),
        data,
        torch.optim.AdamW(model.parameters(), 1e-3),
        loss=loss,
        steps=140,
        validated=20,
    )
