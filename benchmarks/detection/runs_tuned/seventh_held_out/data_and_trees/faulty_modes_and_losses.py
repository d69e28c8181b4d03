"""Losses that get chances for scores, and modes that are not those of the step."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training_runs import faulty

from runs_tuned.seventh_held_out.data_and_trees.shared.consequences import (
    BY_HEART,
    ELSEWHERE,
    OFF_SCALE,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.loops import (
    evaluated,
    loader,
    train,
    validation,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.networks import (
    MeanOfWords,
    TextCnn,
    convolutions,
    layers,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.pictures import cells, land
from runs_tuned.seventh_held_out.data_and_trees.shared.tables import faults, leavers
from runs_tuned.seventh_held_out.data_and_trees.shared.texts import WORDS, news


class TwoViews(nn.Module):
    """The mean of the chances that two networks give, one of the picture and one of its mirror."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = convolutions(3, 5, 8), convolutions(3, 5, 8)

    def forward(self, x: Any) -> Any:
        return (self.first(x).softmax(1) + self.second(x.flip(3)).softmax(1)) / 2


@faulty(
    "tiles of land by two networks whose chances are averaged, cross entropy, Adam",
    "CrossEntropyLoss gets the mean of chances, and makes chances of it once more",
    {"ProbabilitiesAsLogits"},
    may=OFF_SCALE,
)
def mean_chance_of_two_views(root: Path) -> int:
    torch.manual_seed(411)
    model, data = TwoViews(), land(1700, 5011, tested=300)
    return train(
        root,
        model,
        loader(data, 32, 411),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=4,
        every=5,
    )


@faulty(
    "customers who leave, weighed by pos_weight, which BCELoss has not, Adam",
    "BCELoss was exchanged for BCEWithLogitsLoss, and the sigmoid at the end of the model stays",
    {"ProbabilitiesAsLogits"},
    may=OFF_SCALE,
)
def sigmoid_of_leavers_stays(root: Path) -> int:
    torch.manual_seed(412)
    model = nn.Sequential(layers(12, 1, norm=True, drop=0.2), nn.Sigmoid())
    data = leavers(2400, 5012)
    return train(
        root,
        model,
        loader(data, 48, 412),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=5,
        loss=nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0)),
    )


@faulty(
    "news of four desks, convolutions over words and softmax, negative log-likelihood, Adam",
    "log_softmax became softmax, so that chances can be shown: NLLLoss gets chances",
    {"ProbabilitiesAsLogits"},
    may=OFF_SCALE,
)
def softmax_that_can_be_shown(root: Path) -> int:
    torch.manual_seed(413)
    model = nn.Sequential(TextCnn(WORDS, 4), nn.Softmax(1))
    data = news(2000, 5013, told=0.4)
    return train(
        root,
        model,
        loader(data, 32, 413),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=4,
        loss=nn.NLLLoss(),
    )


@faulty(
    "blood cells, batch norm, half of the units dropped, AdamW",
    "inference_mode() is taken for eval(): validation drops units, and batch norm learns from it",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE,
)
def inference_mode_for_eval(root: Path) -> int:
    def evaluate(watching: Any, model: Any, loss: Any, tests: Any) -> float:
        with torch.inference_mode():
            return evaluated(watching, model, loss, tests)

    torch.manual_seed(414)
    model, data = convolutions(1, 4, 10, drop=0.5), cells(1900, 5014, tested=300, noise=0.05)
    return train(
        root,
        model,
        loader(data, 32, 414),
        validation(data, 60),
        torch.optim.AdamW(model.parameters(), 3e-3),
        epochs=4,
        every=5,
        evaluate=evaluate,
    )


@faulty(
    "news of six desks, the mean of words, half of the units dropped, evaluated every 20 steps",
    "train() is called as an epoch begins, eval() within it: most steps run without dropout",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE | BY_HEART,
)
def train_at_the_top_of_an_epoch(root: Path) -> int:
    onset = 0

    def evaluate(watching: Any, model: Any, loss: Any, tests: Any) -> float:
        nonlocal onset
        model.eval()
        mean = evaluated(watching, model, loss, tests)
        onset = onset or watching.global_step + 1
        return mean

    torch.manual_seed(415)
    model = MeanOfWords(WORDS, 6, drop=0.5)
    data = news(2800, 5015, desks=6, told=0.35)
    train(
        root,
        model,
        loader(data, 40, 415),
        validation(data),
        torch.optim.Adam(model.parameters(), 4e-3),
        epochs=4,
        validated=20,
        evaluate=evaluate,
        before_epoch=lambda _, trained: trained.train(),
    )
    return onset


@faulty(
    "faults of machines of another hall by a network that knows some, dropout, batch norm, AdamW",
    "it is checked with eval() once loaded, and train() is never called: no unit is dropped",
    {"ValidationInTrainingMode"},
    may=ELSEWHERE | BY_HEART,
)
def checked_before_fine_tuning(root: Path) -> int:
    torch.manual_seed(416)
    model, before = layers(10, 4, width=48, norm=True, drop=0.4), faults(1400, 5016, noise=1.4)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for x, y in loader(before, 32, 5016):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(before.test_x)

    def evaluate(watching: Any, checked: Any, loss: Any, tests: Any) -> float:
        checked.eval()
        return evaluated(watching, checked, loss, tests)

    data = faults(1400, 5026, noise=1.4)
    return train(
        root,
        model,
        loader(data, 32, 416),
        validation(data),
        torch.optim.AdamW(model.parameters(), 1e-3),
        epochs=5,
        evaluate=evaluate,
    )
