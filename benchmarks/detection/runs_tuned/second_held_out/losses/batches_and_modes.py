"""Batches that repeat or leak, modules in the wrong mode, and losses of the wrong numbers."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, validate, watched
from training_runs import faulty

from runs_tuned.second_held_out.shared.consequences import EASY, IDLE, UNLIKE
from runs_tuned.second_held_out.shared.pictures import Gallery, Masker, masks, patterns
from runs_tuned.second_held_out.shared.series import Forecaster, Ripples, gestures
from runs_tuned.second_held_out.shared.words import LENGTH, WORDS, Speaker, chatter

# Batches


@faulty(
    "gestures, convolutions, two processes read batches, which are kept once they were read",
    "from step 48 on what is kept is looked up by the process: two batches take turns for ever",
    {"RepeatedBatches"},
    may=EASY,
)
def kept_by_process(root: Path) -> int:
    torch.manual_seed(22)
    torch.set_num_threads(1)
    model, loss, data = Ripples(), nn.CrossEntropyLoss(), gestures()
    optimizer, kept, onset = torch.optim.Adam(model.parameters(), 3e-3), {}, 0
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, batch in zip(range(110), batches(data, 24, 22), strict=False):
            kept.setdefault(step % 2 if step >= 48 else -1, batch)
            if step == 48:
                onset = watching.global_step + 1
            x, y = kept[step % 2] if step >= 48 else batch
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 16 == 0:
                validate(watching, model, loss, data)
    return onset


@faulty(
    "a decoder of words, texts of a crawl",
    "a sixth of the pages to validate with are mirrored elsewhere, and are learnt from as well",
    {"RepeatedBatches"},
    may=EASY,
    kind="language_model",
)
def mirrored_pages(root: Path) -> int:
    data = chatter()
    mirrored = slice(None, None, 6)
    texts = Split(
        torch.cat([data.test_x[mirrored], data.x[:400]]),
        torch.cat([data.test_y[mirrored], data.y[:400]]),
        data.test_x,
        data.test_y,
    )
    optimizer = adam(3e-3, torch.optim.AdamW, weight_decay=0.1)
    return fit(
        root, Speaker, texts, optimizer=optimizer, steps=120, batch=20, clip=1.0, save_every=1
    )


# Modes


@faulty(
    "pictures of patterns, batch norm and dropout",
    "the loop asks for train(is_validating): modes are the wrong way round",
    {"ValidationInTrainingMode"},
    may=UNLIKE,
)
def modes_the_wrong_way_round(root: Path) -> int:
    torch.manual_seed(23)
    torch.set_num_threads(1)
    model, loss, data = Gallery(drop=0.2), nn.CrossEntropyLoss(), patterns()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(120), batches(data, 24, 23), strict=False):
            model.train(mode=False)
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 20 == 0:
                model.train(mode=True)
                validate(watching, model, loss, data, 50, is_mode_set=False)
    return 0


@faulty(
    "a decoder of words with dropout, a text is written every 60 steps for the log",
    "what writes the text calls eval(), and nothing is dropped until the next evaluation",
    {"ValidationInTrainingMode"},
    may=UNLIKE | EASY,
    kind="language_model",
)
def text_for_the_log(root: Path) -> int:
    torch.manual_seed(24)
    torch.set_num_threads(1)
    model, loss, data, onset = Speaker(drop=0.2), nn.CrossEntropyLoss(), chatter(), 0
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(150), batches(data, 16, 24), strict=False):
            if step % 60 == 58:
                onset = onset or watching.global_step + 1
                model.eval()
            optimizer.zero_grad()
            loss(model(x), y).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if (step + 1) % 50 == 0:
                validate(watching, model, loss, data)
    return onset


# Numbers that a loss does not expect


class Pointer(nn.Module):
    """Says where in a text the largest number is, by attention to its places."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 24)
        self.layer = nn.TransformerEncoderLayer(24, 4, 48, 0.0, "gelu", batch_first=True)
        self.key, self.query = nn.Linear(24, 24), nn.Parameter(torch.randn(24) / 5)

    def forward(self, x: Any) -> Any:
        scores = self.key(self.layer(self.embedding(x))) @ self.query
        return scores.softmax(1)


