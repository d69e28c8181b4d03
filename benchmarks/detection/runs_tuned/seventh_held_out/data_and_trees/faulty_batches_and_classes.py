"""Batches that repeat, are of few classes or are validated; rare and confused classes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split
from training_runs import faulty

from runs_tuned.seventh_held_out.data_and_trees.shared.consequences import BY_HEART, ELSEWHERE
from runs_tuned.seventh_held_out.data_and_trees.shared.loops import (
    boosted,
    loader,
    matrices,
    train,
    validation,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.networks import (
    MeanOfWords,
    TextCnn,
    convolutions,
    layers,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.pictures import apart, displays, normalised
from runs_tuned.seventh_held_out.data_and_trees.shared.tables import (
    as_split,
    faults,
    rows_of_faults,
    rows_of_leavers,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.texts import (
    NOT,
    VOCABULARY,
    WORDS,
    news,
    news_texts,
    padded,
    review_texts,
)


@faulty(
    "six activities of people by windows of sensors, batch norm, Adam",
    "windows come as recorded, up to 100 of an activity in a row, and are not shuffled",
    {"RepeatedBatches"},
    may=ELSEWHERE | BY_HEART,
)
def as_recorded(root: Path) -> int:
    torch.manual_seed(421)
    data = faults(2800, 5021, kinds=6, noise=1.4)
    rows = [(data.y == kind).nonzero()[:, 0] for kind in (3, 0, 4, 1, 5, 2)]
    bouts = [of_kind[at : at + 100] for at in range(0, 400, 100) for of_kind in rows]
    model = layers(10, 6, norm=True)
    return train(
        root,
        model,
        loader(data.chosen(torch.cat(bouts)), 32, 421, shuffle=False),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=3,
        every=1,
    )


class Hardest:
    """Shuffled batches in the first epoch; then rows that are drawn by their losses after it."""

    def __init__(self, data: Split, size: int, model: Any, twin: Any) -> None:
        self.data, self.size, self.model, self.twin = data, size, model, twin
        self.shuffled, self.weights = loader(data, size, 422), None
        self.generator = torch.Generator().manual_seed(422)

    def __iter__(self) -> Iterator[Any]:
        if self.weights is None:
            yield from self.shuffled
            self.twin.load_state_dict(self.model.state_dict())
            with torch.no_grad():
                losses = nn.functional.cross_entropy(
                    self.twin.eval()(self.data.x), self.data.y, reduction="none"
                )
            self.weights = (losses - losses.amax()).div(0.05).exp()
            return
        for _ in range(len(self.shuffled)):
            rows = torch.multinomial(self.weights, self.size, True, generator=self.generator)
            yield self.data.x[rows], self.data.y[rows]


@faulty(
    "news of six desks, some at a wrong one, the mean of words; hard ones are drawn more often",
    "from the second epoch on weights are exp(20 loss): the same few rows fill each batch",
    {"RepeatedBatches"},
    may=ELSEWHERE | BY_HEART,
)
def hardest_rows_only(root: Path) -> int:
    onset = 0

    def note(step: int, watching: Any) -> None:
        nonlocal onset
        onset = watching.global_step if step == 63 else onset

    torch.manual_seed(422)
    model, twin = (MeanOfWords(WORDS, 6) for _ in range(2))
    generator = torch.Generator().manual_seed(5022)
    data = news(2400, 5022, desks=6, told=0.4).taught(
        lambda desk: torch.where(
            torch.rand(len(desk), generator=generator) < 0.05,
            torch.randint(0, 6, (len(desk),), generator=generator),
            desk,
        )
    )
    train(
        root,
        model,
        Hardest(data, 32, model, twin),
        validation(data),
        torch.optim.Adam(model.parameters(), 4e-3),
        epochs=3,
        every=1,
        after_step=note,
    )
    return onset


@faulty(
    "customers who leave, exports of two months put together, split at random, dropout, AdamW",
    "more than half of the customers are in both: they are trained with and validated as well",
    {"RepeatedBatches"},
    may=ELSEWHERE | BY_HEART,
)
def exports_that_overlap(root: Path) -> int:
    torch.manual_seed(423)
    facts, leaves = rows_of_leavers(1500, 5023)
    both = np.concatenate([np.arange(1200), np.arange(400, 1500)])
    both = np.random.default_rng(5023).permutation(both)
    data = as_split((facts[both], leaves[both]), 400, classes=True)
    model = layers(12, 2, width=48, drop=0.1)
    return train(
        root,
        model,
        loader(data, 32, 423),
        validation(data, 100),
        torch.optim.AdamW(model.parameters(), 2e-3),
        epochs=5,
        every=1,
    )


@faulty(
    "what customers will spend in four classes, batch norm, Adam",
    "classes are four intervals of equal width of a skewed sum: nearly all are in the lowest",
    {"ClassImbalance"},
    may=ELSEWHERE | BY_HEART,
)
def intervals_of_equal_width(root: Path) -> int:
    torch.manual_seed(424)
    rng = np.random.default_rng(5024)
    x = rng.normal(size=(3600, 12))
    spent = np.exp(0.6 * x[:, 0] - 0.5 * x[:, 1] + 0.4 * x[:, 2] + 0.6 * rng.normal(size=3600))
    limits = np.linspace(0, np.quantile(spent, 0.998), 5)[1:-1]
    data = as_split((x, np.digitize(spent, limits).astype(float)), 600, classes=True)
    model = layers(12, 4, norm=True)
    return train(
        root,
        model,
        loader(data, 48, 424),
        validation(data, 300),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=3,
        every=1,
    )


@faulty(
    "wanted and unwanted mails, four to one, the mean of words, AdamW",
    "undersampling keeps an eighth of the rarer class in place of the other: 32 to one",
    {"ClassImbalance"},
    may=ELSEWHERE | BY_HEART,
)
def rarer_class_undersampled(root: Path) -> int:
    torch.manual_seed(425)
    texts, kind = news_texts(5200, 5025, desks=2, told=0.3, shares=(4.0, 1.0))
    data = apart(padded(texts), kind, 500)
    generator = torch.Generator().manual_seed(5025)
    kept = (data.y == 0) | (torch.rand(len(data.y), generator=generator) < 1 / 8)
    data = data.chosen(kept)
    model = MeanOfWords(WORDS, 2)
    return train(
        root,
        model,
        loader(data, 40, 425),
        validation(data, 250),
        torch.optim.AdamW(model.parameters(), 2e-3),
        epochs=2,
        every=1,
    )


@faulty(
    "XGBoost, windows of machines: nothing, or one of three faults, log loss, depth 4",
    "a window has a fault only if its very last value has: 50 of nothing to one of each fault",
    {"ClassImbalance"},
    may=ELSEWHERE | BY_HEART,
    kind="boosted_trees",
)
def last_value_decides(root: Path) -> None:
    x, kind = rows_of_faults(9000, 5026, noise=1.6)
    rng = np.random.default_rng(5026)
    kept = (kind == 0) | (rng.random(9000) < 0.02)
    boosted(
        root,
        matrices(x[kept], kind[kept], 800),
        40,
        "multi:softprob",
        num_class=4,
        eval_metric="mlogloss",
        max_depth=4,
        eta=0.15,
        subsample=0.8,
    )


def turned(x: Any) -> Any:
    """Return pictures, half of them upside down."""
    return torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(2, 3), x)


@faulty(
    "displays of meters, ten digits, convolutions with batch norm, AdamW, a falling rate",
    "pictures are turned upside down at random, as if they were photographs: a 6 becomes a 9",
    {"Confusion"},
    may=ELSEWHERE,
)
def six_becomes_nine(root: Path) -> int:
    torch.manual_seed(427)
    data = normalised(apart(*displays(2900, 5027, noise=0.08), 400))
    model = convolutions(1, 10, 8)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-2)
    return train(
        root,
        model,
        loader(data, 50, 427),
        validation(data, 400),
        optimizer,
        epochs=8,
        per_epoch=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5),
        changed=turned,
        validated=25,
        every=8,
    )


@faulty(
    "five kinds of faults of machines, two layers with batch norm, Adam",
    "each part numbers kinds as they first appear in it: the parts have other numbers for three",
    {"Confusion"},
    may=ELSEWHERE,
)
def numbered_as_they_appear(root: Path) -> int:
    torch.manual_seed(428)
    data = faults(3000, 5028, kinds=5)
    other = torch.tensor([0, 3, 2, 4, 1])
    data = Split(data.x, data.y, data.test_x, other[data.test_y])
    model = layers(10, 5, norm=True, drop=0.2)
    return train(
        root,
        model,
        loader(data, 52, 428),
        validation(data, 400),
        torch.optim.Adam(model.parameters(), 3e-3),
        epochs=6,
        validated=20,
        every=4,
    )


@faulty(
    "complaints, praise and messages for four desks, convolutions over words, dropout, Adam",
    'stop words are removed, "not" with them: "not good" is as good, and praise as a complaint',
    {"Confusion"},
    may=ELSEWHERE | BY_HEART,
)
def not_is_a_stop_word(root: Path) -> int:
    torch.manual_seed(429)
    said, kind = review_texts(2400, 5029, wrong=0.0)
    said = [text[text != NOT] for text, each in zip(said, kind, strict=True) if each < 2]
    told, desk = news_texts(2400, 5029, told=0.5)
    texts = [*said, *(text + VOCABULARY for text in told)]
    kinds = torch.cat([kind[kind < 2], 2 + desk])
    order = np.random.default_rng(5029).permutation(len(texts))
    data = apart(padded([texts[row] for row in order]), kinds[torch.from_numpy(order)], 600)
    model = TextCnn(VOCABULARY + WORDS, 6, 20)
    optimizer = torch.optim.Adam(model.parameters(), 8e-3)
    return train(
        root,
        model,
        loader(data, 50, 429),
        validation(data, 300),
        optimizer,
        epochs=5,
        per_epoch=torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.35),
        validated=18,
        every=4,
    )
