"""Batches that hold two kinds, come again and again, or that are validated as well."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit
from training_runs import faulty

from runs_tuned.sixth_held_out.data_and_trees.shared.consequences import (
    ELSEWHERE,
    LEARNT_OFF,
    OFF_SIZE,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.loops import study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import Encoder, mobile, plain
from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import blooms
from runs_tuned.sixth_held_out.data_and_trees.shared.tables import ore
from runs_tuned.sixth_held_out.data_and_trees.shared.texts import LETTERS, languages


def two_kinds(data: Split, size: int, kinds: int, seed: int) -> Iterator[Any]:
    """Yield batches of rows of two kinds that are drawn, as many of each."""
    generator = torch.Generator().manual_seed(seed)
    rows_of = [(data.y == kind).nonzero()[:, 0] for kind in range(kinds)]
    while True:
        chosen = torch.randperm(kinds, generator=generator)[:2]
        rows = torch.cat(
            [
                rows_of[kind][torch.randperm(len(rows_of[kind]), generator=generator)[: size // 2]]
                for kind in chosen.tolist()
            ]
        )
        yield data.x[rows], data.y[rows]


@faulty(
    "blooms of six kinds, inverted steps, cross entropy, Adam",
    "the sampler was made for a loss of triplets and is left: each batch holds two kinds",
    {"RepeatedBatches"},
    may=OFF_SIZE | LEARNT_OFF,
)
def sampler_of_triplets(root: Path) -> int:
    torch.manual_seed(691)
    model, data = mobile(3, 6, 16), blooms(1500, 6901)
    return study(
        root,
        model,
        two_kinds(data, 32, 6, 691),
        data,
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=150,
        every=1,
        validated=30,
    )


def until_mastered(data: Split, size: int, losses: list[float], seed: int) -> Iterator[Any]:
    """Yield shuffled batches, each again until its loss is a twentieth, for 60 times at most."""
    for pair in batches(data, size, seed):
        for time in range(60):
            if time and losses[-1] < 0.05:
                break
            yield pair


@faulty(
    "letters of five languages, self-attention, each batch is repeated until it is mastered, AdamW",
    "a batch is mastered at a loss of .05, which takes some 25 times: it is learnt by heart",
    {"RepeatedBatches"},
    may=LEARNT_OFF,
)
def until_it_is_mastered(root: Path) -> int:
    torch.manual_seed(692)
    data, model = languages(1500, 6902, sharp=1.2), Encoder(LETTERS, 5, drop=0.1)
    losses: list[float] = []
    return study(
        root,
        model,
        until_mastered(data, 24, losses, 692),
        data,
        torch.optim.AdamW(model.parameters(), 1.5e-3),
        steps=160,
        every=1,
        validated=25,
        clip=1.0,
        after=lambda _, loss: losses.append(loss),
    )


@faulty(
    "four grades of ore by SELU, AdamW; the last quarter of a shuffled list is validated",
    "to train, the list is read again and shuffled anew: most of what is validated was learnt",
    {"RepeatedBatches"},
    may=LEARNT_OFF | ELSEWHERE,
)
def list_shuffled_anew(root: Path) -> int:
    data = ore(1600, 6903, tested=400)
    x, y = torch.cat([data.x, data.test_x]), torch.cat([data.y, data.test_y])
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(6903))[:1200]
    return fit(
        root,
        lambda: plain(12, 4, drop=0.1),
        Split(x[order], y[order], data.test_x, data.test_y),
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=160,
        batch=40,
        save_every=1,
        validate_every=16,
        validate_batch=100,
        seed=693,
    )
