"""Trainings that learn by heart, or go on for too long."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import diabetes, digits, images, random_labels, sentences, table, waves
from training.small_networks import Cnn, Recurrent, Transformer, mlp
from training.torch_loop import adam, fit, sgd
from training_runs import faulty

BY_HEART = {
    "Overtraining": "the training goes on although validation gets worse",
    "LossNotDecreasing": "the validation loss rises",
    "Confusion": "what was learnt by heart does not hold for other data",
    "ClassImbalance": "what was learnt by heart does not hold for other data",
    "UnchangedTensor": "once all is learnt by heart hardly anything moves",
    "VanishingGradient": "once all is learnt by heart gradients are tiny",
    "WeightUpdateRatio": "once all is learnt by heart hardly anything moves",
    "PoorWeightInitialization": "gradients of few samples",
}
TOO_LONG = {
    "LossNotDecreasing": "a loss that is as low as it gets",
    "Overfit": "validation gets worse with time",
    "UnchangedTensor": "once all is learnt hardly anything moves",
    "VanishingGradient": "once all is learnt gradients are tiny",
    "WeightUpdateRatio": "once all is learnt hardly anything moves",
}


@faulty(
    "digits, a wide network on 64 samples",
    "64 samples are learnt by heart",
    {"Overfit"},
    may=BY_HEART,
)
def digits_64(root: Path) -> int:
    data = digits().chosen(slice(64))
    return fit(root, mlp(64, 128, 10), data, steps=240, save_every=4, optimizer=adam(3e-3))


@faulty(
    "diabetes, a wide network without regularisation",
    "400 weights to each of 100 samples",
    {"Overfit"},
    may=BY_HEART,
)
def diabetes_by_heart(root: Path) -> int:
    data = diabetes().chosen(slice(100))
    return fit(
        root,
        mlp(10, 128, 128, 1),
        data,
        loss=nn.MSELoss(),
        optimizer=adam(3e-3),
        steps=300,
        save_every=5,
    )


@faulty(
    "breast cancer, a third of the training labels wrong",
    "wrong labels are learnt by heart",
    {"Overfit"},
    may=BY_HEART,
)
def wrong_labels_by_heart(root: Path) -> int:
    generator = torch.Generator().manual_seed(0)

    def flipped(y: Any) -> Any:
        return torch.where(torch.rand(y.shape, generator=generator) < 0.33, 1 - y, y)

    data = table("breast_cancer").taught(flipped)
    return fit(root, mlp(30, 128, 2), data, optimizer=adam(0.01), steps=300, save_every=5)


@faulty(
    "digits, labels at random in the training data, Adam, many epochs",
    "noise is learnt by heart",
    {"Overfit", "Confusion"},
    may=BY_HEART,
)
def noise_by_heart(root: Path) -> int:
    data = digits().taught(random_labels(10)).chosen(slice(256))
    return fit(root, mlp(64, 256, 10), data, optimizer=adam(5e-3), steps=240, save_every=4)


@faulty(
    "sentences, transformer on 80 sentences without dropout",
    "80 sentences are learnt by heart",
    {"Overfit"},
    may=BY_HEART,
)
def sentences_80(root: Path) -> int:
    def make() -> Any:
        model = Transformer(2)
        for module in model.modules():
            if isinstance(module, nn.Dropout):
                module.p = 0.0
        return model

    data = sentences().taught(lambda y: torch.where(torch.arange(len(y)) % 4 == 0, 1 - y, y))
    return fit(
        root, make, data.chosen(slice(80)), optimizer=adam(3e-3), batch=16, steps=160, save_every=4
    )


@faulty(
    "digits, convolutions; each fold's normalisation is its own",
    "validation images are of another scale than those trained with",
    {"Overfit", "Confusion", "CheckInputImages"},
    may=BY_HEART,
)
def other_scale(root: Path) -> int:
    data = images()
    bad = type(data)(data.x, data.y, data.test_x * -0.2 + 1, data.test_y)
    return fit(root, Cnn, bad, optimizer=adam(5e-3), steps=120, save_every=3)


@faulty(
    "sentences, LSTM, SGD with momentum, small batches",
    "no early stopping: validation was best at step 64 of 200",
    {"Overfit"},
    may=BY_HEART,
)
def sentences_lstm_sgd(root: Path) -> int:
    make = lambda: Recurrent(nn.LSTM, 2)
    return fit(
        root,
        make,
        sentences(),
        optimizer=sgd(0.3, momentum=0.9),
        clip=1.0,
        batch=16,
        steps=200,
        save_every=4,
    )


@faulty(
    "wine, tanh, 600 steps",
    "the training goes on for ten times as long as it helps",
    {"Overtraining"},
    may=TOO_LONG,
)
def wine_too_long(root: Path) -> int:
    make = mlp(13, 16, 3, act=nn.Tanh)
    optimizer = sgd(0.1, momentum=0.9)
    return fit(root, make, table("wine"), optimizer=optimizer, steps=600, save_every=10)


@faulty(
    "breast cancer, 800 steps",
    "the training goes on for ten times as long as it helps",
    {"Overtraining"},
    may=TOO_LONG,
)
def cancer_too_long(root: Path) -> int:
    return fit(root, mlp(30, 16, 2), table("breast_cancer"), steps=800, save_every=10)


@faulty(
    "diabetes, regression, 800 steps",
    "the training goes on for ten times as long as it helps",
    {"Overtraining"},
    may=TOO_LONG,
)
def diabetes_too_long(root: Path) -> int:
    return fit(
        root,
        mlp(10, 8, 1),
        diabetes(),
        loss=nn.MSELoss(),
        optimizer=sgd(0.1),
        steps=800,
        save_every=10,
    )


@faulty(
    "sentences, bag of words by an LSTM, 400 steps",
    "the training goes on for five times as long as it helps",
    {"Overtraining"},
    may=TOO_LONG,
)
def sentences_too_long(root: Path) -> int:
    make = lambda: Recurrent(nn.LSTM, 2)
    return fit(root, make, sentences(), optimizer=adam(0.01), clip=1.0, steps=400, save_every=10)


@faulty(
    "sine waves, GRU, 600 steps",
    "the training goes on for six times as long as it helps",
    {"Overtraining"},
    may=TOO_LONG,
)
def waves_too_long(root: Path) -> int:
    make = lambda: Recurrent(nn.GRU, 1, tokens=False)
    return fit(
        root,
        make,
        waves(),
        loss=nn.MSELoss(),
        optimizer=adam(5e-3),
        clip=1.0,
        steps=500,
        save_every=10,
    )
