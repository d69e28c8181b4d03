"""Batches: that come class by class, over and over, or once more to validate with."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import batches, sgd, validate, watched
from training_runs import faulty

from runs_tuned.fourth_held_out.data_and_trees.shared.consequences import ELSEWHERE, LEARNT
from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import Viewer, tiles
from runs_tuned.fourth_held_out.data_and_trees.shared.tables import Ports, flights
from runs_tuned.fourth_held_out.data_and_trees.shared.texts import Cook, recipes

FORGOTTEN = ELSEWHERE | {
    "Overfit": "each file is learnt while the last one is forgotten",
    "VanishingGradient": "gradients are tiny once a file is known",
    "WeightUpdateRatio": "updates are tiny once a file is known",
}


def learn(root: Path, model: Any, data: Split, rate: float, fed: Iterator[Any], first: int) -> int:
    """Learn 140 batches, save each; return the global step of the `first` faulty one."""
    torch.set_num_threads(1)
    loss, onset = nn.CrossEntropyLoss(), 0
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(140), fed, strict=False):
            if step == first:
                onset = watching.global_step + 1 if first else 0
            optimizer.zero_grad()
            loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return onset


def through_a_buffer(data: Split, size: int, batch: int) -> Iterator[Any]:
    """Yield batches drawn from a buffer of rows that is filled file by file, one for each class."""
    generator = torch.Generator().manual_seed(51)
    while True:
        order = data.y.argsort(stable=True).tolist()
        buffer, order = order[:size], order[size:]
        while len(buffer) >= batch:
            drawn = torch.randperm(len(buffer), generator=generator)[:batch].tolist()
            rows = [buffer[place] for place in drawn]
            buffer = [row for row in buffer if row not in set(rows)] + order[:batch]
            order = order[batch:]
            yield data.x[rows], data.y[rows]


@faulty(
    "tiles of six kinds, convolutions with group norm, a file for each kind",
    "the buffer that shuffles holds 40 rows, a file 200: one or two kinds in a batch",
    {"RepeatedBatches"},
    may=FORGOTTEN,
)
def buffer_smaller_than_a_file(root: Path) -> int:
    torch.manual_seed(51)
    data = tiles(1400, 451)
    return learn(root, Viewer(3, 6), data, 1e-3, through_a_buffer(data, 40, 24), 0)


def until_the_reader_dies(data: Split, first: int) -> Iterator[Any]:
    """Yield shuffled batches; from the `first` on always the same one."""
    for number, pair in enumerate(batches(data, 24, 52)):
        while number >= first:
            yield pair
        yield pair


@faulty(
    "recipes of five kitchens, a recurrent layer with attention, a thread reads ahead",
    "at step 60 the thread dies, and its queue returns the last batch for ever",
    {"RepeatedBatches"},
    may=LEARNT,
)
def reader_dies(root: Path) -> int:
    torch.manual_seed(52)
    data = recipes(1300, 452)
    return learn(root, Cook(5), data, 4e-3, until_the_reader_dies(data, 60), 60)


@faulty(
    "delays of flights, vectors of their airports, momentum, interrupted at step 60",
    "after the interruption rows are divided by another seed: most of those validated were learnt",
    {"RepeatedBatches"},
    may=LEARNT,
)
def divided_by_another_seed(root: Path) -> int:
    torch.manual_seed(53)
    torch.set_num_threads(1)
    whole = flights(1200, 453, tested=300)
    x, y = torch.cat([whole.x, whole.test_x]), torch.cat([whole.y, whole.test_y])
    order = torch.randperm(1200, generator=torch.Generator().manual_seed(53))
    again = Split(x[order[:900]], y[order[:900]], x[order[900:]], y[order[900:]])
    model, loss = Ports(), nn.MSELoss()
    optimizer = sgd(0.02, momentum=0.9)(model.parameters())
    onset = 0
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for seed, data in ((54, whole), (55, again)):
            onset = watching.global_step + 1 if seed == 55 else 0
            for step, (facts, delay) in zip(range(60), batches(data, 24, seed), strict=False):
                optimizer.zero_grad()
                loss(model(facts), delay).backward()
                optimizer.step()
                if (step + 1) % 20 == 0:
                    validate(watching, model, loss, data, 100)
    return onset
