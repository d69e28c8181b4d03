"""Healthy trainings on texts: mails of desks, letters of genes and visits of shops."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit
from training_runs import healthy

from runs_tuned.fifth_held_out.data_and_trees.shared.loops import learn
from runs_tuned.fifth_held_out.data_and_trees.shared.texts import (
    Desk,
    Letters,
    Mean,
    Visitor,
    genes,
    mails,
    next_shops,
)


@healthy("mails of five desks, self-attention with dropout, gradients clipped, AdamW")
def mails_of_desks(root: Path) -> int:
    return fit(
        root,
        lambda: Desk(5),
        mails(1500, 531, sharp=1.0),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.01),
        steps=150,
        clip=1.0,
        validate_every=15,
        seed=21,
    )


def mean_of_mails(root: Path, *, padding_counts: bool = False) -> int:
    """Learn the desks of mails from the mean of their words, always by one seed."""
    return fit(
        root,
        lambda: Mean(4, padding_counts=padding_counts),
        mails(1400, 532, desks=4, sharp=0.8, shortest=9),
        optimizer=adam(6e-3),
        steps=140,
        validate_every=14,
        seed=22,
    )


@healthy("mails of four desks by the mean of their words, Adam")
def mails_by_their_mean(root: Path) -> int:
    return mean_of_mails(root)


@healthy(
    "mails of four desks by the mean of their words, once more on another day",
    other="mails_by_their_mean",
)
def mails_by_their_mean_again(root: Path) -> int:
    return mean_of_mails(root)


@healthy("letters of genes with four motifs, gated convolutions, NAdam, a quarter dropped")
def motifs_of_genes(root: Path) -> int:
    return fit(
        root,
        lambda: Letters(4, drop=0.25),
        genes(1600, 533),
        optimizer=adam(4e-3, torch.optim.NAdam),
        steps=160,
        validate_every=16,
        seed=23,
    )


@healthy("the next of twelve shops by an LSTM, smoothed labels, a rate that falls by steps, Adam")
def shop_that_is_next(root: Path) -> int:
    return fit(
        root,
        Visitor,
        next_shops(2400, 534, tested=400),
        loss=nn.CrossEntropyLoss(label_smoothing=0.05),
        optimizer=adam(4e-3),
        schedule=lambda step: 0.5 ** (step // 60),
        steps=170,
        clip=1.0,
        validate_every=17,
        seed=24,
    )


def cut_to_the_longest(data: Split, size: int, seed: int) -> Iterator[Any]:
    """Yield batches, without the columns that are all padding."""
    for x, y in batches(data, size, seed):
        yield x[:, : int((x > 0).sum(1).amax())], y


@healthy("mails of desks of which one gets half, weighed by their number, padded batch by batch")
def mails_of_unequal_desks(root: Path) -> int:
    torch.manual_seed(25)
    data, model = mails(2400, 535, sharp=1.1, shortest=6, tested=500), Desk(5, drop=0.2)
    kept = (data.y == 0) | (torch.arange(len(data.y)) % 3 == 0)
    data = data.chosen(kept)
    weights = torch.tensor([0.6, 1.1, 1.1, 1.1, 1.1])
    return learn(
        root,
        model,
        cut_to_the_longest(data, 24, 25),
        data,
        optimizer=torch.optim.Adamax(model.parameters(), 0.01),
        loss=nn.CrossEntropyLoss(weight=weights),
        steps=160,
        validate_every=16,
    )
