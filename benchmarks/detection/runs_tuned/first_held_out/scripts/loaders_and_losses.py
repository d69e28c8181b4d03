"""Mistakes in scripts: loaders that repeat rows, and losses that get chances for logits."""

from pathlib import Path

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.first_held_out.scripts.tasks import (
    Blocks,
    Rhythm,
    Segmenter,
    beats,
    sensors,
    shapes,
    tags,
    tower,
)

BY_HEART = {
    "Overfit": "few rows are learnt by heart",
    "Overtraining": "few rows are learnt by heart",
    "Confusion": "classes come one after the other, or are learnt by heart",
    "ClassImbalance": "classes come one after the other, or are unequal in validation",
    "LossNotDecreasing": "each batch undoes what the last ones taught",
    "LossSpike": "a new class begins",
    "GradientNormSpike": "a new class begins",
    "UnchangedTensor": "all is learnt by heart",
    "VanishingGradient": "all is learnt by heart",
    "WeightUpdateRatio": "all is learnt by heart",
    "StalledParameters": "all is learnt by heart",
}
SLOW = {
    "LossNotDecreasing": "the loss has a floor, or none",
    "Overtraining": "the loss stands on its floor",
    "Overfit": "the loss means something else",
    "PoorWeightInitialization": "gradients are small",
    "VanishingGradient": "gradients are small",
    "UnchangedTensor": "hardly anything moves",
    "WeightUpdateRatio": "hardly anything moves",
    "StalledParameters": "hardly anything moves",
    "Confusion": "what is learnt slowly is confused",
    "ClassImbalance": "what is learnt slowly is confused",
}


# Loaders


@faulty(
    "machines, an iterable data set read by eight processes",
    "the data set is not divided between them: each batch comes eight times in a row",
    {"RepeatedBatches"},
    may=BY_HEART,
)
def each_batch_eight_times(root: Path) -> int:
    torch.manual_seed(1)
    model, loss, data = tower(18, 32, 6), nn.CrossEntropyLoss(), sensors()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for _, (x, y) in zip(range(20), batches(data, 24, 2), strict=False):
            for _ in range(8):
                optimizer.zero_grad()
                loss(model(x), y).backward()
                optimizer.step()
            validate(watching, model, loss, data)
    return 0


@faulty(
    "machines, one state of six is rare and therefore repeated tenfold",
    "rows are repeated before they are split: copies of training rows are validated",
    {"RepeatedBatches"},
    may=BY_HEART,
)
def repeated_before_split(root: Path) -> int:
    data = sensors()
    rare = torch.cumsum(data.y == 2, 0) % 10 == 0
    rows = torch.nonzero((data.y != 2) | rare).flatten()
    copies = torch.nonzero((data.y == 2) & rare).flatten().repeat(9)
    rows = torch.cat([rows, copies])
    rows = rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(3))]
    train, test = rows[:900], rows[900:]
    split = Split(data.x[train], data.y[train], data.x[test], data.y[test])
    make = lambda: Blocks(18, 6)
    return fit(root, make, split, optimizer=adam(2e-3), steps=160, save_every=1)


@faulty(
    "machines, rows in the order of the files, one for each of six states",
    "the buffer that shuffles holds 60 rows, a file 200",
    {"RepeatedBatches"},
    may=BY_HEART,
)
def buffer_too_small(root: Path) -> int:
    data = sensors()
    generator = torch.Generator().manual_seed(4)
    waiting = torch.argsort(data.y, stable=True).tolist() * 3
    buffer, order = waiting[:60], []
    for row in waiting[60:]:
        at = int(torch.randint(60, (1,), generator=generator))
        order.append(buffer[at])
        buffer[at] = row
    return fit(
        root,
        lambda: tower(18, 32, 6),
        data.chosen(torch.tensor(order)),
        optimizer=sgd(0.03, momentum=0.8),
        batch=24,
        shuffle=False,
        steps=140,
        save_every=1,
    )


# Losses


@faulty(
    "discs and bars, a class for each pixel",
    "the network ends with a softmax over classes, before cross entropy",
    {"ProbabilitiesAsLogits"},
    may=SLOW,
)
def softmax_of_pixels(root: Path) -> int:
    make = lambda: Segmenter(nn.Softmax(1))
    return fit(root, make, shapes(), optimizer=adam(5e-3), steps=90, batch=16, save_every=3)


@faulty(
    "rhythms, negative log-likelihood",
    "softmax in place of log-softmax before the negative log-likelihood",
    {"ProbabilitiesAsLogits"},
    may=SLOW,
)
def logarithm_forgotten(root: Path) -> int:
    make = lambda: nn.Sequential(Rhythm(), nn.Softmax(1))
    return fit(root, make, beats(), loss=nn.NLLLoss(), optimizer=adam(5e-3), steps=110)


@faulty(
    "five tags of texts",
    "a sigmoid for each tag stands before binary cross entropy with logits",
    {"ProbabilitiesAsLogits"},
    may=SLOW,
)
def sigmoid_of_tags(root: Path) -> int:
    make = lambda: nn.Sequential(tower(20, 40, 5), nn.Sigmoid())
    optimizer = adam(5e-3, torch.optim.AdamW)
    return fit(root, make, tags(), loss=nn.BCEWithLogitsLoss(), optimizer=optimizer, steps=140)
