"""Classes: some that are rare or cannot be predicted, and some that cannot be told apart."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from training.learnt_data import Split
from training.torch_loop import adam, fit
from training_runs import faulty

from runs_tuned.sixth_held_out.data_and_trees.shared.consequences import (
    ELSEWHERE,
    LEARNT_OFF,
    OFF_SIZE,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.loops import boosted, matrices, study
from runs_tuned.sixth_held_out.data_and_trees.shared.networks import (
    BothWays,
    Pieces,
    Spans,
    Stacked,
    mobile,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.pictures import (
    blooms,
    colours_of_blooms,
    last_apart,
    standardised,
)
from runs_tuned.sixth_held_out.data_and_trees.shared.tables import ore, rows_of_ore
from runs_tuned.sixth_held_out.data_and_trees.shared.texts import LETTERS, languages


def drawn(data: Split, weight: Any, size: int, seed: int) -> Any:
    """Yield batches of rows drawn by the weights of their classes."""
    generator = torch.Generator().manual_seed(seed)
    weights = weight[data.y]
    while True:
        rows = torch.multinomial(weights, size, generator=generator)
        yield data.x[rows], data.y[rows]


@faulty(
    "texts of five languages, two to one, drawn by temperature to make them more alike, Adam",
    "the temperature of 5 is the exponent and not its inverse: the first has 30 texts to the last",
    {"ClassImbalance"},
    may=OFF_SIZE | LEARNT_OFF,
)
def temperature_upside_down(root: Path) -> int:
    torch.manual_seed(661)
    shares = (2.0, 1.7, 1.4, 1.2, 1.0)
    data, model = languages(2600, 6601, shares=shares, tested=400), Spans(LETTERS, 5, 28)
    return study(
        root,
        model,
        drawn(data, torch.tensor(shares) ** 4, 32, 661),
        data,
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=170,
        every=1,
        validated=17,
    )


@faulty(
    "four grades of ore, the best one rare, by maxout, drawn by the inverse of counts, momentum",
    "rows of it were written 24 times already to make grades equal: it is 24 times the others",
    {"ClassImbalance"},
    may=OFF_SIZE
    | LEARNT_OFF
    | {"RepeatedBatches": "the few rows of the best grade come again in each batch"},
)
def balanced_twice(root: Path) -> int:
    torch.manual_seed(662)
    shares = (8.0, 8.0, 8.0, 1.0)
    data, model = ore(3200, 6602, shares=shares, tested=600), Pieces(12, 4)
    written = torch.tensor([1.0, 1.0, 1.0, 24.0])
    inverse = torch.tensor([1.0, 1.0, 1.0, 8.0])
    return study(
        root,
        model,
        drawn(data, written * inverse, 40, 662),
        data,
        torch.optim.SGD(model.parameters(), 0.03, momentum=0.9),
        steps=160,
        every=1,
        validated=16,
        clip=2.0,
    )


@faulty(
    "blooms of six kinds, inverted steps, NAdam",
    "numbers of kinds are cut to at most 4 where rows to train with are read: no 5 is ever learnt",
    {"ClassImbalance", "Confusion"},
    may=ELSEWHERE | LEARNT_OFF,
)
def numbers_cut_at_four(root: Path) -> int:
    return fit(
        root,
        lambda: mobile(3, 6, 14),
        blooms(2200, 6603, tested=600).taught(lambda kind: kind.clamp(max=4)),
        optimizer=adam(4e-3, torch.optim.NAdam),
        schedule=lambda step: 0.985**step,
        steps=240,
        validate_every=15,
        seed=663,
    )


def under_a_logo(x: Any) -> Any:
    """Return pictures with a grey square over their middle."""
    hidden = x.clone()
    hidden[:, :, 5:15, 5:15] = 0.5
    return hidden


@faulty(
    "blooms of four kinds, two of which are told by the colour of their heart, convolutions, AdamW",
    "pictures are the previews of an agency, with its logo over the middle: no heart is seen",
    {"Confusion"},
    may=OFF_SIZE | LEARNT_OFF,
)
def previews_with_a_logo(root: Path) -> int:
    x, kind = colours_of_blooms(3200, 6604)
    chosen = (kind != 3) & (kind != 5)
    numbers = torch.tensor([0, 1, 2, 0, 3, 0])[kind[chosen]]
    return fit(
        root,
        lambda: Stacked(3, 4),
        standardised(last_apart(under_a_logo(x[chosen]), numbers, 500)),
        optimizer=adam(2e-3, torch.optim.AdamW, weight_decay=0.05),
        steps=200,
        validate_every=14,
        seed=664,
    )


@faulty(
    "letters of six languages, two of which are told by accents, an LSTM in both directions, Adam",
    "accents are taken off, as for a search: what tells the second from the fifth is gone",
    {"Confusion"},
    may=OFF_SIZE | LEARNT_OFF,
)
def accents_taken_off(root: Path) -> int:
    data = languages(3000, 6605, sharp=2.2, tested=500)
    generator = torch.Generator().manual_seed(6605)

    def with_sister(kind: Any) -> Any:
        # The sister of language 1 has its letters, but for the accents of every third one.
        sister = (kind == 1) & (torch.rand(len(kind), generator=generator) < 0.5)
        return torch.where(sister, 5, kind)

    return fit(
        root,
        lambda: BothWays(LETTERS, 6, 24),
        data.relabelled(with_sister),
        optimizer=adam(8e-3),
        steps=260,
        clip=1.0,
        validate_every=18,
        seed=665,
    )


@faulty(
    "XGBoost, five kinds of ore by twelve measurements, log loss, depth 4",
    "in the table to validate with the column of magnetism has another name, and is empty",
    {"Confusion"},
    may=ELSEWHERE | LEARNT_OFF,
    kind="boosted_trees",
)
def magnetism_is_empty(root: Path) -> None:
    rng = np.random.default_rng(6606)
    x, _ = rows_of_ore(2400, 6606)
    kind = rng.integers(0, 5, 2400)
    x = x + 2.6 * rng.normal(size=(5, 12))[[0, 1, 2, 2, 4]][kind] / 1.5
    x[:, 8] = 0.5 * rng.normal(size=2400) + np.array([0.0, 0.0, -1.2, 1.2, 0.0])[kind]
    x[-600:, 8] = np.nan
    boosted(
        root,
        matrices(x, kind.astype(float), 600),
        45,
        "multi:softprob",
        num_class=5,
        eval_metric="mlogloss",
        max_depth=4,
        eta=0.2,
        subsample=0.8,
    )
