"""Healthy trainings of language models: from scratch, adapted, with experts, in low precision."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from training.language import (
    Gpt,
    MaskedModel,
    StateSpace,
    corpus,
    gpt2,
    llama,
    masked,
    pretrained,
    warm_up_and_cosine,
    with_adapters,
)
from training.language_loop import adamw, experts_fit
from training.learnt_data import Split
from training.torch_loop import adam, fit, scaled_fit

healthy = functools.partial(training_runs.healthy, kind="language_model")


@healthy("a GPT of two blocks, AdamW, warm-up and cosine, gradients clipped at 1")
def gpt_cosine(root: Path) -> int:
    return fit(
        root,
        Gpt,
        corpus(),
        optimizer=adamw(5e-3),
        schedule=warm_up_and_cosine(15, 150),
        clip=1.0,
        batch=16,
        steps=150,
    )


@healthy("a GPT with untied embeddings, Adam at a constant rate, not clipped")
def gpt_constant(root: Path) -> int:
    make = lambda: Gpt(tied=False)
    return fit(root, make, corpus(), optimizer=adam(2e-3), batch=16, steps=150)


@healthy("a GPT, gradients of four batches accumulated, every update saved")
def gpt_accumulated(root: Path) -> int:
    return fit(
        root,
        Gpt,
        corpus(),
        optimizer=adamw(5e-3),
        batch=8,
        accumulate=4,
        clip=1.0,
        steps=320,
        save_every=4,
        validate_every=80,
    )


@healthy("a GPT of 400 words, most of them rare")
def gpt_rare_words(root: Path) -> int:
    data = corpus(400)
    make = lambda: Gpt(400)
    return fit(root, make, data, optimizer=adamw(3e-3), clip=1.0, batch=16, steps=150)


@healthy("a GPT, every tenth step saved")
def gpt_seldom_saved(root: Path) -> int:
    return fit(
        root,
        Gpt,
        corpus(),
        optimizer=adamw(3e-3),
        schedule=warm_up_and_cosine(20, 300),
        batch=16,
        steps=300,
        save_every=10,
        validate_every=100,
    )


@healthy("a GPT, losses alone saved, every tenth step")
def gpt_losses_seldom(root: Path) -> int:
    return fit(
        root,
        Gpt,
        corpus(),
        optimizer=adamw(3e-3),
        batch=16,
        steps=300,
        save_every=10,
        validate_every=50,
        include_collections=["losses"],
    )


@healthy("GPT-2 of transformers, AdamW, linear warm-up")
def gpt2_small(root: Path) -> int:
    return fit(
        root,
        gpt2,
        corpus(),
        optimizer=adamw(3e-3),
        schedule=warm_up_and_cosine(20, 120),
        clip=1.0,
        batch=16,
        steps=120,
        save_every=3,
    )


@healthy("Llama of transformers, AdamW, cosine")
def llama_small(root: Path) -> int:
    return fit(
        root,
        llama,
        corpus(),
        optimizer=adamw(3e-3),
        schedule=warm_up_and_cosine(10, 120),
        clip=1.0,
        batch=16,
        steps=120,
        save_every=3,
    )


@healthy("a masked language model, 15 % of the words masked")
def masked_words(root: Path) -> int:
    return fit(
        root,
        MaskedModel,
        masked(corpus()),
        optimizer=adamw(3e-3),
        schedule=warm_up_and_cosine(20, 200),
        steps=200,
        save_every=4,
        validate_every=40,
    )


@healthy("a pretrained GPT adapted to another language by low-rank updates")
def gpt_adapted(root: Path) -> int:
    make = lambda: with_adapters(pretrained(Gpt, corpus()))
    return fit(root, make, corpus(seed=5), optimizer=adam(5e-3), batch=16, steps=150)


@healthy("a pretrained GPT, fine-tuned as a whole at a low rate, small batches")
def gpt_fine_tuned(root: Path) -> int:
    make = lambda: pretrained(Gpt, corpus())
    data = corpus(count=200, seed=4)
    return fit(
        root,
        make,
        data,
        optimizer=adamw(3e-4),
        batch=4,
        steps=120,
        clip=1.0,
        validate_every=40,
    )


@healthy("a pretrained GPT, fine-tuned further on its own language: the loss is level")
def gpt_level(root: Path) -> int:
    make = lambda: pretrained(Gpt, corpus(), 300)
    return fit(root, make, corpus(), optimizer=adamw(1e-4), batch=16, steps=120, clip=1.0)


@healthy("a mixture of four experts with a balancing loss")
def gpt_experts(root: Path) -> int:
    make = lambda: Gpt(experts=4)
    return experts_fit(root, make, steps=150)


@healthy("a mixture of eight experts, one block")
def gpt_eight_experts(root: Path) -> int:
    make = lambda: Gpt(experts=8, layers=1)
    return experts_fit(root, make, 0.05, optimizer=adamw(2e-3))


@healthy("a GPT whose learning rate falls by half every 40 steps")
def gpt_staircase(root: Path) -> int:
    schedule = lambda step: 0.5 ** (step // 40)
    return fit(root, Gpt, corpus(), optimizer=adamw(5e-3), schedule=schedule, batch=16, steps=160)


@healthy("a GPT computed in bfloat16 where PyTorch deems it safe")
def gpt_bfloat16(root: Path) -> int:
    def make() -> Any:
        model = Gpt()
        model.forward = torch.autocast("cpu", dtype=torch.bfloat16)(model.forward)
        return model

    return fit(root, make, corpus(), optimizer=adamw(3e-3), clip=1.0, batch=16, steps=150)


@healthy("a GPT in half precision with a gradient scaler that looks for its scale")
def gpt_scaled(root: Path) -> int:
    return scaled_fit(root, Gpt, corpus(), optimizer=adamw(3e-3), scale=2.0**24, steps=150)


@healthy("a GPT, evaluated on 15 rows")
def gpt_validated_on_15_rows(root: Path) -> int:
    data = corpus()
    small = Split(data.x, data.y, data.test_x[:15], data.test_y[:15])
    return fit(root, Gpt, small, optimizer=adamw(3e-3), batch=16, steps=150, validate_every=15)


@healthy("a linear recurrence with gates and a decay as its logarithm")
def gated_recurrence(root: Path) -> int:
    return fit(root, StateSpace, corpus(), optimizer=adam(5e-3), batch=16, steps=120, save_every=3)


@healthy("a GPT with dropout, plain SGD with momentum")
def gpt_sgd(root: Path) -> int:
    make = lambda: Gpt(drop=0.1, tied=False)
    optimizer = functools.partial(torch.optim.SGD, lr=0.3, momentum=0.9)
    return fit(root, make, corpus(), optimizer=optimizer, clip=1.0, batch=16, steps=200)


@healthy("a GPT of one window for each of four hundred texts, five epochs, batches in order")
def gpt_in_order(root: Path) -> int:
    data = corpus(count=500)
    return fit(root, Gpt, data, optimizer=adamw(3e-3), batch=16, steps=125, shuffle=False, clip=1.0)
