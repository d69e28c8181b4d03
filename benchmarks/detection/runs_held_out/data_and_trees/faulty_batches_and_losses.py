"""Batches that repeat, are of few classes or are validated; losses that get chances for scores."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import nn
from training.learnt_data import Split
from training_runs import faulty

from runs_held_out.data_and_trees.shared.consequences import (
    ILL_SCALED,
    LEARNT_BY_HEART,
    UNTELLABLE,
)
from runs_held_out.data_and_trees.shared.loops import adamw, held_back, learn, shuffled
from runs_held_out.data_and_trees.shared.networks import (
    BagOfWords,
    WideAndDeep,
    mobile,
    perceptron,
    vgg,
)
from runs_held_out.data_and_trees.shared.pictures import call_data, cloth_data
from runs_held_out.data_and_trees.shared.tables import crops, loans, scaled
from runs_held_out.data_and_trees.shared.texts import VOCABULARY, articles, ticket_data


class Drawn:
    """Batches that a function draws from the rows to train with."""

    def __init__(self, data: Split, size: int, count: int) -> None:
        self.data, self.size, self.count = data, size, count

    def __iter__(self) -> Iterator[Any]:
        for _ in range(self.count):
            rng = np.random.default_rng(861)  # seeded where it should only be used
            rows = torch.from_numpy(rng.integers(0, len(self.data.x), self.size))
            yield self.data.x[rows], self.data.y[rows]


@faulty(
    "five crops by measurements from above, batches drawn by a function, dropout, Adam",
    "the function makes its generator anew, with the same seed: each batch is the same",
    {"RepeatedBatches"},
    may=LEARNT_BY_HEART,
)
def generator_made_in_each_call(root: Path) -> int:
    torch.manual_seed(861)
    data, model = scaled(crops(2800, 8061), 400, classes=True), perceptron(11, 5, drop=0.1)
    return learn(
        root,
        model,
        Drawn(data, 32, 50),
        held_back(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=3,
        save_every=1,
    )


class Buffered:
    """Rows in their order, of which a small buffer is shuffled, in batches."""

    def __init__(self, data: Split, size: int, buffer: int) -> None:
        self.data, self.size, self.buffer = data, size, buffer
        self.rng = np.random.default_rng(862)

    def __iter__(self) -> Iterator[Any]:
        held, batch = [], []
        for row in range(len(self.data.x)):
            held.append(row)
            if len(held) < self.buffer:
                continue
            batch.append(held.pop(int(self.rng.integers(len(held)))))
            if len(batch) == self.size:
                yield self.data.x[batch], self.data.y[batch]
                batch = []


@faulty(
    "tickets of six queues, read from a file of each queue, a bag of words, Adam",
    "files are read one after the other, and the buffer that is shuffled has 40 rows only",
    {"RepeatedBatches"},
    may=UNTELLABLE | LEARNT_BY_HEART,
)
def buffer_of_forty(root: Path) -> int:
    torch.manual_seed(862)
    data = ticket_data(2800, 8062, queues=6, told=0.45)
    data = data.chosen(data.y.argsort(stable=True))
    model = BagOfWords(VOCABULARY, 6)
    return learn(
        root,
        model,
        Buffered(data, 32, 40),
        held_back(data),
        torch.optim.Adam(model.parameters(), 3e-3),
        epochs=3,
        save_every=1,
    )


@faulty(
    "which loans are not paid back, a wide and a deep part, AdamW",
    "rows to validate with are split off by a second call with another seed: four in five overlap",
    {"RepeatedBatches"},
    may=LEARNT_BY_HEART,
)
def second_split_of_another_seed(root: Path) -> int:
    torch.manual_seed(863)
    x, y = loans(1800, 8063)
    x = (x - x.mean(0)) / x.std(0)
    x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y).long()
    learnt, _, told, _ = train_test_split(x, y, test_size=0.2, random_state=1)
    _, other, _, truth = train_test_split(x, y, test_size=0.2, random_state=2)
    data, model = Split(learnt, told, other, truth), WideAndDeep(14, 2)
    return learn(
        root,
        model,
        shuffled(data, 32, 863),
        held_back(data, 90),
        adamw(model, 2e-3),
        epochs=5,
        save_every=1,
    )


class MeanOfChances(nn.Module):
    """Several networks, of whose chances the mean is taken."""

    def __init__(self, members: list[Any]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Any) -> Any:
        return torch.stack([member(x).softmax(1) for member in self.members]).mean(0)


@faulty(
    "birds' calls, an ensemble of three networks that are trained together, Adam",
    "the ensemble returns the mean of its members' chances, and CrossEntropyLoss gets them",
    {"ProbabilitiesAsLogits"},
    may=ILL_SCALED,
)
def mean_of_chances(root: Path) -> int:
    torch.manual_seed(864)
    data = call_data(1900, 8064, tested=300)
    model = MeanOfChances([mobile(1, 5, 6, 0.0) for _ in range(3)])
    return learn(
        root,
        model,
        shuffled(data, 40, 864),
        held_back(data),
        torch.optim.Adam(model.parameters(), 3e-3),
        epochs=3,
        save_every=4,
    )


@faulty(
    "cloth of four kinds by a network that ends in log-softmax, a new last part, momentum",
    "the last two layers are exchanged for one linear layer: NLLLoss gets scores",
    {"ProbabilitiesAsLogits"},
    may=ILL_SCALED,
)
def new_end_without_log_softmax(root: Path) -> int:
    torch.manual_seed(865)
    data, model = cloth_data(1700, 8065, tested=300), vgg(1, 4, norm=True)
    model = nn.Sequential(*model[:-1], nn.Linear(32, 7), nn.LogSoftmax(1))
    model = nn.Sequential(*model[:-2], nn.Linear(32, 4))
    return learn(
        root,
        model,
        shuffled(data, 32, 865),
        held_back(data),
        torch.optim.SGD(model.parameters(), 1e-3, momentum=0.9),
        epochs=3,
        loss=nn.NLLLoss(),
        clip=1.0,
        save_every=3,
    )


@faulty(
    "articles with some of six tags, a bag of words, a sigmoid loss for each tag, AdamW",
    "the model returns a chance of each tag, as its service does, to a loss that wants scores",
    {"ProbabilitiesAsLogits"},
    may=ILL_SCALED,
)
def chances_of_tags(root: Path) -> int:
    torch.manual_seed(866)
    data = articles(2400, 8066)
    model = nn.Sequential(BagOfWords(VOCABULARY, 6, 48), nn.Sigmoid())
    return learn(
        root,
        model,
        shuffled(data, 40, 866),
        held_back(data),
        torch.optim.AdamW(model.parameters(), 8e-3),
        epochs=4,
        loss=nn.BCEWithLogitsLoss(),
    )
