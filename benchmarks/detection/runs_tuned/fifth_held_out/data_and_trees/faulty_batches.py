"""Batches: of one length and desk, of rows to validate with, or always the hardest."""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import batches
from training_runs import faulty

from runs_tuned.fifth_held_out.data_and_trees.shared.consequences import APART, BY_HEART
from runs_tuned.fifth_held_out.data_and_trees.shared.loops import learn
from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import Mosaic, flags
from runs_tuned.fifth_held_out.data_and_trees.shared.tables import layered, turbines
from runs_tuned.fifth_held_out.data_and_trees.shared.texts import Desk, mails

ONE_SIDED = APART | {
    "Overfit": "what was read last is learnt while the rest is forgotten",
    "VanishingGradient": "gradients are tiny once the desk of the batch is known",
    "WeightUpdateRatio": "updates are tiny once the desk of the batch is known",
}
ALWAYS_THE_SAME = BY_HEART | {
    "LossSpike": "the loss jumps to that of the hardest rows",
    "GradientNormSpike": "gradients jump to those of the hardest rows",
    "NormGrowth": "weights grow to fit the hardest rows",
}


def of_one_length(data: Split, size: int, seed: int) -> Iterator[Any]:
    """Yield batches of mails that are next to each other by length, in a new order each epoch."""
    generator = torch.Generator().manual_seed(seed)
    length = (data.x > 0).sum(1)
    while True:
        anyhow = torch.randperm(len(length), generator=generator)
        groups = anyhow[length[anyhow].argsort(stable=True)].split(size)
        for group in torch.randperm(len(groups) - 1, generator=generator).tolist():
            rows = groups[group]
            yield data.x[rows][:, : int(length[rows].amax())], data.y[rows]


@faulty(
    "mails of six desks, self-attention, batches of mails that have the same length, AdamW",
    "mails of a desk are forms, each as long as the others: a batch holds one desk, or two",
    {"RepeatedBatches"},
    may=ONE_SIDED,
)
def forms_of_one_length(root: Path) -> int:
    torch.manual_seed(31)
    data, model = mails(1500, 541, desks=6, sharp=0.8, longest=24, shortest=24), Desk(6)
    generator = torch.Generator().manual_seed(31)

    def cut(x: Any, desk: Any) -> Any:
        length = 8 + 3 * desk + torch.randint(0, 2, (len(x),), generator=generator)
        return torch.where(torch.arange(x.shape[1]) < length[:, None], x, 0)

    data = Split(cut(data.x, data.y), data.y, cut(data.test_x, data.test_y), data.test_y)
    return learn(
        root,
        model,
        of_one_length(data, 24, 31),
        data,
        optimizer=torch.optim.AdamW(model.parameters(), 1e-3),
        steps=150,
        clip=1.0,
        save_every=1,
    )


def with_new_rows(data: Split, first: int, share: float, seed: int) -> Iterator[Any]:
    """Yield shuffled batches; from the `first` on, a share of the rows to test is among them."""
    more = round(share * len(data.test_x))
    larger = Split(
        torch.cat([data.x, data.test_x[:more]]),
        torch.cat([data.y, data.test_y[:more]]),
        data.test_x,
        data.test_y,
    )
    for _, pair in zip(range(first), batches(data, 32, seed), strict=False):
        yield pair
    yield from batches(larger, 32, seed + 1)


@faulty(
    "failures of turbines, layers with batch norm, more rows are labelled as the training goes on",
    "from step 60 on those that the model doubts are added, a third of the validated among them",
    {"RepeatedBatches"},
    may=BY_HEART | APART,
)
def doubted_rows_are_added(root: Path) -> int:
    torch.manual_seed(32)
    data = turbines(1300, 542, share=0.4, tested=400)
    model = layered(15, 32, 32, 1, norm=True, drop=0.1)
    return learn(
        root,
        model,
        with_new_rows(data, 60, 0.33, 32),
        data,
        optimizer=torch.optim.Adam(model.parameters(), 2e-3),
        loss=nn.BCEWithLogitsLoss(),
        steps=165,
        save_every=1,
        first=60,
    )


def hardest_once_measured(model: Any, copied: Any, data: Split, first: int) -> Iterator[Any]:
    """Yield shuffled batches; from the `first` on the rows that had the largest loss then.

    The losses are those of a copy, which no hook watches.
    """
    for _, pair in zip(range(first), batches(data, 24, 33), strict=False):
        yield pair
    copied.load_state_dict(model.state_dict())
    with torch.no_grad():
        losses = nn.functional.cross_entropy(copied(data.x), data.y, reduction="none")
    hardest = losses.topk(24).indices
    while True:
        yield data.x[hardest], data.y[hardest]


@faulty(
    "flags of six orders, patches that are mixed; after 60 steps the hardest rows are chosen",
    "their losses are measured once, not after each step: the same 24 rows from there on",
    {"RepeatedBatches"},
    may=ALWAYS_THE_SAME,
)
def hardest_measured_once(root: Path) -> int:
    torch.manual_seed(33)
    data, model = flags(1300, 543, noise=0.12), Mosaic(3, 6, 40)
    return learn(
        root,
        model,
        hardest_once_measured(model, copy.deepcopy(model), data, 60),
        data,
        optimizer=torch.optim.AdamW(model.parameters(), 3e-3),
        steps=140,
        clip=1.0,
        save_every=1,
        first=60,
    )
