"""Held-out runs with learning rates that are wrong, or batches that are mostly one token."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from training.learnt_data import Split
from training.torch_loop import adam, fit, sgd

from runs_tuned.first_held_out.language.attention_and_routers import nothing
from runs_tuned.first_held_out.language.consequences import DAMAGED, ONE_TOKEN, STILL
from runs_tuned.first_held_out.language.networks import (
    Decoder,
    DilatedConvolutions,
    LetterLstm,
    OfTransformers,
    Tagger,
    Translator,
    opt,
)
from runs_tuned.first_held_out.language.texts import (
    CHARACTERS,
    NOTHING,
    WORDS,
    encoded,
    english,
    grammar,
    prose,
    tagged,
    translations,
    windows,
    with_masks,
)

faulty = functools.partial(training_runs.faulty, kind="language_model")


# Learning rates.


@training_runs.faulty(
    "names in sentences, a bidirectional LSTM, SGD with momentum",
    "a cubic decay is not cut at its end after 80 of 150 steps: it goes on below zero",
    {"LearningRate"},
    may=DAMAGED | {"UnchangedTensor": "about zero the rate changes nothing for some steps"},
)
def cubic_below_zero(root: Path) -> int:
    schedule = lambda step: (1 - step / 80) ** 3
    return fit(
        root,
        Tagger,
        tagged(),
        optimizer=sgd(0.5, momentum=0.9),
        schedule=schedule,
        steps=150,
        save_every=1,
        at=81,
        change=nothing,
    )


@faulty(
    "OPT of transformers",
    "the warm-up of 2,000 steps divides integers: the rate is 0 in all of them",
    {"LearningRate", "LossNotDecreasing", "UnchangedTensor"},
    may=STILL,
)
def warm_up_in_integers(root: Path) -> int:
    schedule = lambda step: float(min(1, step // 2000))
    return fit(root, opt, english(), optimizer=adam(3e-3), schedule=schedule, batch=16)


@faulty(
    "convolutions of sentences, AdamW, one cycle of the rate, four batches accumulated",
    "the schedule is stepped at each batch, not at each update: its end is a quarter of the way",
    {"LearningRate"},
    may=STILL,
)
def cycle_of_batches(root: Path) -> int:
    def schedule(step: int) -> float:
        progress = min(1.0, step / 60)
        return progress / 0.3 if progress < 0.3 else 0.5 * (1 + math.cos((progress - 0.3) * 4.488))

    return fit(
        root,
        lambda: DilatedConvolutions(WORDS),
        grammar(),
        optimizer=adam(0.011, torch.optim.AdamW),
        schedule=lambda step: max(0.0, schedule(step)) if step < 60 else 0.0,
        batch=8,
        accumulate=4,
        steps=240,
        save_every=4,
        validate_every=60,
        at=60,
        change=nothing,
    )


@faulty(
    "a decoder of letters, AdamW",
    "at step 90 more workers join, and the rate is multiplied by their number, 64",
    {"LearningRate"},
    may=DAMAGED,
)
def workers_join(root: Path) -> int:
    schedule = lambda step: min(1.0, (step + 1) / 10) * (64.0 if step >= 90 else 1.0)
    return fit(
        root,
        lambda: Decoder(CHARACTERS),
        english(),
        optimizer=adam(1e-3, torch.optim.AdamW),
        schedule=schedule,
        clip=1.0,
        batch=16,
        steps=150,
        save_every=1,
        at=90,
        change=nothing,
    )


@faulty(
    "an LSTM of letters, SGD, cosine",
    "the length of the cosine is in batches, but it is stepped once an epoch: it hardly falls",
    {"LearningRate"},
    may={"Overtraining": "the rate stays as high as at the start"},
)
def cosine_of_batches(root: Path) -> int:
    schedule = lambda step: 0.5 * (1 + math.cos(math.pi * (step // 25) / 200))
    return fit(
        root,
        lambda: LetterLstm(drop=0.0),
        english(),
        optimizer=sgd(3.0),
        schedule=schedule,
        clip=0.5,
        batch=20,
        steps=200,
        save_every=1,
        validate_every=50,
    )


@faulty(
    "a decoder of sentences, AdamW, warm-up of 400 batches",
    "the warm-up is stepped once an epoch: the rate is still at a fiftieth after eight",
    {"LearningRate"},
    may=STILL,
)
def warm_up_by_epoch(root: Path) -> int:
    schedule = lambda step: (step // 22 + 1) / 400
    return fit(
        root,
        lambda: Decoder(WORDS),
        grammar(),
        optimizer=adam(4e-3, torch.optim.AdamW),
        schedule=schedule,
        batch=16,
        steps=176,
        save_every=1,
        validate_every=44,
    )


# Tokens.


@faulty(
    "T5 of transformers translates",
    "sources and targets are padded to 40 tokens, which none of them reaches",
    {"NLPSequenceRatio"},
    may=ONE_TOKEN,
)
def padded_to_the_maximum(root: Path) -> int:
    data = translations()

    class Padded(Translator):
        def forward(self, x: Any) -> Any:
            source, before = x[:, :40], x[:, 40:]
            output = self.model(
                input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=before
            )
            return output.logits.transpose(1, 2)

    def wide(x: Any) -> Any:
        pad = torch.full((len(x), 32), NOTHING)
        return torch.cat([x[:, :8], pad, x[:, 8:], pad], 1)

    targets = lambda y: torch.cat([y, torch.full((len(y), 32), -100)], 1)
    padded = data.of(wide).relabelled(targets)
    optimizer = adam(0.02, torch.optim.Adafactor)
    return fit(root, Padded, padded, optimizer=optimizer, batch=16, steps=60, save_every=3)


@faulty(
    "DistilBERT of transformers, hidden words are token 0",
    "a comparison is the wrong way round: 85 % of the words are hidden instead of 15 %",
    {"NLPSequenceRatio"},
    may=ONE_TOKEN,
)
def most_words_hidden(root: Path) -> int:
    shape = {"dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "vocab_size": WORDS}
    make = lambda: OfTransformers("DistilBertForMaskedLM", **shape, max_position_embeddings=32)
    data = with_masks(grammar(), 0.85, NOTHING)
    optimizer = adam(3e-3, torch.optim.AdamW)
    return fit(root, make, data, optimizer=optimizer, batch=16, steps=70, save_every=3)


@faulty(
    "an LSTM of letters, texts in order",
    "from step 50 on texts are in capitals, which the vocabulary does not have",
    {"NLPSequenceRatio"},
    may=ONE_TOKEN | {"LossSpike": "the text changes", "GradientNormSpike": "the text changes"},
)
def texts_in_capitals(root: Path) -> int:
    small, large = english(24, 6), windows(encoded(prose().upper()), 24, 6)
    rows = torch.randperm(len(small.x), generator=torch.Generator().manual_seed(3))
    early, late = rows[: 50 * 16], rows[50 * 16 : 90 * 16]
    mixed = Split(
        torch.cat([small.x[early], large.x[late]]),
        torch.cat([small.y[early], large.y[late]]),
        small.test_x,
        small.test_y,
    )
    return fit(
        root,
        LetterLstm,
        mixed,
        optimizer=sgd(4.0),
        clip=0.5,
        batch=16,
        steps=90,
        shuffle=False,
        at=50,
        change=nothing,
    )
