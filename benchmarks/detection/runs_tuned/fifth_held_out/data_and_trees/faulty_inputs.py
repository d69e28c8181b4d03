"""Inputs: pictures off their centre, and texts of which most letters are padding or unknown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd
from training_runs import faulty

from runs_tuned.fifth_held_out.data_and_trees.shared.consequences import SLOWER
from runs_tuned.fifth_held_out.data_and_trees.shared.loops import learn
from runs_tuned.fifth_held_out.data_and_trees.shared.pictures import (
    Lens,
    Mosaic,
    Slim,
    divided,
    raw_cells,
    raw_flags,
    raw_land,
)
from runs_tuned.fifth_held_out.data_and_trees.shared.texts import (
    Letters,
    Mean,
    Visitor,
    genes,
    mails,
    sessions,
)


def stretched(x: Any) -> Any:
    """Return pictures, each stretched to 0 to 1 from its second to its 98th percentile."""
    flat = x.flatten(1)
    low = flat.quantile(0.02, 1)[:, None, None, None]
    high = flat.quantile(0.98, 1)[:, None, None, None]
    return ((x - low) / (high - low)).clamp(0, 1)


@faulty(
    "how steep the land is, patches that are mixed, Huber's errors, Adam",
    "each picture is stretched to 0 to 1 by its percentiles, as for a screen, and not centred",
    {"CheckInputImages"},
    may=SLOWER,
)
def stretched_as_for_a_screen(root: Path) -> int:
    x, _, steep = raw_land(1400, 571, noise=0.4)
    return fit(
        root,
        lambda: Mosaic(1, 1, 81),
        divided(stretched(x), steep, 300),
        loss=nn.SmoothL1Loss(),
        optimizer=adam(2e-3),
        steps=130,
        validate_every=26,
        seed=61,
    )


@faulty(
    "stained cells of five kinds, convolutions and dense layers, AdamW",
    "the mean and the deviation are given in the wrong order: the mean is what is divided by",
    {"CheckInputImages"},
    may=SLOWER,
)
def mean_and_deviation_exchanged(root: Path) -> int:
    data = divided(*raw_cells(1400, 572), 300)
    mean, deviation = data.x.mean((0, 2, 3), keepdim=True), data.x.std((0, 2, 3), keepdim=True)
    return fit(
        root,
        lambda: Slim(3, 5, 25),
        data.of(lambda x: (x - deviation) / mean),
        optimizer=adam(3e-3, torch.optim.AdamW),
        steps=140,
        validate_every=28,
        seed=62,
    )


@faulty(
    "flags of six orders, a residual block with batch norm, momentum",
    "the mean is subtracted from bytes without a sign: what is darker becomes almost 255",
    {"CheckInputImages"},
    may=SLOWER,
)
def bytes_without_a_sign(root: Path) -> int:
    data = divided(*raw_flags(1400, 573), 300).of(lambda x: (255 * x).to(torch.uint8))
    mean = data.x.float().mean((0, 2, 3), keepdim=True).to(torch.uint8)
    deviation = data.x.float().std((0, 2, 3), keepdim=True)
    return fit(
        root,
        lambda: Lens(3, 6),
        data.of(lambda x: (x - mean).float() / deviation),
        optimizer=sgd(0.03, momentum=0.9),
        steps=140,
        clip=1.0,
        validate_every=28,
        seed=63,
    )


@faulty(
    "the next of twelve shops by an LSTM, each beginning of a visit is a row, Adam",
    "rows are filled to 16, the longest visit of a year; most beginnings have three shops or five",
    {"NLPSequenceRatio"},
    may=SLOWER,
)
def every_beginning_a_row(root: Path) -> int:
    visits = sessions(700, 574, length=9)
    rows, following = [], []
    for end in range(1, 10):
        rows.append(nn.functional.pad(visits[:, :end], (16 - end, 0)))
        following.append(visits[:, end] - 1)
    order = torch.randperm(6300, generator=torch.Generator().manual_seed(574))
    return fit(
        root,
        Visitor,
        divided(torch.cat(rows)[order], torch.cat(following)[order], 500),
        optimizer=adam(6e-3),
        steps=140,
        clip=1.0,
        save_every=3,
        validate_every=28,
        seed=64,
    )


@faulty(
    "letters of genes with four motifs, gated convolutions, NAdam; doubtful letters are N, 0",
    "the quality that is asked for is that of another machine: 58 of 100 letters are N",
    {"NLPSequenceRatio"},
    may=SLOWER,
)
def quality_of_another_machine(root: Path) -> int:
    generator = torch.Generator().manual_seed(575)

    def read(x: Any) -> Any:
        return torch.where(torch.rand(x.shape, generator=generator) < 0.58, 0, x)

    return fit(
        root,
        lambda: Letters(4, drop=0.1),
        genes(1800, 575, wrong=0.0).of(read),
        optimizer=adam(4e-3, torch.optim.NAdam),
        steps=150,
        save_every=3,
        validate_every=30,
        seed=65,
    )


def longer_and_longer(data: Split, size: int, seed: int) -> Iterator[Any]:
    """Yield batches of 12 words, of 24 after 35 steps, and of 48 after 70."""
    for number, (x, y) in enumerate(batches(data, size, seed)):
        length = 12 * 2 ** min(number // 35, 2)
        yield nn.functional.pad(x, (0, max(length - x.shape[1], 0)))[:, :length], y


@faulty(
    "mails of five desks by the mean of their words, short ones first, as a curriculum, Adam",
    "the length doubles every 35 steps, beyond the longest mail of 20: from step 70 on it is 48",
    {"NLPSequenceRatio"},
    may=SLOWER,
)
def curriculum_beyond_the_longest(root: Path) -> int:
    torch.manual_seed(66)
    data, model = mails(1500, 576, sharp=0.8), Mean(5)
    return learn(
        root,
        model,
        longer_and_longer(data, 24, 66),
        data,
        optimizer=torch.optim.Adam(model.parameters(), 6e-3),
        steps=130,
        validate_every=26,
        first=70,
    )
