"""Trainings whose inputs or labels are wrong."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import (
    TOKENS,
    Split,
    coloured,
    digits,
    images,
    imbalanced,
    pixels,
    random_labels,
    sentences,
    table,
    texts,
)
from training.small_networks import Cnn, Recurrent, Transformer, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

BAD_INPUT = {
    "LossNotDecreasing": "such inputs make learning hard",
    "Confusion": "and its result poor",
    "ClassImbalance": "and some classes are not learnt",
    "DeadRelu": "large inputs make large updates",
    "VanishingGradient": "behind dead units there is no gradient",
    "AllZero": "outputs of dead layers",
    "UnchangedTensor": "behind dead units no weight moves",
    "WeightUpdateRatio": "behind dead units no weight moves",
    "PoorWeightInitialization": "inputs of another scale are as weights of another scale",
    "Overfit": "the losses are large and noisy",
    "Overtraining": "nothing gets better",
}
CONFUSED = {
    "LossNotDecreasing": "what cannot be learnt keeps the loss up",
    "Overfit": "what cannot be learnt is learnt by heart",
    "Overtraining": "no more can be learnt",
    "ClassImbalance": "classes that are always taken for others",
    "Confusion": "classes that are taken for others",
}
PADDED = {
    "Confusion": "padding drowns what is to be learnt",
    "LossNotDecreasing": "padding drowns what is to be learnt",
    "Overfit": "padding drowns what is to be learnt",
    "Overtraining": "nothing more can be learnt",
    "ClassImbalance": "one class is not learnt",
}


@faulty("digits, convolutions", "pixels of 0..255", {"CheckInputImages"}, may=BAD_INPUT)
def raw_images(root: Path) -> int:
    return fit(root, Cnn, pixels(), optimizer=sgd(0.001), save_every=3)


@faulty(
    "digits, convolutions",
    "pixels of 0..1: scaled, but not centred",
    {"CheckInputImages"},
    may=BAD_INPUT,
)
def images_not_centred(root: Path) -> int:
    return fit(root, Cnn, pixels().of(lambda x: x / 255), optimizer=adam(5e-3), save_every=3)


@faulty(
    "digits, convolutions",
    "the mean is subtracted twice",
    {"CheckInputImages"},
    may=BAD_INPUT,
)
def images_centred_twice(root: Path) -> int:
    data = pixels().of(lambda x: (x / 255 - 2 * 0.3) / 0.376)
    return fit(root, Cnn, data, optimizer=adam(5e-3), save_every=3)


@faulty(
    "coloured digits, convolutions",
    "mean and deviation are those of photographs",
    {"CheckInputImages"},
    may=BAD_INPUT,
)
def images_of_other_statistics(root: Path) -> int:
    mean = torch.tensor([0.485, 0.456, 0.406]).reshape(1, 3, 1, 1)
    deviation = torch.tensor([0.229, 0.224, 0.225]).reshape(1, 3, 1, 1)
    data = pixels().of(lambda x: (x.repeat(1, 3, 1, 1) / 255 - mean) / deviation)
    return fit(root, lambda: Cnn(3), data, optimizer=adam(5e-3), save_every=3)


@faulty(
    "coloured digits, convolutions",
    "one channel of three was left as 0..1",
    {"CheckInputImages"},
    may=BAD_INPUT,
)
def one_channel_raw(root: Path) -> int:
    raw = pixels()

    def mixed(x: Any, from_raw: Any) -> Any:
        return torch.cat([x[:, :2], from_raw / 255], 1)

    split = coloured()
    data = Split(mixed(split.x, raw.x), split.y, mixed(split.test_x, raw.test_x), split.test_y)
    return fit(root, lambda: Cnn(3), data, optimizer=adam(5e-3), save_every=3)


@faulty(
    "digits, convolutions",
    "images are inverted after they were normalised",
    {"CheckInputImages"},
    may=BAD_INPUT,
)
def images_inverted(root: Path) -> int:
    return fit(root, Cnn, images().of(lambda x: 1 - x), optimizer=adam(5e-3), save_every=3)


@faulty(
    "sentences, LSTM",
    "sentences are padded to 64 tokens, for one that is so long",
    {"NLPSequenceRatio"},
    may=PADDED,
)
def padded_to_64(root: Path) -> int:
    make = lambda: Recurrent(nn.LSTM, 2)
    return fit(root, make, sentences(length=64), optimizer=adam(0.01), steps=60, save_every=3)


@faulty(
    "sentences, GRU",
    "sentences of 2 to 16 tokens, most of them short, are padded to 32",
    {"NLPSequenceRatio"},
    may=PADDED,
)
def padded_to_32(root: Path) -> int:
    make = lambda: Recurrent(nn.GRU, 2)
    data = sentences(shortest=2, length=32)
    return fit(root, make, data, optimizer=adam(0.01), steps=60, save_every=3)


@faulty(
    "sentences, transformer",
    "the vocabulary knows 6 words: all others become token 0",
    {"NLPSequenceRatio"},
    may=PADDED,
)
def unknown_words(root: Path) -> int:
    make = lambda: Transformer(2)
    data = sentences().of(lambda x: torch.where(x <= 6, x, 0))
    return fit(root, make, data, optimizer=adam(3e-3), steps=60, save_every=3)


@faulty(
    "a small language, causal transformer",
    "texts are cut to 4 tokens, the rest of each row is padding",
    {"NLPSequenceRatio"},
    may=PADDED,
    kind="language_model",
)
def cut_texts(root: Path) -> int:
    def cut(x: Any) -> Any:
        return torch.cat([x[:, :4], torch.zeros_like(x[:, 4:])], 1)

    make = lambda: Transformer(TOKENS, causal=True)
    return fit(root, make, texts().of(cut), optimizer=adam(5e-3), steps=60, save_every=3)


@faulty(
    "sentences, LSTM",
    "from step 40 on batches come from a broken cache: mostly zeros",
    {"NLPSequenceRatio"},
    may=PADDED,
)
def broken_cache(root: Path) -> int:
    data, first = sentences(), 40 * 32

    def broken(x: Any) -> Any:
        late = torch.arange(len(x))[:, None] >= first % len(x)
        return torch.where(late, x * (torch.arange(x.shape[1]) < 4), x)

    make = lambda: Recurrent(nn.LSTM, 2)
    bad = Split(broken(data.x), data.y, data.test_x, data.test_y)
    # 900 sentences in order: batches from the 12th on hold broken ones.
    fit(root, make, bad, optimizer=adam(0.01), steps=60, shuffle=False, save_every=1)
    return first % len(data.x) // 32


@faulty(
    "breast cancer, one class 40 times as frequent",
    "a filter has removed nearly all of a class",
    {"ClassImbalance"},
    may=CONFUSED,
)
def class_filtered(root: Path) -> int:
    data = imbalanced(table("breast_cancer"), 0, 20)
    return fit(root, mlp(30, 16, 2), data, optimizer=adam(5e-3), steps=80)


@faulty(
    "digits, one class 30 times as rare as the others",
    "the digit 4 was lost in most files",
    {"ClassImbalance"},
    may=CONFUSED,
)
def digit_lost(root: Path) -> int:
    data = imbalanced(digits(), 4, 30)
    return fit(root, mlp(64, 48, 10), data, optimizer=sgd(0.1, momentum=0.5), batch=64)


@faulty(
    "digits in the order of their classes",
    "batches are not shuffled: one class at a time",
    {"RepeatedBatches"},
    may=CONFUSED
    | {
        "WeightUpdateRatio": "each batch undoes the last one's learning",
        "ClassImbalance": "classes of long ago are mispredicted, for a while",
    },
)
def not_shuffled(root: Path) -> int:
    data = digits()
    order = torch.argsort(data.y, stable=True)
    return fit(root, mlp(64, 48, 10), data.chosen(order), shuffle=False, steps=160, save_every=1)


@faulty(
    "wine, a sampler with weights",
    "the sampler's weights are those of the counts instead of their inverse",
    {"ClassImbalance"},
    may=CONFUSED,
)
def sampler_inverted(root: Path) -> int:
    data = table("wine")
    chances = torch.bincount(data.y).float()[data.y] ** 6
    generator = torch.Generator().manual_seed(0)
    rows = torch.multinomial(chances, 1200, replacement=True, generator=generator)
    return fit(root, mlp(13, 16, 3), data.chosen(rows), steps=80, save_every=1)


@faulty(
    "digits, labels of two classes lost their meaning",
    "the labels 3 and 8 are drawn anew each time a sample is read",
    {"Confusion"},
    may=CONFUSED,
)
def labels_of_two_mixed(root: Path) -> int:
    generator = torch.Generator().manual_seed(0)

    def mixed(y: Any) -> Any:
        coin = torch.randint(0, 2, y.shape, generator=generator) * 5 + 3
        return torch.where((y == 3) | (y == 8), coin, y)

    data = digits().relabelled(mixed)
    return fit(root, mlp(64, 48, 10), data, steps=160, save_every=4)


@faulty(
    "digits, one label is another's",
    "an annotator wrote 1 for every 7 that is tested, and left the training's alone",
    {"Confusion"},
    may=CONFUSED,
)
def labels_moved(root: Path) -> int:
    data = digits()
    test_y = torch.where(data.test_y == 7, 1, data.test_y)
    moved = Split(data.x, data.y, data.test_x, test_y)
    return fit(root, mlp(64, 48, 10), moved, steps=160, save_every=4)


@faulty(
    "wine, labels at random in the training data",
    "a join by the wrong key",
    {"Confusion"},
    may=CONFUSED,
)
def wrong_join(root: Path) -> int:
    data = table("wine").taught(random_labels(3))
    return fit(root, mlp(13, 16, 3), data, steps=120, optimizer=sgd(0.05))


@faulty(
    "digits, labels are shifted by one in the validation data",
    "validation labels count from 1",
    {"Confusion"},
    may=CONFUSED | {"Overfit": "validation goes wrong as training goes well"},
)
def labels_shifted(root: Path) -> int:
    data = digits()
    shifted = Split(data.x, data.y, data.test_x, (data.test_y + 1) % 10)
    return fit(root, mlp(64, 48, 10), shifted, steps=120)


@faulty(
    "digits, one class is never among the training data",
    "the loader skips a folder: no 9 is ever learnt",
    {"ClassImbalance", "Confusion"},
    may=CONFUSED,
)
def folder_skipped(root: Path) -> int:
    data = digits()
    return fit(
        root, mlp(64, 48, 10), data.chosen(data.y != 9), steps=160, save_every=8, validate_every=20
    )
