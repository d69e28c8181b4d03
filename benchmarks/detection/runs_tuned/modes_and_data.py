"""Faults of data loaders, losses, gradients that add up, and modules in the wrong mode."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.language import Gpt, corpus
from training.language_loop import gpt_fit
from training.learnt_data import Split, diabetes, digits, images, sentences, table, waves
from training.small_networks import Cnn, Recurrent, Transformer, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty, healthy

from runs_tuned.faulty.data import CONFUSED
from runs_tuned.faulty.learning import BLOWN_UP, UNTRAINED
from runs_tuned.healthy.vision import VisionTransformer

# Dropout and batch norm that work as in training while the model is evaluated.

TRAINING_MODE = {"ValidationInTrainingMode"}
NOISY_VALIDATION = CONFUSED | {"Overfit": "validation is as noisy as training"}


@faulty("digits, dropout of a half", "eval() was forgotten", TRAINING_MODE, may=NOISY_VALIDATION)
def eval_forgotten_dropout(root: Path) -> int:
    make = mlp(64, 64, 48, 10, drop=0.5)
    return fit(root, make, digits(), steps=200, save_every=4, modules_are_switched=False)


@faulty("digits, batch norm", "eval() was forgotten", TRAINING_MODE, may=NOISY_VALIDATION)
def eval_forgotten_batch_norm(root: Path) -> int:
    make = lambda: Cnn(norm=True)
    return fit(
        root, make, images(), steps=160, save_every=4, validate_batch=50, modules_are_switched=False
    )


@faulty("sentences, transformer", "eval() was forgotten", TRAINING_MODE, may=NOISY_VALIDATION)
def eval_forgotten_transformer(root: Path) -> int:
    make = lambda: Transformer(2)
    return fit(root, make, sentences(), optimizer=adam(), steps=100, modules_are_switched=False)


@faulty("digits, vision transformer", "eval() was forgotten", TRAINING_MODE, may=NOISY_VALIDATION)
def eval_forgotten_vit(root: Path) -> int:
    return fit(
        root,
        VisionTransformer,
        images(),
        optimizer=adam(2e-3),
        steps=120,
        save_every=4,
        modules_are_switched=False,
    )


@faulty(
    "a GPT with dropout",
    "eval() was forgotten",
    TRAINING_MODE,
    may=NOISY_VALIDATION,
    kind="language_model",
)
def eval_forgotten_gpt(root: Path) -> int:
    return gpt_fit(root, lambda: Gpt(drop=0.2), modules_are_switched=False)


# Gradients that are never cleared.

ADDED_UP = BLOWN_UP | {
    "GradientNormSpike": "sums of gradients grow",
    "LossSpike": "sums of gradients make updates too large",
    "NormGrowth": "updates grow",
    "StalledParameters": "dead units",
    "AttentionCollapse": "updates grow",
}
ADDS_UP = {"GradientAccumulates"}


def kept(_: Any) -> None:
    """Clear no gradients."""


@faulty("digits, two ReLU layers, SGD", "zero_grad() was forgotten", ADDS_UP, may=ADDED_UP)
def zero_grad_forgotten(root: Path) -> int:
    return fit(root, mlp(64, 48, 32, 10), digits(), optimizer=sgd(0.002), clear=kept, steps=160)


@faulty("digits, convolutions, Adam", "zero_grad() was forgotten", ADDS_UP, may=ADDED_UP)
def zero_grad_forgotten_adam(root: Path) -> int:
    return fit(root, Cnn, images(), optimizer=adam(1e-3), clear=kept, steps=120)


@faulty("sine waves, GRU, clipped", "zero_grad() was forgotten", ADDS_UP, may=ADDED_UP)
def zero_grad_forgotten_gru(root: Path) -> int:
    make = lambda: Recurrent(nn.GRU, 1, tokens=False)
    return fit(
        root,
        make,
        waves(),
        loss=nn.MSELoss(),
        optimizer=sgd(1e-3),
        clear=kept,
        steps=120,
        save_every=3,
    )


@faulty("diabetes, regression", "zero_grad() was forgotten", ADDS_UP, may=ADDED_UP)
def zero_grad_forgotten_regression(root: Path) -> int:
    return fit(root, mlp(10, 16, 1), diabetes(), loss=nn.MSELoss(), optimizer=sgd(2e-4), clear=kept)


@faulty(
    "a GPT",
    "zero_grad() was forgotten, and nothing is clipped",
    ADDS_UP,
    may=ADDED_UP,
    kind="language_model",
)
def zero_grad_forgotten_gpt(root: Path) -> int:
    optimizer = sgd(1e-3)
    return gpt_fit(root, optimizer=optimizer, clear=kept, clip=0.0)


@faulty(
    "digits, two ReLU layers",
    "from step 60 on zero_grad() is skipped, by a condition",
    ADDS_UP,
    may=ADDED_UP,
)
def zero_grad_skipped(root: Path) -> int:
    steps = []

    def clear(optimizer: Any) -> None:
        steps.append(1)
        if len(steps) < 60:
            optimizer.zero_grad()

    mark = lambda *_: None
    return fit(
        root,
        mlp(64, 48, 32, 10),
        digits(),
        optimizer=sgd(0.01),
        clear=clear,
        steps=160,
        at=60,
        change=mark,
    )


# Loaders that return the same rows again, or rows that are also evaluated.

REPEATS = {"RepeatedBatches"}
AGAIN = CONFUSED | {
    "Overfit": "few rows are learnt by heart",
    "UnchangedTensor": "all is learnt by heart",
    "VanishingGradient": "all is learnt by heart",
    "WeightUpdateRatio": "all is learnt by heart",
    "StalledParameters": "all is learnt by heart",
}


@faulty("digits", "each step takes the loader's first batch", REPEATS, may=AGAIN)
def first_batch_again(root: Path) -> int:
    data = digits().chosen(slice(32))
    return fit(root, mlp(64, 48, 10), data, shuffle=False, optimizer=sgd(0.05), steps=120)


@faulty("digits, convolutions", "the seed of the loader is set in each step", REPEATS, may=AGAIN)
def seed_set_in_each_step(root: Path) -> int:
    data = images()
    rows = torch.randperm(len(data.x), generator=torch.Generator().manual_seed(0))[:64]
    return fit(root, Cnn, data.chosen(rows), optimizer=adam(), batch=64, steps=120, save_every=1)


@faulty(
    "a GPT, a buffer of 64 windows",
    "from step 40 on the buffer is not filled again: its windows come in ever new orders",
    REPEATS,
    may=AGAIN,
    kind="language_model",
)
def buffer_never_filled(root: Path) -> int:
    data = corpus()
    generator = torch.Generator().manual_seed(0)
    # The same 64 windows from the start could not be told from a small set of data.
    buffer = [576 + torch.randperm(64, generator=generator) for _ in range(20)]
    rows = torch.cat([torch.arange(640), *buffer])
    mark = lambda *_: None
    return gpt_fit(
        root, data=data.chosen(rows), shuffle=False, steps=120, at=40, change=mark, save_every=1
    )


@faulty(
    "digits, sorted by class",
    "one class to a batch: nothing is shuffled",
    REPEATS,
    may=AGAIN
    | {
        "ClassImbalance": "one class at a time",
        "LossNotDecreasing": "each batch undoes the last one's",
    },
)
def sorted_by_class(root: Path) -> int:
    data = digits()
    order = torch.argsort(data.y, stable=True)
    return fit(root, mlp(64, 48, 10), data.chosen(order), shuffle=False, steps=120, save_every=1)


@faulty(
    "breast cancer",
    "the validation rows are a part of the training rows",
    REPEATS,
    may=AGAIN,
)
def validated_on_training_rows(root: Path) -> int:
    data = table("breast_cancer")
    leaked = Split(data.x, data.y, data.x[:100], data.y[:100])
    return fit(root, mlp(30, 16, 2), leaked, optimizer=sgd(0.05), save_every=1)


# Losses that get chances where they want logits, or the other way round.

CHANCES = {"ProbabilitiesAsLogits"}
SLOW = (
    UNTRAINED
    | CONFUSED
    | {
        "VanishingGradient": "two softmaxes leave little gradient",
        "UnchangedTensor": "hardly anything moves",
        "Overfit": "the loss means something else",
    }
)


class Ended(nn.Module):
    """A model with an activation at its end."""

    def __init__(self, model: Any, end: Any) -> None:
        super().__init__()
        self.model, self.end = model, end

    def forward(self, x: Any) -> Any:
        return self.end(self.model(x))


@faulty("digits", "a softmax stands before cross entropy", CHANCES, may=SLOW)
def softmax_before_cross_entropy(root: Path) -> int:
    make = lambda: Ended(mlp(64, 48, 10)(), nn.Softmax(1))
    return fit(root, make, digits(), steps=160, optimizer=sgd(0.1, momentum=0.9))


@faulty("digits, convolutions", "a softmax stands before cross entropy", CHANCES, may=SLOW)
def softmax_after_convolutions(root: Path) -> int:
    make = lambda: Ended(Cnn(), nn.Softmax(1))
    return fit(root, make, images(), optimizer=adam(3e-3), steps=120, save_every=3)


@faulty("breast cancer", "a sigmoid stands before a loss of logits", CHANCES, may=SLOW)
def sigmoid_before_logits(root: Path) -> int:
    data = table("breast_cancer").relabelled(lambda y: y[:, None].float())
    make = lambda: Ended(mlp(30, 16, 1)(), nn.Sigmoid())
    return fit(root, make, data, loss=nn.BCEWithLogitsLoss(), optimizer=sgd(0.1, momentum=0.5))


@faulty(
    "wine",
    "logits are given to the negative log-likelihood",
    CHANCES,
    may=BLOWN_UP | UNTRAINED | {"NormGrowth": "a loss without a limit below"},
)
def logits_as_logarithms(root: Path) -> int:
    return fit(
        root, mlp(13, 16, 3), table("wine"), loss=nn.NLLLoss(), optimizer=sgd(0.01), steps=80
    )


@faulty(
    "a GPT",
    "a softmax stands before cross entropy",
    CHANCES,
    may=SLOW,
    kind="language_model",
)
def softmax_after_words(root: Path) -> int:
    return gpt_fit(root, lambda: Ended(Gpt(), nn.Softmax(1)))


@healthy("digits, a log-softmax before cross entropy: its softmax is the same")
def log_softmax_before_cross_entropy(root: Path) -> int:
    make = lambda: Ended(mlp(64, 48, 10)(), nn.LogSoftmax(1))
    return fit(root, make, digits(), steps=160, optimizer=sgd(0.1))
