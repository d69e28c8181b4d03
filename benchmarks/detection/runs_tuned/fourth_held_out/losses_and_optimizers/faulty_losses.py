"""Losses that do not fall, or that jump."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.nn.utils import prune

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.consequences import DAMAGED, UNTAUGHT
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    LETTERS,
    TOPICS,
    WORDS,
    addresses,
    dice,
    letters_to_editors,
    plaids,
    power,
    strokes_of_digits,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import cosine, dealt, learn, of
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import (
    Bag,
    Dilated,
    Mixer,
    Recalling,
    Weaver,
    Writer,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")


@faulty(
    "woven patterns in bytes by a mixer of patches, AdamW, warm-up and cosine",
    "bytes are divided by 255 as whole numbers before they become floats: pictures are black",
    {"LossNotDecreasing"},
    may=UNTAUGHT
    | {"CheckInputImages": "pictures are black", "RepeatedBatches": "black pictures are equal"},
)
def whole_numbers_of_grey(root: Path) -> int:
    torch.manual_seed(700)
    x, y = plaids(600, 700)
    grey = ((x + 3) * 42).clamp(0, 254).to(torch.uint8) // 255
    model = Mixer()
    nn.init.normal_(model.head.weight, std=0.02)
    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(grey.float(), y, size=32, seed=700),
        torch.optim.AdamW(model.parameters(), 2e-3),
        steps=180,
        schedule=cosine(10, 180),
    )


@faulty(
    "topics of letters to editors, words are hashed to 160 numbers, a mean of embeddings, Adam",
    "workers of the loader, begun anew in each epoch, hash with a salt of their own",
    {"LossNotDecreasing"},
    may=UNTAUGHT,
)
def hashed_with_salt(root: Path) -> int:
    torch.manual_seed(701)
    x, y = letters_to_editors(640, 701)
    random = dice(701)
    salts: list[Any] = []

    def read() -> Any:
        for number, (words, topics) in enumerate(dealt(x, y, size=32, seed=701)):
            if number % 20 == 0:
                salts[:] = [torch.randperm(WORDS, generator=random) for _ in range(4)]
            yield salts[number % 4][words], topics

    model = Bag(WORDS, TOPICS)
    nn.init.normal_(model.layers[-1].weight, std=0.02)
    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        read(),
        torch.optim.Adam(model.parameters(), 1e-3),
        steps=240,
        save_every=2,
    )


@faulty(
    "six hours of power ahead by dilated convolutions, noise is added to inputs, Nesterov momentum",
    "noise grows by 1.7 with each epoch of 20 batches, and a bound of 0.5 is not applied",
    {"LossNotDecreasing"},
    may=DAMAGED,
)
def noise_without_ceiling(root: Path) -> int:
    torch.manual_seed(702)
    random = dice(702)

    def read() -> Any:
        for number, (x, y) in enumerate(dealt(*power(480, 702), size=24, seed=702)):
            noise = 0.08 * 1.7 ** (number // 20)
            yield x + noise * torch.randn(x.shape, generator=random), y

    model = Dilated()
    return learn(
        root,
        model,
        of(model, nn.MSELoss()),
        read(),
        torch.optim.SGD(model.parameters(), 0.03, momentum=0.9, nesterov=True),
        steps=240,
        clip=1.0,
        at=80,
    )


@faulty(
    "woven patterns by convolutions with batch norm, Adam, validated once after 130 steps",
    "train() is not called after the validation, and running averages take half a per cent of a "
    "batch, as by another library's sense of momentum: they are still far from what layers see",
    {"LossSpike"},
    may=DAMAGED | {"ValidationInTrainingMode": "training goes on in evaluation mode"},
)
def eval_with_early_averages(root: Path) -> int:
    torch.manual_seed(703)
    x, y = plaids(900, 703, 0.8)
    model = Weaver(over_batch=True)
    for part in model.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 0.006
    objective = of(model, nn.CrossEntropyLoss(label_smoothing=0.05))

    def before(step: int) -> None:
        if step == 130:
            model.eval()

    return learn(
        root,
        model,
        objective,
        dealt(x, y, size=32, seed=703),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=230,
        schedule=lambda step: 1.0 if step < 70 else 0.1 if step < 110 else 0.003,
        before=before,
        at=130,
        include_collections=["losses"],
    )


@faulty(
    "digits by a recurrent network over columns, Adam with lookahead: slow weights every 30 steps",
    "slow weights are a copy that is never updated: all go back halfway to the first weights",
    {"LossSpike"},
    may=DAMAGED | UNTAUGHT,
)
def slow_weights_never_move(root: Path) -> int:
    torch.manual_seed(704)
    model = Recalling(8, 32, 10)
    slow = copy.deepcopy(model)

    def after(step: int) -> None:
        if (step + 1) % 30 == 0:
            with torch.no_grad():
                for fast, kept in zip(model.parameters(), slow.parameters(), strict=True):
                    fast.lerp_(kept, 0.5)

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*strokes_of_digits(), size=128, seed=704),
        torch.optim.Adam(model.parameters(), 0.015),
        steps=240,
        after=after,
        at=29,
        include_collections=["losses"],
    )


@of_language(
    "a decoder of addresses, AdamW, a rate that falls; a sixth of weights is pruned at step 150",
    "the share to keep is passed as the share to prune: five sixths of each layer are cut off",
    {"LossSpike"},
    may=DAMAGED,
)
def share_to_keep_is_pruned(root: Path) -> int:
    torch.manual_seed(705)
    model = Writer(len(LETTERS))

    def before(step: int) -> None:
        if step == 150:
            for block in model.blocks:
                for layer in (block.up, block.down, block.out):
                    prune.l1_unstructured(layer, "weight", 5 / 6)
                    prune.remove(layer, "weight")

    return learn(
        root,
        model,
        lambda batch: functional.cross_entropy(model(batch[0]), batch[1]),
        dealt(*addresses(800, 705), size=24, seed=705),
        torch.optim.AdamW(model.parameters(), 6e-3),
        steps=240,
        schedule=lambda step: 1.0 if step < 90 else 0.1 if step < 130 else 0.01,
        clip=1.0,
        before=before,
        at=150,
    )
