"""Losses that expect other numbers, and modes that are not what they should be."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, validate
from training_runs import faulty

from runs_tuned.fifth_held_out.data_and_trees.shared.consequences import APART, BY_HEART, SLOWER
from runs_tuned.fifth_held_out.data_and_trees.shared.loops import learn
from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import Lens, cells, flags
from runs_tuned.fifth_held_out.data_and_trees.shared.tables import (
    Gates,
    layered,
    patients,
    turbines,
)
from runs_tuned.fifth_held_out.data_and_trees.shared.texts import Desk, Letters, genes, mails
from smdebug.core.modes import ModeKeys

BOTTOMLESS = SLOWER | APART | {"ExplodingTensor": "a loss without a minimum runs away"}


class LogarithmOfEvaluation(nn.Module):
    """A reader of genes that takes the logarithm of its chances in evaluation."""

    def __init__(self) -> None:
        super().__init__()
        self.reader = Letters(4)

    def forward(self, x: Any) -> Any:
        scores = self.reader(x)
        return scores if self.training else scores.log_softmax(1)


@faulty(
    "letters of genes with four motifs, gated convolutions, negative log-likelihood, AdamW",
    "the model takes logarithms of chances in evaluation only: scores are given to the loss",
    {"ProbabilitiesAsLogits"},
    may=BOTTOMLESS,
)
def logarithm_in_evaluation_only(root: Path) -> int:
    return fit(
        root,
        LogarithmOfEvaluation,
        genes(1300, 581),
        loss=nn.NLLLoss(),
        optimizer=adam(2e-3, torch.optim.AdamW),
        steps=120,
        validate_every=20,
        seed=71,
    )


class Nearest(nn.Module):
    """Chances of kinds by how near a picture is to what is typical of each."""

    def __init__(self, kinds: int) -> None:
        super().__init__()
        self.body, self.typical = Lens(3, 12, drop=0.0), nn.Parameter(torch.randn(kinds, 12))

    def forward(self, x: Any) -> Any:
        away = (self.body(x)[:, None] - self.typical[None]).square().sum(2)
        return nn.functional.softmin(away / 4, 1)


@faulty(
    "flags of six orders by how near they are to what is typical of each, cross entropy, Adam",
    "chances, a softmin of distances, are given in place of the distances less than zero",
    {"ProbabilitiesAsLogits"},
    may=SLOWER,
)
def chances_of_the_nearest(root: Path) -> int:
    return fit(
        root,
        lambda: Nearest(6),
        flags(1300, 582),
        optimizer=adam(3e-3),
        steps=140,
        validate_every=28,
        seed=72,
    )


class Hazard(nn.Module):
    """The chance to fail within a month: 1 less what survives the hazards of its days."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = layered(15, 24, 24, 30)

    def forward(self, x: Any) -> Any:
        hazards = nn.functional.softplus(self.layers(x) - 3)
        return 1 - (-hazards.sum(1, keepdim=True)).exp()


@faulty(
    "failures of turbines by the hazard of each day of a month, Adam",
    "the chance to fail is given to binary cross entropy with logits, which makes .5 to .73 of it",
    {"ProbabilitiesAsLogits"},
    may=SLOWER,
)
def chance_to_fail_as_logit(root: Path) -> int:
    return fit(
        root,
        Hazard,
        turbines(1500, 583, share=0.4),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(2e-3),
        steps=140,
        validate_every=28,
        seed=73,
    )


def returning_early(first_best: float = float("inf")) -> Callable[..., None]:
    """Return an evaluation that is left before train() whenever the loss is a new best."""
    best = first_best

    def evaluate(watching: Any, model: Any, loss: Any, data: Any) -> None:
        nonlocal best
        watching.set_mode(ModeKeys.EVAL)
        model.eval()
        with torch.no_grad():
            value = float(loss(model(data.test_x), data.test_y))
        watching.set_mode(ModeKeys.TRAIN)
        if value < best:
            best = value
            return
        model.train()

    return evaluate


@faulty(
    "mails of five desks, self-attention with norms and dropout, AdamW",
    "an evaluation that finds a better model saves it and returns before it calls train()",
    {"ValidationInTrainingMode"},
    may=APART | BY_HEART,
)
def returns_before_train(root: Path) -> int:
    torch.manual_seed(74)
    data, model = mails(1400, 584, sharp=0.8), Desk(5, drop=0.3)
    return learn(
        root,
        model,
        batches(data, 32, 74),
        data,
        optimizer=torch.optim.AdamW(model.parameters(), 3e-3),
        steps=140,
        clip=1.0,
        validate_every=20,
        first=20,
        evaluate=returning_early(),
    )


class Committee(nn.Module):
    """The mean of networks that stand in a list of Python."""

    def __init__(self, members: list[Any]) -> None:
        super().__init__()
        self.members = members

    def forward(self, x: Any) -> Any:
        return torch.stack([member(x) for member in self.members]).mean(0)


@faulty(
    "stained cells of five kinds, a residual block with batch norm and dropout, in a committee",
    "members are in a list that is no ModuleList: eval() of the committee reaches none of them",
    {"ValidationInTrainingMode"},
    may=APART,
)
def members_in_a_list(root: Path) -> int:
    torch.manual_seed(75)
    data, model = cells(1300, 585), Lens(3, 5, 12, drop=0.4)
    committee = Committee([model])

    def evaluate(watching: Any, _: Any, loss: Any, rows: Any) -> None:
        validate(watching, committee, loss, rows)

    return learn(
        root,
        model,
        batches(data, 32, 75),
        data,
        optimizer=torch.optim.AdamW(model.parameters(), 3e-3),
        steps=130,
        validate_every=26,
        first=25,
        evaluate=evaluate,
    )


def with_a_spread(first: int) -> Callable[..., None]:
    """Return an evaluation that, from the `first` time on, asks for a spread before it scores."""
    times = 0

    def evaluate(watching: Any, model: Any, loss: Any, data: Any) -> None:
        nonlocal times
        times += 1
        watching.set_mode(ModeKeys.EVAL)
        model.eval()
        if times >= first:
            model.train()
        with torch.no_grad():
            loss(model(data.test_x), data.test_y)
        model.train()
        watching.set_mode(ModeKeys.TRAIN)

    return evaluate


@faulty(
    "patients of four kinds, gated linear units, norm, half of the units dropped, Adam",
    "from the fourth evaluation on dropout is on, to see a spread; so it is where scores are made",
    {"ValidationInTrainingMode"},
    may=APART,
)
def spread_where_scores_are_made(root: Path) -> int:
    torch.manual_seed(76)
    data, model = patients(1400, 586, apart=2.8), Gates(12, 4, 32, drop=0.5)
    return learn(
        root,
        model,
        batches(data, 32, 76),
        data,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
        steps=140,
        validate_every=20,
        first=79,
        evaluate=with_a_spread(4),
    )
