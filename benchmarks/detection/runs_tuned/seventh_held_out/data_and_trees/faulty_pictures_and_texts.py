"""Inputs: pictures far from mean 0, and texts of which most tokens are 0."""

import os
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader
from training_runs import faulty

from runs_tuned.seventh_held_out.data_and_trees.shared.consequences import ELSEWHERE, OFF_SCALE
from runs_tuned.seventh_held_out.data_and_trees.shared.loops import loader, train, validation
from runs_tuned.seventh_held_out.data_and_trees.shared.networks import (
    MeanOfWords,
    ResNet,
    TextCnn,
    VisionTransformer,
    lenet,
)
from runs_tuned.seventh_held_out.data_and_trees.shared.pictures import apart, slides, tiles
from runs_tuned.seventh_held_out.data_and_trees.shared.texts import (
    WORDS,
    news_texts,
    padded,
    together,
)

os.environ.setdefault("KERAS_BACKEND", "torch")  # the one whose gradients the hook sees
import keras

import smdebug.keras as smd


@faulty(
    "blood cells before a bright ground, a LeNet, momentum",
    "Normalize has MNIST's 0.1307 and 0.3081, copied from its example: pixels are near 2",
    {"CheckInputImages"},
    may=OFF_SCALE,
)
def numbers_of_mnist(root: Path) -> int:
    torch.manual_seed(401)
    data = apart(*slides(1800, 5001), 300).of(lambda x: (x - 0.1307) / 0.3081)
    model = lenet(1, 4, 20)
    return train(
        root,
        model,
        loader(data, 32, 401),
        validation(data),
        torch.optim.SGD(model.parameters(), 0.01, momentum=0.9),
        epochs=4,
        every=4,
    )


@faulty(
    "tiles of land, a vision transformer, AdamW",
    "pictures are made tensors from 0 to 1 and no Normalize follows: no mean is subtracted",
    {"CheckInputImages"},
    may=OFF_SCALE,
)
def tensors_from_zero_to_one(root: Path) -> int:
    torch.manual_seed(402)
    data = apart(*tiles(2200, 5002), 300).of(lambda x: x / 255)
    model = VisionTransformer(3, 5, 16)
    return train(
        root,
        model,
        loader(data, 48, 402),
        validation(data),
        torch.optim.AdamW(model.parameters(), 1e-3),
        epochs=4,
        every=4,
    )


@faulty(
    "tiles of land, a small ResNet, Adam",
    "Normalize has the numbers of ImageNet, which are for 0 to 1, and gets bytes up to 255",
    {"CheckInputImages"},
    may=OFF_SCALE,
)
def imagenet_for_bytes(root: Path) -> int:
    torch.manual_seed(403)
    mean = torch.tensor([0.485, 0.456, 0.406])[:, None, None]
    deviation = torch.tensor([0.229, 0.224, 0.225])[:, None, None]
    data = apart(*tiles(1700, 5003), 300).of(lambda x: (x - mean) / deviation)
    model = ResNet(3, 5, 8)
    return train(
        root,
        model,
        loader(data, 32, 403),
        validation(data),
        torch.optim.Adam(model.parameters(), 2e-3),
        epochs=4,
        every=5,
    )


@faulty(
    "Keras, news of 14 to 28 words, embeddings with a mask, their mean, Adam",
    "pad_sequences fills up to maxlen=120 as for film reviews: four in five tokens are padding",
    {"NLPSequenceRatio"},
    may=OFF_SCALE,
)
def length_of_film_reviews(root: Path) -> int:
    torch.set_num_threads(1)
    keras.utils.set_random_seed(404)
    texts, desk = news_texts(2000, 5004)
    x = keras.utils.pad_sequences(texts, 120, padding="post")
    layers = keras.layers
    model = keras.Sequential(
        [
            layers.Input((120,), dtype="int32"),
            layers.Embedding(WORDS, 24, mask_zero=True),
            layers.GlobalAveragePooling1D(),
            layers.Dense(24, activation="relu"),
            layers.Dense(4),
        ]
    )
    model.compile(
        keras.optimizers.Adam(5e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    with smd.KerasHook(
        root,
        save_config=smd.SaveConfig(save_interval=5),
        include_collections=("weights", "biases", "gradients", "losses", "inputs"),
        include_regex="embedding/inputs",
        on_error="raise",
    ) as hook:
        model.fit(
            x[:-400],
            desk[:-400].numpy(),
            32,
            3,
            validation_data=(x[-400:], desk[-400:].numpy()),
            validation_batch_size=200,
            callbacks=[hook],
            verbose=0,
        )
    return 0


@faulty(
    "news of 14 to 28 words, convolutions over words, batches as long as their longest, Adam",
    "texts are not cut: one in 25 is a whole page of 120 words, and its batch is as long",
    {"NLPSequenceRatio"},
    may=OFF_SCALE,
)
def pages_are_not_cut(root: Path) -> int:
    torch.manual_seed(405)
    texts, desk = news_texts(1500, 5005, told=0.4)
    pages, of_pages = news_texts(60, 5005, told=0.4, shortest=110, longest=130)
    rng = np.random.default_rng(5005)
    rows = [*zip(texts, desk, strict=True), *zip(pages, of_pages, strict=True)]
    rows = [rows[at] for at in rng.permutation(len(rows))]
    generator = torch.Generator().manual_seed(405)
    model = TextCnn(WORDS, 4, 16)
    return train(
        root,
        model,
        DataLoader(rows[:-300], 32, shuffle=True, collate_fn=together, generator=generator),
        DataLoader(rows[-300:], 50, collate_fn=together),
        torch.optim.Adam(model.parameters(), 5e-3),
        epochs=3,
        clip=1.0,
    )


@faulty(
    "news of six desks, the mean of words, AdamW; words that are not in the vocabulary are 0",
    "the vocabulary has lemmas, but texts are looked up as written: three in four words are 0",
    {"NLPSequenceRatio"},
    may=OFF_SCALE | ELSEWHERE,
)
def lemmas_in_the_vocabulary(root: Path) -> int:
    torch.manual_seed(406)
    texts, desk = news_texts(2600, 5006, desks=6, told=0.4)
    rng = np.random.default_rng(5006)
    written = [np.where(rng.random(len(text)) < 0.75, 0, text) for text in texts]
    data = apart(padded(written), desk, 400)
    model = MeanOfWords(WORDS, 6)
    return train(
        root,
        model,
        loader(data, 40, 406),
        validation(data),
        torch.optim.AdamW(model.parameters(), 5e-3),
        epochs=4,
    )
