"""Inputs: pictures off their centre, and texts that are mostly padding."""

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.fourth_held_out.data_and_trees.shared.consequences import WORSE
from runs_tuned.fourth_held_out.data_and_trees.shared.pictures import (
    Pocket,
    Sight,
    Viewer,
    directions,
    halves,
    raw_dials,
    raw_tiles,
)
from runs_tuned.fourth_held_out.data_and_trees.shared.texts import (
    COMMON,
    Bag,
    Cook,
    Phrases,
    recipes,
)


@faulty(
    "tiles of six kinds in colours, convolutions with group norm, AdamW",
    "pictures are divided by the deviation, and then the mean of the undivided ones is subtracted",
    {"CheckInputImages"},
    may=WORSE,
)
def divided_before_centred(root: Path) -> int:
    data = halves(*raw_tiles(1400, 421), 200)
    mean, deviation = data.x.mean((0, 2, 3), keepdim=True), data.x.std((0, 2, 3), keepdim=True)
    return fit(
        root,
        lambda: Viewer(3, 6),
        data.of(lambda x: x / deviation - mean),
        optimizer=adam(4e-3, torch.optim.AdamW),
        steps=140,
        save_every=2,
        validate_every=35,
        seed=21,
    )


@faulty(
    "tiles of six kinds in colours, separable convolutions with batch norm, Nesterov momentum",
    "a library returns blue, green and red; mean and deviation are those of red, green and blue",
    {"CheckInputImages"},
    may=WORSE,
)
def channels_in_reverse(root: Path) -> int:
    data = halves(*raw_tiles(1400, 422, noise=0.1), 200)
    mean, deviation = data.x.mean((0, 2, 3), keepdim=True), data.x.std((0, 2, 3), keepdim=True)
    return fit(
        root,
        lambda: Pocket(3, 6),
        data.of(lambda x: (x.flip(1) - mean) / deviation),
        optimizer=sgd(0.05, momentum=0.9, nesterov=True),
        steps=140,
        save_every=2,
        validate_every=28,
        seed=22,
    )


@faulty(
    "dials of instruments, the direction of their hand, convolutions and dense layers, Adam",
    "mean and deviation were computed before pictures were brightened by a gamma of 1 / 2.2",
    {"CheckInputImages"},
    may=WORSE,
)
def statistics_before_gamma(root: Path) -> int:
    x, turn = raw_dials(1300, 423)
    data = halves(x, directions(turn), 200)
    mean, deviation = data.x.mean(), data.x.std()
    return fit(
        root,
        lambda: Sight(1, 2),
        data.of(lambda x: (x ** (1 / 2.2) - mean) / deviation),
        loss=nn.MSELoss(),
        optimizer=adam(2e-3),
        steps=150,
        save_every=2,
        validate_every=30,
        seed=23,
    )


def padded(x: Any, length: int) -> Any:
    """Return rows of words, padded to this length."""
    return nn.functional.pad(x, (0, length - x.shape[1]))


@faulty(
    "recipes: a title and a text joined, convolutions over three words, RMSprop",
    "both are padded to 32 words before they are joined: most titles have four, most texts 12",
    {"NLPSequenceRatio"},
    may=WORSE,
)
def both_parts_padded(root: Path) -> int:
    titles = recipes(1300, 424, longest=5, shortest=3)
    texts = recipes(1300, 424, longest=16, shortest=9)
    x = torch.cat([padded(titles.x, 32), padded(texts.x, 32)], 1)
    test_x = torch.cat([padded(titles.test_x, 32), padded(texts.test_x, 32)], 1)
    data = Split(x, texts.y, test_x, texts.test_y)
    return fit(
        root,
        lambda: Phrases(5),
        data,
        optimizer=functools.partial(torch.optim.RMSprop, lr=2e-3),
        steps=130,
        save_every=3,
        validate_every=26,
        seed=24,
    )


@faulty(
    "recipes of five kitchens, a recurrent layer with attention, gradients clipped, AdamW",
    "common words are not taken out of the texts, but replaced by 0: two of three words",
    {"NLPSequenceRatio"},
    may=WORSE,
)
def common_words_become_zero(root: Path) -> int:
    data = recipes(1300, 425, shortest=14).of(lambda x: torch.where(x < COMMON, x, 0))
    return fit(
        root,
        lambda: Cook(5),
        data,
        optimizer=adam(4e-3, torch.optim.AdamW),
        steps=120,
        clip=1.0,
        save_every=3,
        validate_every=24,
        seed=25,
    )


def with_books(data: Split, batch: int, first: int, seed: int) -> Iterator[Any]:
    """Yield batches cut to their longest text; from the `first` on, one text is a book."""
    generator = torch.Generator().manual_seed(seed)
    number = 0
    while True:
        for rows in torch.randperm(len(data.x), generator=generator).split(batch):
            x, y = data.x[rows], data.y[rows]
            if number >= first:
                x = padded(x, 60)
                more = data.x[data.y == y[0]][:6]
                book = more[more > 0][:60]
                x[0, : len(book)] = book
            yield x[:, : int((x > 0).sum(1).amax())], y
            number += 1


@faulty(
    "recipes of five kitchens in pieces of up to 18 words, padded batch by batch, the mean word",
    "from step 60 on a shard is read that was not cut: in each batch one row is a whole book",
    {"NLPSequenceRatio"},
    may=WORSE,
)
def books_among_pieces(root: Path) -> int:
    torch.manual_seed(26)
    torch.set_num_threads(1)
    data, model, loss, onset = recipes(1300, 426), Bag(5), nn.CrossEntropyLoss(), 0
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    with watched(root, model, losses=[loss], save_every=2) as watching:
        for step, (x, y) in zip(range(130), with_books(data, 24, 60, 26), strict=False):
            if step == 60:
                onset = watching.global_step + 1
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 26 == 0:
                validate(watching, model, loss, data)
    return onset