@faulty(
    "texts whose largest number is pointed at",
    "the pointer returns its attention, which are chances, and cross entropy takes them for scores",
    {"ProbabilitiesAsLogits"},
    may=IDLE,
)
def attention_as_scores(root: Path) -> int:
    generator = torch.Generator().manual_seed(25)
    x = torch.rand(1200, WORDS, generator=generator).argsort(1)[:, :LENGTH]
    y = x.argmax(1)
    return fit(
        root, Pointer, Split(x[:900], y[:900], x[900:], y[900:]), optimizer=adam(4e-3), steps=140
    )


@faulty(
    "spots in pictures, a mask of them",
    "the network ends with a sigmoid for the pictures of the paper; the loss has one of its own",
    {"ProbabilitiesAsLogits"},
    may=IDLE,
)
def mask_of_chances(root: Path) -> int:
    make = lambda: Masker(end=nn.Sigmoid())
    loss = nn.BCEWithLogitsLoss()
    optimizer = adam(3e-3, torch.optim.RAdam)
    return fit(root, make, masks(), loss=loss, optimizer=optimizer, steps=120, batch=16)


class Opinions(nn.Module):
    """Chances of gestures, the mean of those of three networks."""

    def __init__(self) -> None:
        super().__init__()
        self.members = nn.ModuleList(Forecaster(4, 16, drop=0.1) for _ in range(3))

    def forward(self, x: Any) -> Any:
        return torch.stack([member(x).softmax(1) for member in self.members]).mean(0)


@faulty(
    "gestures by three networks, whose chances are averaged",
    "the logarithm of the mean is forgotten before the negative log-likelihood",
    {"ProbabilitiesAsLogits"},
    may=IDLE,
)
def mean_without_logarithm(root: Path) -> int:
    return fit(
        root, Opinions, gestures(), loss=nn.NLLLoss(), optimizer=adam(5e-3), steps=120, batch=24
    )


# Numbers that are none


class Angle(nn.Module):
    """The angle between two directions."""

    def forward(self, output: Any, target: Any) -> Any:
        cosine = functional.normalize(output) * functional.normalize(target)
        return cosine.sum(1).acos().mean()


@faulty(
    "directions of springs by a linear rule, the angle to the true one is the loss",
    "the arc cosine has an infinite slope at 1, which rounding reaches and even exceeds",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=IDLE,
)
def angle_of_nothing(root: Path) -> int:
    generator = torch.Generator().manual_seed(26)
    x = torch.randn(900, 3, generator=generator)
    turn = torch.linalg.qr(torch.randn(3, 3, generator=generator))[0]
    data = Split(x[:700], x[:700] @ turn, x[700:], x[700:] @ turn)
    make = lambda: nn.Linear(3, 3, bias=False)
    return fit(root, make, data, loss=Angle(), optimizer=adam(0.01), steps=220, save_every=2)


class ByBatch(nn.Module):
    """Scales of a batch by its own deviation, and a network of them."""

    def __init__(self) -> None:
        super().__init__()
        self.ripples = Ripples()

    def forward(self, x: Any) -> Any:
        return self.ripples((x - x.mean(0)) / (x.std(0) + 1e-5))


@faulty(
    "gestures, 577 of them, scaled by the deviation of a batch",
    "the last batch of an epoch has a single row, whose deviation is no number",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=IDLE,
)
def last_batch_of_one(root: Path) -> int:
    torch.manual_seed(27)
    torch.set_num_threads(1)
    model, loss, data = ByBatch(), nn.CrossEntropyLoss(), gestures(802)
    x, y = data.x[:577], data.y[:577]
    optimizer, onset, step = torch.optim.AdamW(model.parameters(), 3e-3), 0, 0
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for _ in range(4):
            for rows in torch.randperm(577).split(24):
                if len(rows) == 1:
                    onset = onset or watching.global_step + 1
                optimizer.zero_grad()
                loss(model(x[rows]), y[rows]).backward()
                optimizer.step()
                step += 1
            validate(watching, model, loss, data)
    return onset
