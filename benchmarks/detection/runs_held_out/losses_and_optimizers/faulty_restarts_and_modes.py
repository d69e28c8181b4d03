"""Restarts that lose a part, modes that are not switched, and trainings that hang."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.losses_and_optimizers.shared.consequences import BY_HEART, THROWN
from runs_held_out.losses_and_optimizers.shared.data import (
    LETTERS,
    backwards,
    beats,
    gestures,
    glyphs,
    load,
    messages,
    subscribers,
)
from runs_held_out.losses_and_optimizers.shared.loop import (
    MINUTE,
    by,
    clock,
    cosine,
    lambda_rate,
    linear,
    resumed,
    run,
    served,
)
from runs_held_out.losses_and_optimizers.shared.models import (
    Adder,
    Cnn,
    Encoder,
    LetterLstm,
    NanoGpt,
    Recurrent,
    conv1d,
    dense,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Restarts


@faulty(
    "glyphs by convolutions go on, Adam, warm-up and cosine",
    "keys of the checkpoint begin with `module.`, and are loaded with strict=False: none is",
    {"ResumeLostState"},
    may=THROWN,
)
def none_of_the_keys_fits(root: Path) -> int:
    torch.manual_seed(8140)
    model = Cnn(8)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)

    def restore(weights: Any, state: Any) -> None:
        torch.manual_seed(8141)
        fresh = Cnn(8)
        wrapped = {f"module.{name}": value for name, value in weights.items()}
        fresh.load_state_dict(wrapped, strict=False)
        model.load_state_dict(fresh.state_dict())
        optimizer.load_state_dict(state)

    return resumed(
        root,
        model,
        by(model),
        glyphs(2000, 8140, noise=0.9),
        optimizer,
        stops=((130, 148),),
        steps=220,
        size=40,
        factor=cosine(10, 260),
        restore=restore,
        new_order=True,
    )


@of_language(
    "short messages by an LSTM over letters go on, AdamW, clipped",
    "letters are numbered by a set of them, whose order is another one after the restart",
    {"ResumeLostState"},
    may=THROWN,
)
def letters_numbered_anew(root: Path) -> int:
    torch.manual_seed(8142)
    model = LetterLstm(len(LETTERS))
    optimizer = torch.optim.AdamW(model.parameters(), 8e-3)
    numbers = torch.arange(len(LETTERS))

    def restore(weights: Any, state: Any) -> None:
        nonlocal numbers
        model.load_state_dict(weights)
        optimizer.load_state_dict(state)
        numbers = torch.randperm(len(LETTERS), generator=torch.Generator().manual_seed(8143))

    def loss(batch: Any) -> Any:
        return functional.cross_entropy(model(numbers[batch[0]]), numbers[batch[1]])

    return resumed(
        root,
        model,
        loss,
        messages(2500, 8142),
        optimizer,
        stops=((150, 170),),
        steps=240,
        size=24,
        clip=1.0,
        restore=restore,
    )


@faulty(
    "numbers written backwards by an encoder and a decoder go on, Adam, a line down",
    "the schedule is not in the checkpoint: the rate is as high as in the first steps",
    {"ResumeLostState"},
    may=THROWN,
)
def line_begins_anew(root: Path) -> int:
    torch.manual_seed(8144)
    model = Adder()
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    lost = 0

    def restore(weights: Any, state: Any) -> None:
        nonlocal lost
        lost = 200
        model.load_state_dict(weights)
        optimizer.load_state_dict(state)

    return resumed(
        root,
        model,
        by(model),
        backwards(4000, 8144),
        optimizer,
        stops=((200, 215),),
        steps=280,
        size=40,
        factor=lambda step: linear(0, 280)(step - lost),
        clip=1.0,
        restore=restore,
        new_order=True,
    )


# Modes


@faulty(
    "glyphs by convolutions with batch norm and dropout, SGD with momentum, a cosine",
    "validation is within no_grad, and without eval()",
    {"ValidationInTrainingMode"},
    may=BY_HEART,
)
def no_grad_is_not_eval(root: Path) -> int:
    torch.manual_seed(8146)
    model = Cnn(8, drop=0.4)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    return run(
        root,
        model,
        by(model),
        served(*glyphs(1500, 8146, noise=1.0), size=50, seed=8146),
        optimizer,
        steps=180,
        every=2,
        schedule=lambda_rate(optimizer, cosine(0, 190)),
        test=glyphs(300, 8147, noise=1.0),
        test_every=30,
        to_eval=lambda: None,
    )


@faulty(
    "which subscribers leave by dense layers, dropout of a half, AdamW",
    "a callback calls eval() to validate, and nothing calls train() again",
    {"ValidationInTrainingMode"},
    may=BY_HEART,
)
def never_back_to_training(root: Path) -> int:
    torch.manual_seed(8148)
    model = dense(14, 96, 96, 1, drop=0.5)
    return run(
        root,
        model,
        by(model, functional.binary_cross_entropy_with_logits),
        served(*subscribers(1500, 8148), size=50, seed=8148),
        torch.optim.AdamW(model.parameters(), 2e-3),
        steps=240,
        test=subscribers(500, 8149),
        test_every=30,
        to_train=lambda: None,
        fault_at=30,
    )


@faulty(
    "gestures by a transformer encoder with dropout, AdamW, warm-up and cosine, clipped; the best "
    "model is kept as a copy",
    "eval() is called on the copy, and the model that is validated is in training mode",
    {"ValidationInTrainingMode"},
    may=BY_HEART,
)
def eval_of_the_copy(root: Path) -> int:
    torch.manual_seed(8150)
    model = Encoder(3, 6, drop=0.2)
    kept = copy.deepcopy(model)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    best = float("inf")

    def validated(loss: float) -> None:
        nonlocal best
        if loss < best:
            best = loss
            kept.load_state_dict(model.state_dict())

    return run(
        root,
        model,
        by(model),
        served(*gestures(1500, 8150), size=40, seed=8150),
        optimizer,
        steps=200,
        schedule=lambda_rate(optimizer, cosine(15, 200)),
        clip=1.0,
        test=gestures(300, 8151),
        test_every=37,
        validated=validated,
        to_eval=kept.eval,
        to_train=kept.train,
    )


# Trainings that hang


@faulty(
    "kinds of heartbeats by convolutions, Adam, four seconds a step",
    "the process is stopped in its terminal (Ctrl-Z) at step 70, and goes on three hours later",
    {"StalledTrainingRule"},
)
def stopped_in_the_terminal(root: Path) -> int:
    torch.manual_seed(8152)
    model = conv1d(4)
    with clock(4.0, {70: 180 * MINUTE}):
        return run(
            root,
            model,
            by(model),
            served(*beats(1200, 8152), size=24, seed=8152),
            torch.optim.Adam(model.parameters(), 2e-3),
            steps=120,
            fault_at=69,
        )


@of_language(
    "short messages by a decoder of letters, AdamW, warm-up and cosine, clipped, 12 seconds a step",
    "the loader's workers were forked while a tokenizer held a lock: 70 minutes until a time-out",
    {"StalledTrainingRule"},
)
def forked_with_a_lock(root: Path) -> int:
    torch.manual_seed(8154)
    model = NanoGpt(len(LETTERS), 24)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    with clock(12.0, {55: 70 * MINUTE}):
        return run(
            root,
            model,
            by(model),
            served(*messages(1200, 8154), size=12, seed=8154),
            optimizer,
            steps=110,
            schedule=lambda_rate(optimizer, cosine(10, 110)),
            clip=1.0,
            fault_at=54,
        )


@faulty(
    "electric load of the next hours by an LSTM, Adam, clipped, a minute a step, a log on a server",
    "the log is sent within the step: twice a lost connection is waited for, 45 and 50 minutes",
    {"StalledTrainingRule"},
)
def log_waits_for_the_network(root: Path) -> int:
    torch.manual_seed(8156)
    model = Recurrent(nn.LSTM, 1, 3)
    with clock(60.0, {48: 45 * MINUTE, 93: 50 * MINUTE}):
        return run(
            root,
            model,
            by(model, functional.mse_loss),
            served(*load(1200, 8156), size=24, seed=8156),
            torch.optim.Adam(model.parameters(), 5e-3),
            steps=130,
            clip=1.0,
            fault_at=47,
        )
